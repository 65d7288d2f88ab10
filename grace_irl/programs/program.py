"""Reward programs: their source texts, their parents, and their identities, which are hashes of syntax trees."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from grace_irl.programs.size import description_length

Within = Literal["module", "class", "function"]


@dataclass(frozen=True)
class Definition:
    """A function or class in a source. Comparisons ignore the attributes `first` and `last`.

    Attributes:
        name: qualified name, such as "near" or "Reward.near".
        digest: hash of the normalised syntax tree (16 hex digits).
        within: "module" at the top level, "class" if all enclosing definitions are classes, otherwise "function".
        calls: number of calls of the function or class by name in the source, such as `near(…)`, `self.near(…)` or
            `Reward.near(…)`. Recursive calls are included.
        first, last: line numbers, from 1, of the first line (with decorators) and of the last line.
    """

    name: str
    digest: str
    within: Within = "module"
    calls: int = 0
    first: int = field(default=0, compare=False)
    last: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Program:
    """A reward program.

    Attributes:
        id: hash of the normalised syntax tree (16 hex digits).
        source: Python text that defines `class Reward` (docs/contract.md).
        size: description length in bits (`programs.size`). Of two equally good programs, the smaller one ranks higher.
        operator: operator of the search that made the program, such as "initialise" or "mutate".
        parents: ids of the programs from which the operator made this program.
        prior: log-prior of this program minus the highest log-prior of all programs of its proposer, in nats. The
            proposer computes this difference. The difference is at most 0; 0 if unknown. With fewer demonstrations, the
            prior affects the ranking more.
        functions: functions and classes of the program.
        takes_action: whether reward_fn takes (state, action, next_state) instead of (state).
    """

    id: str
    source: str
    size: int
    operator: str = "initialise"
    parents: tuple[str, ...] = ()
    prior: float = 0.0
    functions: tuple[Definition, ...] = ()
    takes_action: bool = False

    def defines(self, name: str, within: Within) -> bool:
        """Whether the program has a function, method or class with this unqualified name.

        Args:
            name: name without its scope, such as "near" for "Reward.near".
            within: required value of `Definition.within`.
        """
        return any(each.within == within and each.name.rpartition(".")[2] == name for each in self.functions)


DIGEST_CHARS = 16

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SKIPPED_FIELDS = frozenset({"ctx", "type_comment", "kind", "type_ignores"})
"""Fields of syntax trees that digests ignore."""
_LATER_FIELDS = frozenset({"type_params", "default_value"})
"""Fields that syntax trees of Python 3.11 lack. Digests ignore empty fields of this kind, so that all versions of
Python compute the same digests."""


@dataclass(frozen=True)
class Identity:
    """Facts that identify a program, computed from its syntax tree.

    Attributes:
        id: digest of the whole normalised tree, 16 hex digits.
        size: description length in bits (`programs.size`).
        functions: all functions and classes, in order of appearance.
    """

    id: str
    size: int
    functions: tuple[Definition, ...]


@dataclass
class _Found:
    """Definitions and calls in a tree, collected in one pass.

    Attributes:
        functions: functions and classes in order of appearance. `identify` fills in their `calls` later.
        classes: qualified names of classes.
        calls: calls by name, each as (scope, owner, name). The scope is the qualified name of the enclosing function or
            class; "" at the top level. In `self.near(…)` the owner is "self" and the name is "near". In `near(…)` the
            owner is "".
    """

    functions: list[Definition] = field(default_factory=list)
    classes: set[str] = field(default_factory=set)
    calls: list[tuple[str, str, str]] = field(default_factory=list)


def identify(tree: ast.Module) -> Identity:
    """The identity of a program. Hashing runs bottom-up, so one pass yields the digests of all functions.

    Raises:
        RecursionError: the tree is deeper than the interpreter's recursion limit.
    """
    found = _Found()
    digest = _digest(tree, "", found)
    calls = _called(found)
    functions = (replace(function, calls=calls[function.name]) for function in found.functions)
    return Identity(digest.hex()[:DIGEST_CHARS], description_length(tree), tuple(functions))


def text_id(source: str) -> str:
    """The id of a source that does not parse: a hash of its text. No source that parses has this id."""
    text = b"text:" + source.encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:DIGEST_CHARS]


def _digest(node: ast.AST, scope: str, found: _Found) -> bytes:
    """Digest of a subtree. The subtree's definitions and calls are added to `found`."""
    inner, slot = scope, -1
    if isinstance(node, _DEFINITIONS):
        inner = f"{scope}.{node.name}" if scope else node.name
        slot = len(found.functions)
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        last = node.end_lineno or node.lineno
        found.functions.append(Definition(inner, "", _within(scope, found.classes), 0, first, last))
        if isinstance(node, ast.ClassDef):
            found.classes.add(inner)
    elif isinstance(node, ast.Call):
        found.calls += ((scope, owner, name) for owner, name in _callee(node.func))
    parts: list[bytes] = [type(node).__name__.encode()]
    for name, value in ast.iter_fields(node):
        if name in _SKIPPED_FIELDS:
            continue
        if name in _LATER_FIELDS and not value:
            continue
        if name == "body" and isinstance(node, (ast.Module, *_DEFINITIONS)):
            value = _without_docstring(value)
        elif isinstance(node, ast.JoinedStr):
            value = _joined(value)
        parts.append(b"\x00" + name.encode())
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                parts.append(b"\x01" + _digest(child, inner, found).hex().encode())
            else:
                # `ascii` distinguishes 1, 1.0 and True, and also 0.0 and -0.0. `repr` does not serve, because its text
                # for a non-ASCII character depends on the interpreter's version of Unicode.
                parts.append(b"\x02" + ascii(child).encode())
    digest = hashlib.blake2b(b"\x03".join(parts), digest_size=16).digest()
    if slot >= 0:
        found.functions[slot] = replace(found.functions[slot], digest=digest.hex()[:DIGEST_CHARS])
    return digest


