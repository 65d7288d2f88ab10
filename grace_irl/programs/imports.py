"""Imports of a source, and those of its names that stand for modules."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from grace_irl.programs import contract
from grace_irl.programs.problem import Problem


@dataclass(frozen=True)
class Bindings:
    """The names that a source's import statements bind.

    Attributes:
        modules: names that stand for a module (`np` of `import numpy as np`).
        numpy: those of them that stand for numpy or a part of it.
        members: names imported from a module, which may be modules themselves.
        refusals: imports that are not allowed.
    """

    modules: frozenset[str]
    numpy: frozenset[str]
    members: frozenset[str]
    refusals: tuple[Problem, ...] = field(default=())


def bindings(nodes: Iterable[ast.AST]) -> Bindings:
    """Read every import statement among the nodes of a tree."""
    modules: set[str] = set()
    numpy: set[str] = set()
    members: set[str] = set()
    refusals: list[Problem] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                modules.add(name)
                if alias.name.partition(".")[0] == "numpy":
                    numpy.add(name)
                if (said := _refusal(alias.name)) is not None:
                    refusals.append(Problem(node.lineno, said))
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                refusals.append(Problem(node.lineno, "relative import: a reward program is one file"))
                continue
            if (said := _refusal(source)) is not None:
                refusals.append(Problem(node.lineno, said))
                continue
            for alias in node.names:
                members.add(alias.asname or alias.name)
                if (said := _refusal(f"{source}.{alias.name}")) is not None:
                    refusals.append(Problem(node.lineno, said))
                elif source.partition(".")[0] == "numpy" and alias.name in contract.NUMPY_FILES:
                    said = f"`{source}.{alias.name}` reads or writes files: files are out of reach"
                    refusals.append(Problem(node.lineno, said))
                elif alias.name.startswith("_") and source != "__future__":
                    said = f"`{alias.name}` is private to `{source}`: use its public names"
                    refusals.append(Problem(node.lineno, said))
    return Bindings(frozenset(modules), frozenset(numpy), frozenset(members), tuple(refusals))


def root_name(node: ast.expr) -> str:
    """The name that a chain of attributes and subscripts starts from (`np` in `np.linalg.norm`), or ""."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _refusal(module: str) -> str | None:
    """Why a module may not be imported, or None where it may."""
    root = module.partition(".")[0]
    if root not in contract.ALLOWED_MODULES:
        allowed = "numpy, lxml and the standard library's pure parts (docs/contract.md)"
        return f"`import {root}` is not allowed; a reward may import {allowed}"
    parts = module.split(".")
    prefixes = {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
    if prefixes & contract.FORBIDDEN_SUBMODULES:
        return f"`{module}` is not allowed: it serves files, compilers or foreign memory"
    return None
