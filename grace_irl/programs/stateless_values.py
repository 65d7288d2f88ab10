"""Values that nobody keeps: iterators where they are used up, containers that were made in the same call."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from grace_irl.programs import stateless_names as known
from grace_irl.programs.stateless_outline import DoubtError, Outline, Scope

_DISPLAYS = (
    *(ast.List, ast.Dict, ast.Set, ast.Tuple, ast.ListComp, ast.DictComp, ast.SetComp),
    *(ast.Constant, ast.JoinedStr, ast.UnaryOp),
)


class Values:
    """Questions about the expressions of a source."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._fresh: dict[tuple[Scope, str], bool] = {}

    def is_lazy(self, node: ast.AST) -> bool:
        """Whether it is an iterator that was made just here."""
        if isinstance(node, ast.GeneratorExp):
            return True
        if not isinstance(node, ast.Call):
            return False
        func = node.func
        if isinstance(func, ast.Name):
            return func.id in known.LAZY_BUILTINS or self._outline.imports.get(func.id) in known.LAZY_FUNCTIONS
        if isinstance(func, ast.Attribute):
            meant = self._outline.meant(func)
            if meant:
                return meant in known.LAZY_FUNCTIONS
            return func.attr in known.LAZY_METHODS
        return False

    def require_consumed(self, node: ast.expr) -> None:
        """An iterator is read where it is made."""
        parent = self._outline.parent[node]
        match parent:
            case ast.For(iter=it) | ast.comprehension(iter=it) if it is node:
                return
            case ast.Compare() | ast.Starred():
                if isinstance(parent, ast.Compare) or isinstance(
                    self._outline.parent[parent], (ast.List, ast.Tuple, ast.Set)
                ):
                    return
            case ast.Assign(targets=targets) if all(isinstance(target, (ast.Tuple, ast.List)) for target in targets):
                return
            case ast.Call(func=ast.Name(id=name)) if name in known.CONSUMERS or name == "next":
                return
            case ast.Call(func=ast.Attribute(attr=name)) if (
                name in known.CONSUMING_METHODS and name not in self._outline.named
            ):
                return
            case ast.Call() if parent.func is not node and self.is_lazy(parent):
                return
        raise DoubtError.at(node, "an iterator is kept")

    def is_fresh(self, node: ast.expr, scope: Scope) -> bool:
        """A variable that never holds anything but what was made in this very call, or cannot change."""
        if not (isinstance(node, ast.Name) and isinstance(scope, ast.FunctionDef)):
            return False
        place = (scope, node.id)
        if place not in self._fresh:
            self._fresh[place] = self._is_made(node.id, scope)
        return self._fresh[place]

    def _is_made(self, name: str, scope: ast.FunctionDef) -> bool:
        arguments = scope.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        if any(argument is not None and argument.arg == name for argument in every):
            return False
        values = [value for found in own_nodes(scope) for value in self._bindings(found, name)]
        return bool(values) and all(value is not None and self._makes(value) for value in values)

    def _bindings(self, node: ast.AST, name: str) -> Iterator[ast.expr | None]:
        """What a node binds to a name: the expression, or None where it is not one that is written there."""
        if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)):
            if isinstance(node, (ast.ExceptHandler, ast.FunctionDef, ast.ClassDef)) and node.name == name:
                yield None
            return
        parent = self._outline.parent[node]
        match parent:
            case ast.AugAssign():
                return
            case ast.Assign(targets=targets, value=value) if node in targets:
                yield value
            case ast.AnnAssign(value=value):
                if value is not None:
                    yield value
            case ast.NamedExpr(value=value):
                yield value
            case ast.Tuple(elts=names):
                yield _partner(names, names.index(node), parent, self._outline.parent[parent])
            case _:
                yield None

    def _makes(self, value: ast.expr) -> bool:
        """Whether nobody else holds what an expression gives (no class of the source defines operators)."""
        if isinstance(value, _DISPLAYS):
            return True
        if isinstance(value, ast.BinOp):
            return not isinstance(value.op, ast.MatMult)
        if isinstance(value, ast.IfExp):
            return self._makes(value.body) and self._makes(value.orelse)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in known.FRESH_CALLS:
            name = value.func.id
            return name in known.BUILTINS or self._outline.imports.get(name) == f"collections.{name}"
        return False


def own_nodes(scope: ast.FunctionDef) -> Iterator[ast.AST]:
    """All that belongs to a function, without the insides of functions and classes within it."""
    waiting: list[ast.AST] = list(scope.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))


def _partner(names: Sequence[ast.expr], place: int, pair: ast.Tuple, assignment: ast.AST) -> ast.expr | None:
    """What `a, b = x, y` gives to one of the names; None where the two sides do not stand beside each other."""
    if not (isinstance(assignment, ast.Assign) and isinstance(assignment.value, ast.Tuple)):
        return None
    values = assignment.value.elts
    starred = any(isinstance(node, ast.Starred) for node in (*names, *values))
    return values[place] if pair in assignment.targets and len(values) == len(names) and not starred else None
