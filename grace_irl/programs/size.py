"""The size of a reward program: the description length, in bits, of the code that decides the reward.

The size ignores docstrings, comments, layout, the spelling of names, and functions that decide no reward, such as
`debug_fn`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from decimal import Decimal

NODE = 3.0
"""Bits of an operator, call, statement or other node of the syntax tree."""
DIGIT = math.log2(10)
MOST_BITS = 4096
CHARACTER = 5.0
"""Bits of a character in a string constant."""

_FREE = (ast.expr_context, ast.Load, ast.Module, ast.Expr, ast.arguments, ast.alias)
_UNREAD = frozenset({"annotation", "returns", "type_params", "ctx"})
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def description_length(tree: ast.Module) -> int:
    """The size of a program in bits.

    A node of the syntax tree costs `NODE` bits. A name adds log2(n) bits, where n is the number of different names and
    texts (string constants) in the code that counts. A number adds bits for its digits. The first occurrence of a text
    adds `CHARACTER` bits for each character, and each later one log2(n) bits. A function counts if it is `reward_fn` or
    a method such as `__sub__`, or if its name occurs in code that counts; code outside functions always counts.
    """
    nodes = [node for part in _reached(tree) for node in _walked(part)]
    names = {name for node in nodes for name in _names(node)}
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    choice = math.log2(max(len(names) + len({*texts}), 2))
    seen: set[str] = set()
    bits = 0.0
    for node in nodes:
        if isinstance(node, _FREE):
            continue
        bits += NODE + choice * len(_names(node))
        if isinstance(node, ast.Constant):
            if isinstance(node.value, (str, bytes)):
                text = str(node.value)
                bits += choice if text in seen else CHARACTER * len(text)
                seen.add(text)
            else:
                bits += _number_bits(node.value)
    return round(bits)


def _number_bits(value: object) -> float:
    """The bits of a number, for its significant digits and its exponent; 1 for other constants, such as True.

    A whole number of more than `MOST_BITS` bits has the length of its binary form.
    """
    if isinstance(value, int) and value.bit_length() > MOST_BITS:  # its decimal form takes long to compute
        return float(value.bit_length())
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return 1.0
    digits, _, exponent = f"{Decimal(repr(value)):e}".lower().partition("e")
    kept = digits.replace(".", "").strip("-0")
    return DIGIT * max(len(kept), 1) + math.log2(1 + abs(int(exponent or 0)))


def _reached(tree: ast.Module) -> list[ast.AST]:
    """The parts of a program that decide the reward, in no particular order."""
    defined: dict[str, list[ast.AST]] = {}
    parts: list[ast.AST] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            kept = [each for each in node.body if isinstance(each, _DEFINITIONS)]
            for each in kept:
                defined.setdefault(each.name, []).append(each)
            parts += [each for each in node.body if each not in kept]
            parts += [*node.bases, *node.decorator_list]
        elif isinstance(node, _DEFINITIONS):
            defined.setdefault(node.name, []).append(node)
        else:
            parts.append(node)
    found = list(parts)
    wanted = [
        "reward_fn",
        *(name for name in defined if name.startswith("__")),
    ]  # operators call methods such as __sub__
    wanted += [name for part in parts for node in _walked(part) for name in _called(node)]
    while wanted:
        for part in defined.pop(wanted.pop(), []):
            found.append(part)
            wanted += [name for node in _walked(part) for name in _called(node)]
    return found


def _called(node: ast.AST) -> tuple[str, ...]:
    """Names by which a node may reach a definition. A text counts as a name, because `getattr` may look it up."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return (node.value,)
    return _names(node)


def _walked(root: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a subtree, without docstrings, annotations and imports."""
    left = [root]
    while left:
        node = left.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        yield node
        for name, value in ast.iter_fields(node):
            if name not in _UNREAD:
                left += [
                    child for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST)
                ]


def _names(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
            return (name,)
    return ()
