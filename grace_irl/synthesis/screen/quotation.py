"""Copies functions into programs: those that are asked for, what they use, and the imports that they need."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable
from functools import cache

from grace_irl.programs.parsing import parse
from grace_irl.synthesis.screen import functions


def quote(names: Iterable[str], own_imports: Iterable[str] = ()) -> tuple[list[str], list[str]]:
    """Import lines, and the definitions in the order of the file.

    Args:
        names: of functions and constants of `functions`.
        own_imports: names of modules that the program uses besides.
    """
    definitions, imports = _library()
    wanted: set[str] = set()
    open_ = [name for name in names if name in definitions]
    used: set[str] = set(own_imports)
    while open_:
        name = open_.pop()
        if name in wanted:
            continue
        wanted.add(name)
        used |= _names(definitions[name])
        open_ += [other for other in _names(definitions[name]) if other in definitions]
    lines = [line for name, line in imports.items() if name in used]
    return _merged(lines), [definitions[name] for name in definitions if name in wanted]


def _names(source: str) -> set[str]:
    return {node.id for node in ast.walk(parse(source)) if isinstance(node, ast.Name)}


@cache
def _library() -> tuple[dict[str, str], dict[str, str]]:
    """Source of each definition, and the import line of each name that is imported."""
    text = inspect.getsource(functions)
    lines = text.splitlines()
    definitions: dict[str, str] = {}
    imports: dict[str, str] = {}
    for node in parse(text).body:
        source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        match node:
            case ast.FunctionDef(name=name):
                definitions[name] = source
            case ast.Assign(targets=[ast.Name(id=name)]):
                definitions[name] = source
            case ast.Import(names=names):
                imports |= {alias.name: f"import {alias.name}" for alias in names}
            case ast.ImportFrom(module=str(module), names=names):
                imports |= {alias.name: f"from {module} import {alias.name}" for alias in names}
    return definitions, imports


def _merged(lines: list[str]) -> list[str]:
    """Import lines in the usual order, what comes from one module on one line."""
    plain = sorted({line for line in lines if line.startswith("import ")})
    taken: dict[str, list[str]] = {}
    for line in lines:
        if found := re.fullmatch(r"from (\S+) import (\w+)", line):
            taken.setdefault(found[1], []).append(found[2])
    own = [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(taken.items())]
    standard = [line for line in own if not line.startswith("from lxml")]
    return [*plain, *standard, *([""] * (len(own) > len(standard))), *(line for line in own if line not in standard)]
