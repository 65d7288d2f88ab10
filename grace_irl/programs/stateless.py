"""Whether a program surely remembers nothing from one state to the next: read off its text, never by running it.

Then its reward is a function of the instruction and the state, and equal states need it once
(`grace_irl.sandbox.child`). The answer errs on one side only: whatever is not known to leave everything as it was
counts as memory. Sound for a reason that goes by construction, not by a list of tricks:

- Only names of `stateless_names` are used, so that every object of the program is a value, a container, a tree, or
  of one of its own classes, and every callable is one of those names or a function of its own.
- Iterators are used where they are made, and never kept.
- Code that can run once a state was seen changes nothing but containers that were made in the same call. What runs
  before (the module, `Reward.__init__`, and functions that only these call) may set up what it likes.
"""

from __future__ import annotations

import ast

from grace_irl.programs import stateless_names as known
from grace_irl.programs.stateless_outline import DoubtError, Outline, Scope
from grace_irl.programs.stateless_reach import late_functions
from grace_irl.programs.stateless_values import Values, own_nodes

_NODES = (
    *(ast.Module, ast.ClassDef, ast.FunctionDef, ast.Lambda, ast.arguments, ast.arg, ast.Return, ast.Assign),
    *(ast.AnnAssign, ast.AugAssign, ast.For, ast.While, ast.If, ast.Try, ast.ExceptHandler, ast.Raise, ast.Assert),
    *(ast.Pass, ast.Break, ast.Continue, ast.Expr, ast.Import, ast.ImportFrom, ast.alias, ast.Delete, ast.BoolOp),
    *(ast.NamedExpr, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp),
    *(ast.GeneratorExp, ast.Compare, ast.Call, ast.keyword, ast.FormattedValue, ast.JoinedStr, ast.Constant),
    *(ast.Attribute, ast.Subscript, ast.Starred, ast.Name, ast.List, ast.Tuple, ast.Slice, ast.comprehension),
    *(ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop),
)
"""Syntax that is understood. Not `global`, `nonlocal`, `yield`, `await`, `with`, `match`."""


def memory_of(tree: ast.Module) -> str:
    """Why a program may remember something from one state to the next; "" where it surely does not."""
    try:
        _Checks(tree).check()
    except DoubtError as doubt:
        return str(doubt)
    except RecursionError:
        return "nested too deeply"
    return ""