def _joined(values: list[ast.expr]) -> list[ast.expr]:
    """Parts of an f-string, with neighbouring texts merged and empty texts removed.

    Some versions of Python do this by themselves, and digests must not depend on the version.
    """
    joined: list[ast.expr] = []
    for value in values:
        last = joined[-1] if joined else None
        if isinstance(value, ast.Constant) and isinstance(last, ast.Constant):
            joined[-1] = ast.Constant(str(last.value) + str(value.value))
        elif not (isinstance(value, ast.Constant) and value.value == ""):
            joined.append(value)
    return joined


def _within(scope: str, classes: set[str]) -> Within:
    """The value of `Definition.within` for a definition in this scope."""
    parts = scope.split(".") if scope else []
    around = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    return "module" if not around else "class" if classes.issuperset(around) else "function"


def _callee(function: ast.expr) -> Iterable[tuple[str, str]]:
    """Yield owner and name of a called function, as in `_Found.calls`. A call such as `table[0](…)` yields nothing."""
    match function:
        case ast.Name(id=name):
            yield "", name
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            yield owner, name
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name):
            yield "super", name


def _called(found: _Found) -> Counter[str]:
    """The number of calls of each qualified name."""
    names = {function.name for function in found.functions}
    calls: Counter[str] = Counter()
    for scope, owner, name in found.calls:
        parts = scope.split(".") if scope else []
        around = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
        if owner == "":  # search from the innermost scope outwards; methods need an owner
            wanted = [f"{outer}.{name}" for outer in around if outer not in found.classes] + [name]
        elif owner in ("self", "cls", "super"):  # super: all classes; self, cls: enclosing classes first
            own = [f"{outer}.{name}" for outer in around if outer in found.classes]
            others = sorted(f"{each}.{name}" for each in found.classes)
            wanted = others if owner == "super" else own + others
        else:
            wanted = [f"{owner}.{name}"]
        hit = next((each for each in wanted if each in names), None)
        if hit is not None:
            calls[hit] += 1
    return calls


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a body without its docstring; a `pass` if nothing else is left."""
    if not body or not isinstance(body[0], ast.Expr):
        return body
    value = body[0].value
    if not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
        return body
    return body[1:] or [ast.Pass()]
