"""Reader for data of the benchmark AndroidWorld: histories of agents, and lists of screen elements.

A history is a JSON file (plain or gzipped) with a list of steps. Each step is `{"task_goal": …, "result": …,
"ui_description": [elements]}`. The elements describe the screen before the step's action, so T steps give T states.
A text file with one list of elements is an episode of one state. A state is XML without nested nodes, because the list
of elements is flat. An element has one of three forms:

- the agent's text for the element, with a rectangle: `{"ui_description": 'UI element 0: {"index": 0, …}', "ui_bbox":
  [x_min, x_max, y_min, y_max]}`;
- an object with the fields of AndroidWorld's class `UIElement`;
- Python's text for an object of this class, `UIElement(text='…', …)`.

The field `result` of a step states whether the whole episode succeeded. `Trajectory.terminated` is True for a
successful episode. If the user gives no role, a successful episode is an expert, and a failed episode is negative.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from grace_irl.demos.memory import Memory
from grace_irl.demos.ui.episode import EpisodeSource, ScreenEpisode, success_of
from grace_irl.demos.ui.fields import attributes
from grace_irl.demos.ui.texts import read_text
from grace_irl.errors import InputError
from grace_irl.states.ui import markup

_HEAD = re.compile(r'\s*UI element \d+: \{"index": \d+')
_FLAG = re.compile(r', "(is_\w{1,40})": (True|False)')
_TEXTS = ("text", "content_description", "hint_text", "tooltip")

_NUMBER = r"-?\d{1,15}(?:\.\d{1,20})?(?:e[-+]?\d{1,3})?"
_ELEMENT = re.compile(r"[\s,\[\]]*UIElement\(")
_FIELD = re.compile(
    r"\s*(?P<name>\w{1,60})\s*=\s*(?:"
    r"(?P<text>'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\")"
    rf"|(?P<number>{_NUMBER})"
    r"|(?P<word>True|False|None)"
    r"|BoundingBox\((?P<box>[^()]{0,200})\)"
    r")\s*(?P<end>,|\))",
    re.DOTALL,
)
_LIMIT = re.compile(rf"(x_min|x_max|y_min|y_max)\s*=\s*({_NUMBER})\s*(?:,|$)")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}


def is_history(found: object) -> bool:
    """Whether the content of a JSON file is a list of history steps."""
    return (
        isinstance(found, list)
        and bool(found)
        and all(isinstance(step, Mapping) and "ui_description" in step for step in found)
    )


def history(path: Path, read: Callable[[], Any], memory: Memory) -> ScreenEpisode:
    """The episode of a history. The screens are read on demand.

    Args:
        path: file of the history.
        read: function that reads the content of the file.
        memory: memory limit of the whole set of demonstrations.

    Raises:
        InputError: not a history, or the steps of several episodes.
    """

    def steps() -> list[Mapping[str, Any]]:
        found = read()
        if not is_history(found):
            raise InputError(f"{path}: a list; expected the steps of a history, each with 'ui_description'")
        return list(found)

    def screens() -> Iterator[str]:
        for number, step in enumerate(steps()):
            yield _screen(step["ui_description"], f"{path}, step {number}", memory)

    found = steps()
    goals = dict.fromkeys(str(step.get("task_goal") or "") for step in found)
    results = dict.fromkeys(success_of(step.get("result"), path) for step in found)
    if len(goals) > 1 or len(results) > 1:
        raise InputError(f"{path}: steps of several goals or results; expected one episode in a file: split it")
    return ScreenEpisode(screens, markup.rinse(*goals).strip(), success=next(iter(results)))


def open_elements(path: Path, memory: Memory) -> EpisodeSource:
    """Open a file with one element list, as an episode of one state.

    Args:
        path: the file.
        memory: memory limit of the whole set of demonstrations.

    Raises:
        InputError: not an element list.
    """

    def screens() -> Iterator[str]:
        yield flat(read_elements(read_text(path, memory, markup.MAX_BYTES), str(path)), str(path), memory)

    return EpisodeSource(path, ScreenEpisode(screens))


def flat(elements: list[dict[str, object]], where: str, memory: Memory) -> str:
    """The XML of a screen, with one node per element and without nesting.

    Args:
        elements: attributes of each element.
        where: file and state, for messages.
        memory: memory limit of the whole set of demonstrations.

    Raises:
        InputError: too many elements for a screen or for the memory limit, or XML that is too long for a screen.
    """
    if len(elements) > markup.MAX_NODES:
        raise InputError(f"{where}: {len(elements):,} elements; expected at most {markup.MAX_NODES:,} in a screen")
    memory.require(markup.NODE_BYTES * len(elements), f"{where}: {len(elements):,} elements")
    root = markup.hierarchy()
    for element in elements:
        markup.add(root, element)
    return markup.write(root, where)


def read_elements(text: str, where: str) -> list[dict[str, object]]:
    """The attributes of each `UIElement(…)` in a text with one element per line, or in a printed Python list.

    Raises:
        InputError: the text contains anything but elements.
    """
    if text.count("UIElement(") > markup.MAX_NODES:
        raise InputError(f"{where}: more than {markup.MAX_NODES:,} elements; expected those of one screen")
    elements: list[dict[str, object]] = []
    at = 0
    while start := _ELEMENT.match(text, at):
        at = start.end()
        fields: dict[str, Any] = {}
        while field := _FIELD.match(text, at):
            at = field.end()
            fields[field["name"]] = _value(field, where)
            if field["end"] == ")":
                break
        else:
            raise InputError(f"{where}: cannot be read at character {at:,}; expected UIElement(text='…', …)")
        elements.append(attributes(f"{where}, element {len(elements)}", fields))
    if not elements or text[at:].strip(" \t\r\n,[]"):
        raise InputError(
            f"{where}: {text[at : at + 40].strip()!r} at character {at:,}; expected UIElement(text='…', …)"
        )
    return elements


def read_description(text: str, where: str) -> dict[str, Any]:
    """The fields of an element, parsed from the text that AndroidWorld's agents see.

    Values in this text are not escaped, and may contain quotes and line breaks. So the flags (fields such as
    `is_clickable`) are parsed first, from the end of the text. In the rest of the text, each value ends before the next
    field name.

    Raises:
        InputError: a text of another form.
    """
    head = _HEAD.match(text)
    end = len(text.rstrip()) - 1
    if not head or text[end : end + 1] != "}":
        raise InputError(f"{where}: {text[:60]!r}; expected 'UI element 0: {{\"index\": 0, …}}'")
    fields: dict[str, Any] = {}
    while (at := text.rfind(', "is_', head.end(), end)) >= 0 and (flag := _FLAG.fullmatch(text, at, end)):
        fields[flag[1]] = flag[2] == "True"
        end = at
    begins: list[tuple[str, int, int]] = []
    at = head.end()
    for name in _TEXTS:
        found = text.find(f', "{name}": "', at, end)
        if found >= 0:
            at = found + len(f', "{name}": "')
            begins.append((name, found, at))
    if (begins[0][1] if begins else end) != head.end() or (begins and text[end - 1] != '"'):
        raise InputError(f"{where}: {text[head.end() : head.end() + 60]!r}; expected texts, and then flags")
    ends = [found for _, found, _ in begins[1:]] + [end]
    for (name, _, begin), behind in zip(begins, ends, strict=False):
        fields[name] = text[begin : behind - 1]
    return fields


def _screen(elements: object, where: str, memory: Memory) -> str:
    if isinstance(elements, str):
        return flat(read_elements(elements, where), where, memory)
    if not isinstance(elements, list):
        raise InputError(f"{where}: 'ui_description' is {reprlib.repr(elements)}; expected a list of elements")
    read = [_element(element, f"{where}, element {number}") for number, element in enumerate(elements)]
    return flat(read, where, memory)


def _element(element: object, where: str) -> dict[str, object]:
    if isinstance(element, Mapping) and isinstance(element.get("ui_description"), str):
        box = element.get("ui_bbox")
        limits = dict(zip(("x_min", "x_max", "y_min", "y_max"), box, strict=False)) if isinstance(box, list) else {}
        return attributes(where, read_description(element["ui_description"], where), {"bbox": limits})
    if isinstance(element, Mapping):
        return attributes(where, element)
    if isinstance(element, str) and element.lstrip().startswith("UIElement("):
        read = read_elements(element, where)
        if len(read) == 1:
            return read[0]
    if isinstance(element, str):
        return attributes(where, read_description(element, where))
    raise InputError(f"{where}: {reprlib.repr(element)}; expected an object or a text")


def _value(field: re.Match[str], where: str) -> Any:
    if field["text"] is not None:
        return _unescaped(field["text"][1:-1], where)
    if field["number"] is not None:
        return float(field["number"])
    if field["box"] is not None:
        return {name: float(number) for name, number in _LIMIT.findall(field["box"])}
    return {"True": True, "False": False, "None": None}[field["word"]]


def _unescaped(text: str, where: str) -> str:
    def character(escape: re.Match[str]) -> str:
        code = escape[1] or escape[2] or escape[3]
        if code is None:
            return _PLAIN_ESCAPES.get(escape[4], escape[4])
        if int(code, 16) > 0x10FFFF:
            raise InputError(f"{where}: the escape \\U{code}; expected a character of Unicode")
        return chr(int(code, 16))

    return _ESCAPE.sub(character, text)
