"""Changes that know what they change: bytes, texts, JSON values, XML, and the wire format of protocol buffers."""

from __future__ import annotations

import re
from typing import Any

from fuzzing.draw import Draw, change

TEXTS = (
    *("", " ", "\n", "\0", "\x1b[2J", "\x7f", "\u2028", "\u202e", "\ufffe", "\U0010ffff", "\ud800", "é" * 40),
    *("<", ">", "&", "&amp;", "&#0;", "&#x110000;", "&a;", "]]>", "<!--", '"', "'", "\\", "\\x", "\\U99999999"),
    *("[0,0][1,1]", "[-1,9][0,0]", "[2147483648,0][99999999999,0]", "[1.5,0][2,2]", "[0,0]", "[" * 90, "a" * 5000),
    *("true", "True", "FALSE", "1", "NaN", "-0", "1e999", "٣", "null", "8:25 AM", "../../a", "%s{0}", "ui", "expert"),
)
NUMBERS = (0, -1, 1, 2**31, 2**63 - 1, 2**64, -(2**63) - 1, 10**400, 1.5, 1e308, float("nan"), float("inf"), -0.0)
KEYS = ("text", "bounds", "children", "result", "class", "x2", "role", "kind", "nodes", "__class__", "", "records")


def scalar(rng: Draw) -> Any:
    """Anything that JSON can hold and is not made of parts."""
    return rng.choice((None, True, False, rng.choice(NUMBERS), rng.choice(TEXTS), rng.choice(TEXTS)))