class _Checks:
    """The checks of one source; each raises `DoubtError`."""

    def __init__(self, tree: ast.Module) -> None:
        self._outline = Outline(tree)
        self._values = Values(self._outline)

    def check(self) -> None:
        """
        Raises:
            DoubtError: at the first thing that may remember.
        """
        outline = self._outline
        for node in outline.nodes:
            if not isinstance(node, _NODES):
                raise DoubtError.at(node, f"{type(node).__name__} is not followed")
        self._names()
        late = late_functions(outline)
        for node in outline.nodes:
            if node not in outline.annotations:
                scope = outline.scope(node)
                self._check(node, scope, late=isinstance(scope, (ast.FunctionDef, ast.Lambda)) and scope in late)

    def _names(self) -> None:
        """No name has two meanings, and none of the source's own is one that changes things elsewhere."""
        outline = self._outline
        defined = outline.named | outline.classes
        twice = (defined & outline.stored) | (set(outline.imports) & (outline.stored | defined))
        dunders = {name for name in outline.named if name.startswith("__")}
        others = outline.named - dunders
        for said, names in (
            ("two things", twice),
            ("a builtin too", (defined | outline.stored) & known.EVERY_BUILTIN),
            ("what changes or iterates elsewhere", (others | outline.fields) & (known.UNSAFE | known.LAZY_METHODS)),
            ("what is called unseen", dunders - known.OWN_DUNDERS),
        ):
            if names:
                raise DoubtError(f"`{min(names)}` names {said}")

    def _check(self, node: ast.AST, scope: Scope, *, late: bool) -> None:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                self._definition(node)
            case ast.GeneratorExp():
                self._values.require_consumed(node)
            case ast.Call():
                self._call(node, scope, late=late)
            case ast.Name(ctx=ast.Load()):
                self._name(node, late=late)
            case ast.Attribute(ctx=ast.Load()):
                self._attribute(node, late=late)
            case ast.Attribute():
                if late and not self._is_new(node, scope):
                    raise DoubtError.at(node, f"`.{node.attr}` is set")
            case ast.Subscript(value=value) if not isinstance(node.ctx, ast.Load):
                if late and not self._values.is_fresh(value, scope):
                    raise DoubtError.at(node, "an item is set")
            case ast.AugAssign(target=ast.Name() as target):
                if late and not self._values.is_fresh(target, scope):
                    raise DoubtError.at(node, f"`{target.id}` is changed in place")

    def _definition(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            name = decorator.func if isinstance(decorator, ast.Call) else decorator
            said = getattr(name, "id", "") or getattr(name, "attr", "")
            allowed = (
                {"dataclass"} if isinstance(node, ast.ClassDef) else {"staticmethod", "property", "abstractmethod"}
            )
            if said not in allowed:
                raise DoubtError.at(node, f"the decorator `{said}` is not followed")
        if isinstance(node, ast.ClassDef):
            bases = {getattr(base, "id", "") or getattr(base, "attr", "") for base in node.bases}
            if not isinstance(self._outline.scope(node), ast.Module):
                raise DoubtError.at(node, "a class within another, or within a function")
            if node.keywords or not bases <= self._outline.classes | known.BASES:
                raise DoubtError.at(node, "the class is made of others")

    def _call(self, node: ast.Call, scope: Scope, *, late: bool) -> None:
        if any(keyword.arg in ("out", "file", "target") for keyword in node.keywords):
            raise DoubtError.at(node, "a call writes to what it is given")
        match node.func:
            case ast.Name(id="next"):
                if not node.args or not self._values.is_lazy(node.args[0]):
                    raise DoubtError.at(node, "`next` of something that is kept")
            case ast.Name(id="getattr" | "hasattr") as func:
                constant = node.args[1] if len(node.args) > 1 else None
                if not (isinstance(constant, ast.Constant) and isinstance(constant.value, str)):
                    raise DoubtError.at(node, f"`{func.id}` of a name that is not written out")
                self._attribute_name(node, constant.value)
            case ast.Name(id="super"):
                calls = self._outline.parent[node]
                plain = isinstance(calls, ast.Attribute) and isinstance(scope, ast.FunctionDef)
                if node.args or not plain:
                    raise DoubtError.at(node, "`super` is not followed")
            case ast.Name(id="sum") if len(node.args) > 1 or node.keywords:
                raise DoubtError.at(node, "`sum` that begins with something")
            case ast.Attribute() as func:
                self._method(node, func, scope, late=late)
        if self._values.is_lazy(node):
            self._values.require_consumed(node)

    def _method(self, node: ast.Call, func: ast.Attribute, scope: Scope, *, late: bool) -> None:
        """A call of something after a dot; what the dot follows is checked by itself."""
        name, meant = func.attr, self._outline.meant(func)
        if meant:
            module, _, last = meant.rpartition(".")
            if module == "numpy" and len(node.args) > known.NUMPY.get(last, 0):
                raise DoubtError.at(node, f"`numpy.{last}` is not followed")
            return
        if (
            name in known.MUTATORS
            and name not in self._outline.named
            and late
            and not self._values.is_fresh(func.value, scope)
        ):
            raise DoubtError.at(node, f"`.{name}` changes what may be kept")

    def _name(self, node: ast.Name, *, late: bool) -> None:
        name = node.id
        meant = self._outline.imports.get(name, "")
        if meant:
            self._imported(node, meant, late=late)
        elif name in known.LAZY_BUILTINS or name == "next":
            if not self._outline.is_called(node):
                raise DoubtError.at(node, f"`{name}` is handed about")
        elif name not in self._outline.stored | self._outline.named | self._outline.classes | known.BUILTINS:
            raise DoubtError.at(node, f"`{name}` is not known to keep nothing")

    def _imported(self, node: ast.Name | ast.Attribute, meant: str, *, late: bool) -> None:
        """A use of what `meant`, a dotted name, stands for."""
        module, _, name = meant.rpartition(".")
        if meant in known.FUNCTIONS or meant in known.WHOLE or meant == "numpy":
            if not isinstance(self._outline.parent[node], (ast.Attribute, ast.alias)):
                raise DoubtError.at(node, f"the module `{meant}` is handed about")
            return
        if module == "numpy":
            if name not in known.NUMPY or not self._outline.is_called(node):
                raise DoubtError.at(node, f"`{meant}` is not known to keep nothing")
            if isinstance(node, ast.Name):
                raise DoubtError.at(node, f"`{meant}` is not followed by its own name")
            return
        constant = name.isupper() and module == "re"
        if not (constant or module in known.WHOLE or name in known.FUNCTIONS.get(module, ())):
            raise DoubtError.at(node, f"`{meant}` is not known to keep nothing")
        if name in known.TREE_MAKERS and not late:
            raise DoubtError.at(node, f"`{name}` makes something to keep")
        if meant in known.LAZY_FUNCTIONS and not self._outline.is_called(node):
            raise DoubtError.at(node, f"`{meant}` is handed about")

    def _attribute(self, node: ast.Attribute, *, late: bool) -> None:
        meant = self._outline.meant(node)
        if meant:
            self._imported(node, meant, late=late)
            return
        name, called = node.attr, self._outline.is_called(node)
        if called and (name in known.MUTATORS or name in known.LAZY_METHODS):
            return  # judged as a call
        if name == "__init__" and called and isinstance(node.value, ast.Call) and _is_init(self._outline.scope(node)):
            return  # super().__init__()
        self._attribute_name(node, name)

    def _attribute_name(self, node: ast.AST, name: str) -> None:
        own = name in self._outline.fields or name in self._outline.named
        if name.startswith("__") or not (own or name in known.METHODS or name in known.DATA):
            raise DoubtError.at(node, f"`.{name}` is not known to keep nothing")

    def _is_new(self, node: ast.Attribute, scope: Scope) -> bool:
        """`self.x = …` in `__init__`: of an object that is new."""
        if not (isinstance(scope, ast.FunctionDef) and _is_init(scope)) or isinstance(node.ctx, ast.Del):
            return False
        own = scope.args.args[0].arg
        names = (n for n in own_nodes(scope) if isinstance(n, ast.Name) and n.id == own)
        plain = isinstance(self._outline.parent[node], (ast.Assign, ast.AnnAssign))
        is_self = isinstance(node.value, ast.Name) and node.value.id == own
        return plain and is_self and all(isinstance(name.ctx, ast.Load) for name in names)


def _is_init(scope: Scope) -> bool:
    return isinstance(scope, ast.FunctionDef) and scope.name == "__init__" and bool(scope.args.args)
