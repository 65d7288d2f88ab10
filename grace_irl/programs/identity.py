"""Which program is which: hashes of normalised syntax trees.

Comments, layout, docstrings and the spelling of literals (`'a'` or `"a"`, `1_000` or `1000`) do not count;
names do.
"""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass

DIGEST_CHARS = 16
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SKIPPED_FIELDS = frozenset({"ctx", "type_comment", "kind", "type_ignores"})


@dataclass(frozen=True)
class Identity:
    """What a syntax tree is.

    Attributes:
        id: digest of the whole normalised tree, 16 hex digits.
        nodes: number of its nodes, docstrings and load/store marks left out.
        functions: `(qualified name, digest)` of every function and class, in order of appearance.
    """

    id: str
    nodes: int
    functions: tuple[tuple[str, str], ...]


def identify(tree: ast.Module) -> Identity:
    """Hash a tree bottom-up, so that the digests of all functions fall out of one pass.

    Raises:
        RecursionError: for a tree deeper than the interpreter's recursion limit.
    """
    functions: list[tuple[str, str]] = []
    digest, nodes = _digest(tree, "", functions)
    return Identity(digest.hex()[:DIGEST_CHARS], nodes, tuple(functions))


def text_id(source: str) -> str:
    """The id of a source that does not parse: the hash of its text, never equal to a tree's."""
    text = b"text:" + source.encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:DIGEST_CHARS]


def _digest(node: ast.AST, scope: str, functions: list[tuple[str, str]]) -> tuple[bytes, int]:
    """Digest and node count of a subtree; appends what it defines to `functions`."""
    inner, slot = scope, -1
    if isinstance(node, _DEFINITIONS):
        inner = f"{scope}.{node.name}" if scope else node.name
        slot = len(functions)
        functions.append((inner, ""))
    parts: list[bytes] = [type(node).__name__.encode()]
    count = 1
    for name, value in ast.iter_fields(node):
        if name in _SKIPPED_FIELDS:
            continue
        if name == "body" and isinstance(node, (ast.Module, *_DEFINITIONS)):
            value = _without_docstring(value)
        parts.append(b"\x00" + name.encode())
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                child_digest, child_count = _digest(child, inner, functions)
                parts.append(b"\x01" + child_digest.hex().encode())
                count += child_count
            else:
                # repr tells 1 from 1.0 from True, and -0.0 from 0.0
                parts.append(b"\x02" + repr(child).encode("utf-8", "surrogatepass"))
    digest = hashlib.blake2b(b"\x03".join(parts), digest_size=16).digest()
    if slot >= 0:
        functions[slot] = (inner, digest.hex()[:DIGEST_CHARS])
    return digest, count


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """A body without its docstring; `pass` where nothing else is left, as its author would have to write."""
    if not body or not isinstance(body[0], ast.Expr):
        return body
    value = body[0].value
    if not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
        return body
    return body[1:] or [ast.Pass()]
