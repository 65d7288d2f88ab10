"""Reader of valid and invalid JSON objects in a model's answer, and the JSON schemas of answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

CODE_KEYS = ("reward_class_code", "code", "source", "program", "reward_code")
REASONING_KEYS = ("reasoning", "rationale", "explanation", "thought")
"""Keys in models' answers for the program (`CODE_KEYS`) and its explanation (`REASONING_KEYS`). Earlier keys in a list
are preferred."""

MAX_ATTEMPTS = 16
"""Maximum number of opening braces at which `objects` tries to decode an object. Each try may read the whole text."""

_WHOLE = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)
"""An answer that is one fenced block."""
_OBJECT = re.compile(r"\{\s*[\"}]")
_ESCAPES = {"n": "\n", "t": "\t", "r": "", '"': '"', "'": "'", "\\": "\\", "/": "/"}


@dataclass(frozen=True)
class JsonAnswer:
    """The program and the reasoning of an answer in JSON.

    Attributes:
        code: the program's text.
        reasoning: the model's explanation; "" if there is none.
        whole: whether the end of the program was found.
    """

    code: str
    reasoning: str
    whole: bool = True


def read_object(text: str) -> JsonAnswer | None:
    """Find the JSON object with code in an answer, even inside fences or other text; None if there is none."""
    whole = _carrying(objects(text, strict=True))
    # Some answers have raw line breaks in the code, which is invalid JSON. In such code an escaped `\n` belongs to a
    # string of the program and must stay. `_broken` keeps the escape. `objects` without `strict` replaces the escape by
    # a line break, so this attempt comes last.
    return whole or _broken(text) or _carrying(objects(text))


def _carrying(values: Iterable[dict[str, object]]) -> JsonAnswer | None:
    """The program of the first object that has code, or None."""
    for value in values:
        for each in _inner(value):
            for key in CODE_KEYS:
                code = _text(each.get(key))
                if code:
                    return JsonAnswer(twice_escaped(code), _first(each, REASONING_KEYS))
    return None


def objects(text: str, *, strict: bool = False) -> Iterator[dict[str, object]]:
    """Find the valid JSON objects in a text. Objects inside other objects are not returned separately.

    Args:
        text: any text.
        strict: whether objects with raw line breaks in their strings count as invalid.
    """
    decoder = json.JSONDecoder(strict=strict)
    attempts = end = 0
    for match in _OBJECT.finditer(text):
        if match.start() < end:
            continue
        if attempts == MAX_ATTEMPTS:
            return
        attempts += 1
        try:
            value, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def twice_escaped(code: str) -> str:
    """Unescape code that a model escaped twice. Return any other code unchanged."""
    if "\n" in code or "\\n" not in code:
        return code
    try:
        value = json.loads(f'"{code}"', strict=False)
    except ValueError:
        return unescape(code)
    return str(value)


def unescape(raw: str) -> str:
    """Replace the escape sequences of `_ESCAPES` in a text. All other backslashes stay."""
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), raw)


def _inner(value: dict[str, object]) -> Iterator[dict[str, object]]:
    """Yield an object and the objects directly inside it."""
    yield value
    yield from (each for each in value.values() if isinstance(each, dict))


def _text(value: object) -> str:
    """Convert a JSON value to text. A list of lines is joined. Any value except a string or such a list gives ""."""
    if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
        return "\n".join(line.rstrip("\n") for line in value)
    return value if isinstance(value, str) else ""


def _first(value: dict[str, object], keys: Sequence[str]) -> str:
    return next((_text(value[key]) for key in keys if key in value), "")


def _broken(text: str) -> JsonAnswer | None:
    """Read the program from invalid JSON.

    Possible faults are unescaped quotes or raw line breaks in the program, triple quotes around the program, and a
    missing end.
    """
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
    elif mark == '"':  # line breaks are raw, so an escaped line break is part of a string in the code
        code = code.replace('\\"', '"')
    reasoning = re.compile(rf"\"(?:{others})\"\s*:\s*\"((?:[^\"\\]|\\.)*)\"")
    said = reasoning.search(text[: start.start()]) or (reasoning.search(rest[end:]) if behind else None)
    return JsonAnswer(code, unescape(said[1]) if said else "", whole)


ANSWER_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "reward_class_code": {"type": "string"}},
    "required": ["reasoning", "reward_class_code"],
    "additionalProperties": False,
}
"""JSON schema of an answer with a program, in the format "json". The two keys are those of GRACE's appendix."""

NOTE_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
"""JSON schema of an answer with a text instead of a program, in the format "json"."""


def read_note(text: str) -> str:
    """The text of an answer without a program: "text" or "reasoning" of a JSON object, otherwise the whole answer."""
    whole = _WHOLE.fullmatch(text)
    inner = whole[1] if whole else text
    found = next(iter(objects(inner)), {}) if inner.lstrip().startswith("{") else {}
    said = found.get("text", found.get("reasoning"))
    return said if isinstance(said, str) else text
