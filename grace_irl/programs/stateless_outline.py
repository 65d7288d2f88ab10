"""The outline of a source, as `stateless.py` needs it: which names it binds, what belongs to which function."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from grace_irl.programs import stateless_names as known

Function = ast.FunctionDef | ast.Lambda
Scope = ast.Module | ast.ClassDef | ast.FunctionDef | ast.Lambda


class DoubtError(Exception):
    """Something in a source that may remember."""

    @classmethod
    def at(cls, node: ast.AST, said: str) -> DoubtError:
        """The doubt, with the line."""
        return cls(f"line {getattr(node, 'lineno', 0)}: {said}")


class Outline:
    """A source's names.

    Attributes:
        nodes: of the tree, all.
        parent: of every node but the root.
        annotations: the nodes of annotations, which compute nothing.
        functions: defined with `def`, methods and nested ones too; `named` are their names.
        classes: names of the classes.
        stored: names that are bound by assignment, loops, arguments, …
        fields: names of attributes that the source gives to objects and classes.
        imports: what a name that is imported stands for, dotted.

    Raises:
        DoubtError: a name of two meanings, or an annotation that computes.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self.nodes = list(ast.walk(tree))
        self.parent = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.annotations = self._below_annotations()
        self.functions = [node for node in self.nodes if isinstance(node, ast.FunctionDef)]
        self.named = {function.name for function in self.functions}
        self.classes = {node.name for node in self.nodes if isinstance(node, ast.ClassDef)}
        self.stored = self._bound_names()
        self.fields = self._attributes()
        self.imports: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(node)

    def meant(self, node: ast.Attribute) -> str:
        """The dotted name of something imported, "" of anything else."""
        names: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name) or inner.id not in self.imports:
            return ""
        root = self.imports[inner.id]
        whole = ".".join([root, *reversed(names)])
        module = whole.rpartition(".")[0]
        # beyond a module's own names begin the methods of what it gave: datetime.strptime, re.compile(…).match
        return whole if module in known.FUNCTIONS or module in known.WHOLE or module == "numpy" else ""

    def is_called(self, node: ast.expr) -> bool:
        parent = self.parent[node]
        return isinstance(parent, ast.Call) and parent.func is node

    def scope(self, node: ast.AST) -> Scope:
        """The function, class or module whose body it belongs to; defaults and decorators belong outside."""
        child, parent = node, self.parent.get(node)
        while parent is not None:
            if isinstance(parent, (ast.FunctionDef, ast.ClassDef)) and child in parent.body:
                return parent
            if isinstance(parent, ast.Lambda) and child is parent.body:
                return parent
            child, parent = parent, self.parent.get(parent)
        return self._tree

    def with_bases(self, classes: set[str]) -> set[str]:
        """These classes, and those that they are made of."""
        found: set[str] = set()
        waiting = set(classes)
        while waiting:
            found |= waiting
            nodes = [node for node in self.nodes if isinstance(node, ast.ClassDef) and node.name in waiting]
            bases = {base.id for node in nodes for base in node.bases if isinstance(base, ast.Name)}
            waiting = (bases & self.classes) - found
        return found

    def mentions(self, function: Function) -> set[str]:
        """The functions and classes of the source that it names."""
        names = {
            node.id
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and not isinstance(self.parent[node], ast.Attribute)
        }
        names |= {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
        return names & (self.named | self.classes)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            whole = isinstance(node, ast.Import) and alias.asname is None
            bound = alias.name.split(".")[0] if whole else alias.asname or alias.name
            meant = bound if whole else f"{prefix}{alias.name}"
            if self.imports.setdefault(bound, meant) != meant or bound == "*":
                raise DoubtError.at(node, f"`{bound}` is imported from two places")

    def _bound_names(self) -> set[str]:
        names = {node.id for node in self.nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        names |= {node.arg for node in self.nodes if isinstance(node, ast.arg)}
        return names | {node.name for node in self.nodes if isinstance(node, ast.ExceptHandler) and node.name}

    def _attributes(self) -> set[str]:
        """Names of attributes that the source itself gives to objects and classes."""
        found = {n.attr for n in self.nodes if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)}
        for node in self.nodes:
            if isinstance(node, ast.ClassDef):
                for statement in node.body:
                    found |= {n.id for n in _targets(statement) if isinstance(n, ast.Name)}
        return found

    def _below_annotations(self) -> set[ast.AST]:
        """Annotations, which are looked at here once: plain names, no calls."""
        found: set[ast.AST] = set()
        for node in self.nodes:
            for name in ("annotation", "returns"):
                annotation = getattr(node, name, None)
                if isinstance(annotation, ast.AST):
                    found |= set(ast.walk(annotation))
        allowed = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.List, ast.BinOp, ast.BitOr)
        if not all(isinstance(node, (*allowed, ast.expr_context)) for node in found):
            raise DoubtError("an annotation computes")
        return found


def _targets(statement: ast.stmt) -> Sequence[ast.expr]:
    if isinstance(statement, ast.Assign):
        return statement.targets
    return [statement.target] if isinstance(statement, (ast.AnnAssign, ast.AugAssign)) else []
