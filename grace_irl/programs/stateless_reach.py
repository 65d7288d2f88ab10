"""Which functions of a source can run once a state was seen; `stateless.py` says why that matters."""

from __future__ import annotations

import ast

from grace_irl.programs import stateless_names as known
from grace_irl.programs.stateless_outline import DoubtError, Function, Outline


def late_functions(outline: Outline) -> set[Function]:
    """All but those that only the module, `Reward.__init__` and functions like themselves call.

    Raises:
        DoubtError: what must not outlive a call is made where it could.
    """
    late = _late(outline)
    _require_makers_late(outline, late)
    return late


def _late(outline: Outline) -> set[Function]:
    called = {name for node in outline.nodes if (name := _called_name(node))}
    waiting: list[Function] = [node for node in outline.nodes if isinstance(node, ast.Lambda)]
    waiting += [function for function in outline.functions if _runs_unseen(function, outline, called)]
    spoken = _values(outline)
    late: set[Function] = set()
    while waiting:
        for function in waiting:
            late.add(function)
            spoken |= outline.mentions(function)
        made = outline.with_bases(spoken & outline.classes)
        waiting = [
            function
            for function in outline.functions
            if function not in late and (function.name in spoken or _makes_one_of(function, made, outline))
        ]
    return late


def _makes_one_of(function: ast.FunctionDef, classes: set[str], outline: Outline) -> bool:
    scope = outline.scope(function)
    return function.name == "__init__" and isinstance(scope, ast.ClassDef) and scope.name in classes


def _runs_unseen(function: ast.FunctionDef, outline: Outline, called: set[str]) -> bool:
    """Whether it is called by others than the source's own calls."""
    if _is_nested(function, outline):
        return True  # what a function makes may live on, wherever it was made
    if function.name == "__init__":
        return False
    return function.name in known.CALLED_UNSEEN or function.name.startswith("__") or function.name not in called


def _is_nested(function: Function, outline: Outline) -> bool:
    return isinstance(function, ast.Lambda) or isinstance(outline.scope(function), (ast.FunctionDef, ast.Lambda))


def _values(outline: Outline) -> set[str]:
    """Functions and classes that are handed about, and may be called wherever they arrive."""
    found = set()
    for node in outline.nodes:
        if node in outline.annotations:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        elif isinstance(node, ast.Attribute) and not outline.is_called(node):
            found.add(node.attr)
        elif isinstance(node, ast.Name) and not outline.is_called(node):
            parent = outline.parent[node]
            found |= set() if isinstance(parent, (ast.Attribute, ast.ClassDef, ast.ExceptHandler)) else {node.id}
    return found & (outline.named | outline.classes)


def _called_name(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        return getattr(node.func, "id", "") or getattr(node.func, "attr", "")
    return ""


def _require_makers_late(outline: Outline, late: set[Function]) -> None:
    """Functions that make what a mere look may change (`TREE_MAKERS`) are called by late ones only.

    Raises:
        DoubtError: elsewhere, or where that cannot be told.
    """
    names: set[str] = set()
    grown = True
    while grown:
        makers = [f for f in outline.functions if outline.mentions(f) & names or _makes_trees(f, outline)]
        grown = {f.name for f in makers} > names
        names |= {f.name for f in makers}
    every: list[Function] = [*outline.functions, *(f for f in late if isinstance(f, ast.Lambda))]
    for function in every:
        makes = bool(outline.mentions(function) & names) or _makes_trees(function, outline)
        if makes and (_is_nested(function, outline) or getattr(function, "name", "").startswith("__")):
            raise DoubtError.at(function, "something to keep may be made")
    for node in outline.nodes:
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name in names and outline.scope(node) not in late:
            raise DoubtError.at(node, f"`{name}` makes something to keep")


def _makes_trees(function: Function, outline: Outline) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and node.attr in known.TREE_MAKERS:
            return True
        if isinstance(node, ast.Name) and outline.imports.get(node.id, "").rpartition(".")[2] in known.TREE_MAKERS:
            return True
    return False