@change
def in_bytes(rng: Draw, data: bytes) -> bytes:
    """Flips, cuts, drops, doubles and inserts."""
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + rng.choice((1, 2, 8, 64)))
    kind = rng.randrange(6)
    if kind == 0:
        return data[:at] + bytes(byte ^ (1 << rng.randrange(8)) for byte in data[at : at + 1]) + data[at + 1 :]
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data[:at] + data[end:]
    if kind == 3:
        return data[:end] + data[at:]
    if kind == 4:
        return data[:at] + rng.randbytes(rng.choice((1, 2, 4, 8))) + data[at:]
    return data[:at] + rng.choice((b"\0", b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\xef\xbb\xbf")) + data[end:]


@change
def in_text(rng: Draw, text: str, token: re.Pattern[str]) -> str:
    """Replaces, drops, doubles, swaps or splits tokens."""
    found = [match.span() for match in token.finditer(text)]
    if not found:
        return text + rng.choice(TEXTS)
    start, end = rng.choice(found)
    kind = rng.randrange(6)
    if kind == 0:
        return text[:start] + rng.choice(TEXTS) + text[end:]
    if kind == 1:
        return text[:start] + text[end:]
    if kind == 2:
        return text[:end] + text[start:end] * rng.choice((1, 2, 300)) + text[end:]
    if kind == 3:
        other, last = rng.choice(found)
        return text[:start] + text[other:last] + text[end:]
    if kind == 4:
        return text[: rng.randrange(start, end + 1)] + rng.choice(TEXTS) + text[rng.randrange(start, end + 1) :]
    return text[:start] + str(rng.choice(NUMBERS)) + text[end:]


@change
def in_value(rng: Draw, value: Any) -> Any:
    """The value with something in it replaced, dropped, doubled, renamed, wrapped or put elsewhere."""
    if rng.random() < 0.02:
        return deep(rng, value)
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        kind = rng.randrange(8)
        if kind == 0:
            return {name: part for name, part in value.items() if name != key}
        if kind == 1:
            return {**value, rng.choice(KEYS): value[key]}
        if kind == 2:
            return {**value, rng.choice(KEYS): scalar(rng)}
        return {**value, key: in_value(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        kind = rng.randrange(8)
        if kind == 0:
            return value[:at] + value[at + 1 :]
        if kind == 1:
            return value[:at] + value[at : at + 1] * rng.choice((2, 3, 40)) + value[at + 1 :]
        if kind == 2:
            return [*value[:at], scalar(rng), *value[at:]]
        return [*value[:at], in_value(rng, value[at]), *value[at + 1 :]]
    return rng.choice((scalar(rng), scalar(rng), [value], {rng.choice(KEYS): value}, [], {}))


def deep(rng: Draw, value: Any) -> Any:
    """The value inside many lists or objects."""
    for _ in range(rng.choice((10, 300, 900))):
        value = [value] if rng.random() < 0.3 else {rng.choice(("children", "a", "root")): [value]}
    return value


_TAG = re.compile(r"<[^>]*>")
_ATTRIBUTE = re.compile(r' [\w-]+="[^"]*"')
_VALUE = re.compile(r'(?<==")[^"]*')
_INSERTS = (
    *('<!DOCTYPE a [<!ENTITY b "c">]>', '<!DOCTYPE a SYSTEM "file:///etc/hostname">', "<!ENTITY b 'c'>", "&b;", "&lt;"),
    *(
        "<!-- c -->",
        "<!-- -- -->",
        "<?php a?>",
        "<?xml version='1.1'?>",
        "<![CDATA[a]]>",
        "<![CDATA[",
        "text",
        "\ufeff",
    ),
    *("<hierarchy>", "</hierarchy>", "<a:node/>", '<node xmlns:a="b" a:text="c"/>', '<node xml:lang="a"/>', "</node>"),
)


@change
def in_xml(rng: Draw, text: str) -> str:
    """Changes an attribute, a tag, the nesting, or puts in what a screen never has."""
    kind = rng.randrange(8)
    if kind < 3:
        return in_text(rng, text, _VALUE)
    if kind == 3:
        return in_text(rng, text, _ATTRIBUTE)
    if kind == 4:
        return in_text(rng, text, _TAG)
    places = [match.end() for match in _TAG.finditer(text)] or [0]
    at = rng.choice([0, *places])
    if kind == 5:
        depth = rng.choice((2, 20, 250, 5000)) if rng.random() < 0.3 else 3
        end = rng.choice([place for place in places if place >= at] or [len(text)])
        return text[:at] + "<node>" * depth + text[at:end] + "</node>" * depth + text[end:]
    if kind == 6:
        return text[:at] + rng.choice(_INSERTS) + text[at:]
    return re.sub(r"node|text|bounds", lambda found: rng.choice((found[0], found[0].upper(), "a")), text, count=2)


def encoded(rng: Draw, text: str) -> bytes:
    """Nearly always UTF-8; else another encoding, with or without a declaration, right or wrong."""
    if rng.random() < 0.85:
        return text.encode("utf-8", "surrogatepass")
    name = rng.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-7", "utf-8-sig", "cp037"))
    if rng.random() < 0.5:
        text = f'<?xml version="1.0" encoding="{rng.choice((name, "utf-8", "x" * 50, "a b"))}"?>{text}'
    return text.encode(name, "replace")


Field = tuple[int, int, Any]
"""Number, wire type, and value: a whole number, bytes, or the fields of a message."""


def fields(data: bytes) -> list[Field] | None:
    """The fields of a message, the messages in it too; None if it is none."""
    found: list[Field] = []
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if at < 0 or number == 0 or number > 1000:
            return None
        value: Any
        if kind == 0:
            value, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at : at + size], at + size
        elif kind == 2:
            length, at = _varint(data, at)
            if at < 0 or at + length > len(data):
                return None
            value = data[at : at + length]
            value = (fields(value) or value) if length > 1 else value
            at += length
        else:
            return None
        if at < 0 or at > len(data):
            return None
        found.append((number, kind, value))
    return found


def wire(rng: Draw, message: list[Field], wrong: float = 0.0) -> bytes:
    """The bytes of a message; a share `wrong` of its lengths and varints is not as it should be."""
    out = bytearray()
    for number, kind, value in message:
        out += varint(number << 3 | kind)
        if kind == 0:
            out += varint(value if isinstance(value, int) else 0)
            if rng.random() < wrong:
                out[-1] |= 0x80  # goes on into what follows
        elif kind == 2:
            part = wire(rng, value, wrong) if isinstance(value, list) else bytes(value)
            length = rng.choice((0, len(part) + 1, 2**31, 2**63)) if rng.random() < wrong else len(part)
            out += varint(length) + part
        else:
            out += value if isinstance(value, bytes) else b""
    return bytes(out)


@change
def in_message(rng: Draw, message: list[Field]) -> list[Field]:
    """A field dropped, doubled, renumbered, of another type, or with another value; or nested deep."""
    if not message:
        return [(rng.randrange(1, 20), 0, rng.choice((0, 1, 2**63)))]
    at = rng.randrange(len(message))
    number, kind, value = message[at]
    action = rng.randrange(10) if not isinstance(value, list) or rng.random() < 0.2 else 9  # rather deep inside
    new: list[Field] = [(number, kind, value)]
    if action == 0:
        new = []
    elif action == 1:
        new = new * rng.choice((2, 3, 50))
    elif action == 2:
        new = [(rng.randrange(1, 40), kind, value)]
    elif action == 3:
        new = [(number, 0, rng.choice((0, 1, 2**31, 2**63, 2**64 - 1)))]
    elif action == 4:
        new = [(number, rng.choice((1, 3, 4, 5, 6)), rng.randbytes(8))]
    elif isinstance(value, list) and rng.random() < 0.03:
        for _ in range(rng.choice((5, 80, 200))):
            new = [(number, 2, new)]
    elif isinstance(value, list):
        new = [(number, kind, in_message(rng, value))]
    elif kind == 0:
        new = [(number, 0, rng.choice((0, 1, value + 1, 2**31 - 1, 2**31, 2**63, 2**64 - 1)))]
    elif kind == 2:
        text = rng.choice(TEXTS).encode("utf-8", "surrogatepass")
        new = [(number, 2, rng.choice((text, in_bytes(rng, value), b"")))]
    return [*message[:at], *new, *message[at + 1 :]]


def varint(number: int) -> bytes:
    """A whole number as protocol buffers write it."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for place in range(10):
        if at + place >= len(data):
            break
        byte = data[at + place]
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number, at + place + 1
    return 0, -1
