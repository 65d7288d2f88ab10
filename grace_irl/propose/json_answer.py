"""JSON objects in a model's answer, complete or broken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

CODE_KEYS = ("reward_class_code", "code", "source", "program", "reward_code")
REASONING_KEYS = ("reasoning", "rationale", "explanation", "thought")
"""Keys that models use for the code and for the reasoning. The first key that is present is used."""

MAX_ATTEMPTS = 16
"""Maximum number of places where the search for an object starts. Each attempt may read to the end of the answer."""

_OBJECT = re.compile(r"\{\s*[\"}]")
_ESCAPES = {"n": "\n", "t": "\t", "r": "", '"': '"', "'": "'", "\\": "\\", "/": "/"}


@dataclass(frozen=True)
class JsonAnswer:
    """The content of an answer in JSON.

    Attributes:
        code: value of the first code key.
        reasoning: value of the first reasoning key, or "".
        whole: whether the object is complete.
    """

    code: str
    reasoning: str
    whole: bool = True


def read_object(text: str) -> JsonAnswer | None:
    """Find the object that has code, even inside fences or among other text; None if there is none."""
    whole = _carrying(objects(text, strict=True))
    # If a JSON string contains raw line breaks, an escaped `\n` belongs to the code. Only `_broken` leaves it there.
    return whole or _broken(text) or _carrying(objects(text))


def _carrying(values: Iterable[dict[str, object]]) -> JsonAnswer | None:
    """The first object that has code."""
    for value in values:
        for each in _inner(value):
            for key in CODE_KEYS:
                code = _text(each.get(key))
                if code:
                    return JsonAnswer(twice_escaped(code), _first(each, REASONING_KEYS))
    return None


def objects(text: str, *, strict: bool = False) -> Iterator[dict[str, object]]:
    """Find the JSON objects in a text, outermost objects only.

    Args:
        text: any text.
        strict: whether to refuse raw line breaks in strings.
    """
    decoder = json.JSONDecoder(strict=strict)
    end = 0
    for attempt, match in enumerate(_OBJECT.finditer(text)):
        if attempt == MAX_ATTEMPTS:
            return
        if match.start() < end:
            continue
        try:
            value, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def twice_escaped(code: str) -> str:
    """The code with its line breaks unescaped if they were escaped twice; otherwise the code as it is."""
    if "\n" in code or "\\n" not in code:
        return code
    try:
        value = json.loads(f'"{code}"', strict=False)
    except ValueError:
        return unescape(code)
    return str(value)


def unescape(raw: str) -> str:
    """Replace JSON's escapes, and leave all others as they are."""
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), raw)


def _inner(value: dict[str, object]) -> Iterator[dict[str, object]]:
    """An object and the objects directly inside it."""
    yield value
    yield from (each for each in value.values() if isinstance(each, dict))


def _text(value: object) -> str:
    """A text as it is, a list of lines as one text, and "" for any other value."""
    if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
        return "\n".join(line.rstrip("\n") for line in value)
    return value if isinstance(value, str) else ""


def _first(value: dict[str, object], keys: Sequence[str]) -> str:
    return next((_text(value[key]) for key in keys if key in value), "")


def _broken(text: str) -> JsonAnswer | None:
    """Read an object that is invalid JSON: its code has bare or triple quotes, or its end is missing."""
    keys = "|".join(CODE_KEYS)
    start = re.search(rf"\"(?:{keys})\"\s*:\s*(\"\"\"|'''|\"|`)", text)
    if start is None:
        return None
    mark, rest = start[1], text[start.end() :]
    others = "|".join(REASONING_KEYS)
    behind = re.search(rf"{mark}\s*,\s*\"(?:{others})\"\s*:", rest)
    end = behind.start() if behind else rest.rfind(mark)
    whole = behind is not None or (end >= 0 and rest[end + len(mark) :].strip(" \n`;,").startswith("}"))
    code = rest[:end] if whole else rest
    if code.count("\n") <= 2:
        code = unescape(code)
    elif mark == '"':  # raw line breaks: a `\n` belongs to the code's own strings
        code = code.replace('\\"', '"')
    before = re.search(rf"\"(?:{others})\"\s*:\s*\"((?:[^\"\\]|\\.)*)\"", text[: start.start()])
    return JsonAnswer(code, unescape(before[1]) if before else "", whole)


ANSWER_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "reward_class_code": {"type": "string"}},
    "required": ["reasoning", "reward_class_code"],
    "additionalProperties": False,
}
"""JSON schema of an answer in the format "json" (GRACE, appendix: reasoning, reward_class_code)."""

NOTE_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
"""JSON schema of an answer that is a text instead of a program, in the format "json"."""


def read_note(text: str) -> str:
    """The text of an answer that is no program, in the format "code" or "json"."""
    found = next(iter(objects(text)), {}) if text.lstrip().startswith("{") else {}
    said = found.get("text")
    return said if isinstance(said, str) else text
