"""A program: source text, identity and lineage."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

Within = Literal["module", "class", "function"]


@dataclass(frozen=True)
class Definition:
    """One function or class, as the sandbox found it in a source. Its place in the source does not count.

    Attributes:
        name: qualified, such as "near" or "Reward.near".
        digest: hash of its normalised syntax tree (16 hex digits).
        within: "module", "class" for a method, "function" if a function is around it, however far out.
        calls: places in the source that call it by its name: `near(…)`, `self.near(…)`, `Reward.near(…)`, its own
            body included. Calls at run time are not counted, and what the evaluation calls has none.
        first, last: its lines, from 1, decorators included.
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
        id: hash of the normalised syntax tree (16 hex digits), computed by the parser of the source: in the
            sandbox.
        source: Python text that defines `class Reward` (docs/contract.md).
        nodes: size of the syntax tree; the shorter of two equals wins.
        operator: what made it ("initialise", "mutate", …).
        parents: ids of the programs it was made from.
        prior: how plausible its proposer finds it, log-probability relative to the proposer's best, nats; 0 without
            an opinion. Decides what few demonstrations leave open.
        functions: its functions and classes, found by the parser of the source.
        takes_action: reward_fn takes (state, action, next_state), found by the parser, too.
    """

    id: str
    source: str
    nodes: int
    operator: str = "initialise"
    parents: tuple[str, ...] = ()
    prior: float = 0.0
    functions: tuple[Definition, ...] = ()
    takes_action: bool = False

    def defines(self, name: str, within: Within) -> bool:
        """Whether it has a function or method of this plain name, its module's own or a class's."""
        return any(each.within == within and each.name.rpartition(".")[2] == name for each in self.functions)


DIGEST_CHARS = 16

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SKIPPED_FIELDS = frozenset({"ctx", "type_comment", "kind", "type_ignores"})
_LATER_FIELDS = frozenset({"type_params", "default_value"})
"""Fields that trees of Python 3.11 do not have: they count if they hold something."""


@dataclass(frozen=True)
class Identity:
    """Identity of a syntax tree.

    Attributes:
        id: digest of the whole normalised tree, 16 hex digits.
        nodes: number of its nodes, docstrings and load/store marks left out.
        functions: every function and class, in order of appearance.
    """

    id: str
    nodes: int
    functions: tuple[Definition, ...]


@dataclass
class _Found:
    """Definitions and calls that a pass over a tree meets.

    Attributes:
        functions: without their calls, in order of appearance.
        classes: qualified names.
        calls: scope, owner ("" for a plain name) and name of each call by name.
    """

    functions: list[Definition] = field(default_factory=list)
    classes: set[str] = field(default_factory=set)
    calls: list[tuple[str, str, str]] = field(default_factory=list)


def identify(tree: ast.Module) -> Identity:
    """Hash a tree bottom-up, so that the digests of all functions fall out of one pass.

    Raises:
        RecursionError: for a tree deeper than the interpreter's recursion limit.
    """
    found = _Found()
    digest, nodes = _digest(tree, "", found)
    calls = _called(found)
    functions = (replace(function, calls=calls[function.name]) for function in found.functions)
    return Identity(digest.hex()[:DIGEST_CHARS], nodes, tuple(functions))


def text_id(source: str) -> str:
    """The id of a source that does not parse: the hash of its text, never equal to a tree's."""
    text = b"text:" + source.encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:DIGEST_CHARS]


def _digest(node: ast.AST, scope: str, found: _Found) -> tuple[bytes, int]:
    """Digest and node count of a subtree; adds what it defines and calls to `found`."""
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
    count = 1
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
                child_digest, child_count = _digest(child, inner, found)
                parts.append(b"\x01" + child_digest.hex().encode())
                count += child_count
            else:
                # Tells 1 from 1.0 from True, and -0.0 from 0.0. `repr` spells a letter or escapes it as its Python
                # knows it or not.
                parts.append(b"\x02" + ascii(child).encode())
    digest = hashlib.blake2b(b"\x03".join(parts), digest_size=16).digest()
    if slot >= 0:
        found.functions[slot] = replace(found.functions[slot], digest=digest.hex()[:DIGEST_CHARS])
    return digest, count


def _joined(values: list[ast.expr]) -> list[ast.expr]:
    """Parts of an f-string, without the empty and the neighbouring texts that some parsers leave."""
    joined: list[ast.expr] = []
    for value in values:
        last = joined[-1] if joined else None
        if isinstance(value, ast.Constant) and isinstance(last, ast.Constant):
            joined[-1] = ast.Constant(str(last.value) + str(value.value))
        elif not (isinstance(value, ast.Constant) and value.value == ""):
            joined.append(value)
    return joined


def _within(scope: str, classes: set[str]) -> Within:
    """The enclosing kind of a definition in this scope."""
    parts = scope.split(".") if scope else []
    around = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    return "module" if not around else "class" if classes.issuperset(around) else "function"


def _callee(function: ast.expr) -> Iterable[tuple[str, str]]:
    """Owner and name of what is called, if the call says them."""
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
        if owner == "":  # a name is looked up outwards, past the bodies of classes
            wanted = [f"{outer}.{name}" for outer in around if outer not in found.classes] + [name]
        elif owner in ("self", "cls", "super"):  # its own class's method, else one that it inherits
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
    """A body without its docstring; `pass` if nothing else is left, as its author would have to write."""
    if not body or not isinstance(body[0], ast.Expr):
        return body
    value = body[0].value
    if not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
        return body
    return body[1:] or [ast.Pass()]
