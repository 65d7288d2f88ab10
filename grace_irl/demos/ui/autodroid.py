"""Reader for records of the agent AutoDroid: screens of an app as HTML-like text, in YAML.

A file is one episode, `{records: [{State: …, Choice: …, Input: …, …}], task_name: …}`. The `State` of each record is
one state: a flat list of elements, such as `<button id=3 text='Search'>July<br>2023</button>`. Each element becomes an
XML node. The tag determines the class and the flags:

| tag | class | flags |
|---|---|---|
| `button` | `android.widget.Button` | clickable |
| `checkbox` | `android.widget.CheckBox` | clickable, checkable, checked if `checked=True` |
| `input` | `android.widget.EditText` | clickable, focusable |
| `p` | `android.widget.TextView` | |

The content of the element becomes the node's attribute `text`, with a line break for each `<br>`. The element's
attribute `text='…'` becomes the content description, and its `id` becomes the index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from grace_irl.demos.memory import Memory
from grace_irl.demos.ui.androidworld import flat
from grace_irl.demos.ui.episode import EpisodeSource, ScreenEpisode
from grace_irl.demos.ui.texts import read_text
from grace_irl.errors import InputError
from grace_irl.states.ui import markup

MAX_BYTES = 4 * 1024 * 1024
"""Maximum size of a file in bytes. Real files have 20 to 100 KB."""

MAX_DEPTH = 16
"""Maximum nesting depth of the YAML. Records have 4 levels."""

CLASSES: dict[str, dict[str, object]] = {
    "button": {"class": "android.widget.Button", "clickable": True},
    "checkbox": {"class": "android.widget.CheckBox", "clickable": True, "checkable": True},
    "input": {"class": "android.widget.EditText", "clickable": True, "focusable": True},
    "p": {"class": "android.widget.TextView"},
}

UNNAMED = "utg"
"""Task name that AutoDroid gives to an exploration without a task."""

_OPENING = re.compile(r"\s*<(button|checkbox|input|p) +id=(\d{1,9})(?: +checked=(True|False))?(?: +text=')?")


def open_records(path: Path, memory: Memory) -> EpisodeSource:
    """Open a file of records.

    Args:
        path: the file.
        memory: memory limit of the set.

    Raises:
        InputError: not YAML, not AutoDroid's records, or a state that cannot be read.
    """

    def records() -> Mapping[str, Any]:
        found = read_yaml(read_text(path, memory, MAX_BYTES), str(path))
        if not isinstance(found, Mapping) or not isinstance(found.get("records"), list):
            raise InputError(f"{path}: no list 'records'; expected the YAML of AutoDroid")
        return found

    def screens() -> Iterator[str]:
        for number, record in enumerate(records()["records"]):
            where = f"{path}, record {number}"
            state = record.get("State") if isinstance(record, Mapping) else None
            if not isinstance(state, str):
                raise InputError(f"{where}: no text 'State'; expected one, such as \"<button id=0>OK</button>\"")
            yield flat(read_elements(state, where), where, memory)

    name = records().get("task_name")
    task = "" if not isinstance(name, str) or name == UNNAMED else markup.rinse(name)
    return EpisodeSource(path, ScreenEpisode(screens, " ".join(task.split())))


def read_elements(state: str, where: str) -> list[dict[str, object]]:
    """The attributes of each element of a state.

    Raises:
        InputError: the state contains anything but elements.
    """
    elements: list[dict[str, object]] = []
    at = 0
    while opening := _OPENING.match(state, at):
        tag, index, checked = opening.groups()
        end = state.find(f"</{tag}>", opening.end())
        inside, described = opening.end(), ""
        if opening[0].endswith("'"):
            quote = state.find("'>", opening.end(), end)
            inside, described = quote + 1, state[opening.end() : quote]
        begin = state.find(">", inside, end)
        if end < 0 or begin < 0 or state[inside:begin].strip(" ") or inside == 0:
            raise InputError(
                f"{where}: {opening[0].strip()[:40]!r} is not closed; expected <{tag} id={index}>…</{tag}>"
            )
        elements.append(
            {
                "index": index,
                "text": state[begin + 1 : end].replace("<br>", "\n"),
                "content-desc": described,
                "checked": checked == "True",
                **CLASSES[tag],
            }
        )
        at = end + len(f"</{tag}>")
    if state[at:].strip():
        raise InputError(f"{where}: {state[at:].strip()[:40]!r}; expected <button>, <checkbox>, <input> or <p>")
    return elements


def read_yaml(text: str, where: str) -> Any:
    """The content of a YAML file as mappings, lists and texts.

    The content is built from the parser's events, so YAML tags cannot create objects. Aliases are refused, because they
    may expand to any amount of data.

    Raises:
        InputError: not YAML, an alias, or nesting deeper than `MAX_DEPTH`.
    """
    try:
        import yaml
    except ImportError:
        raise InputError(
            f"{where}: YAML needs PyYAML, which is not installed; install the extra, pip install 'grace-irl[android]'"
        ) from None
    done: list[Any] = []
    open_: list[list[Any]] = [done]  # unfinished collections, outermost first; a mapping holds key, value, key, …
    try:
        for event in yaml.parse(markup.rinse(text), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(event, yaml.AliasEvent):
                raise InputError(f"{where}: the alias *{event.anchor[:40]}; expected YAML without aliases")
            if isinstance(event, yaml.ScalarEvent):
                open_[-1].append(event.value)
            elif isinstance(event, yaml.CollectionStartEvent):
                open_.append([])
                if len(open_) > MAX_DEPTH:
                    raise InputError(f"{where}: YAML nested deeper than {MAX_DEPTH}; expected the records of AutoDroid")
            elif isinstance(event, yaml.CollectionEndEvent):
                parts = open_.pop()
                open_[-1].append(_mapping(parts) if isinstance(event, yaml.MappingEndEvent) else parts)
    except yaml.YAMLError as error:
        raise InputError(f"{where}: not YAML ({' '.join(str(error).split())[:160]}); expected a whole file") from None
    if len(done) != 1:
        raise InputError(f"{where}: {len(done)} YAML documents; expected one")
    return done[0]


def _mapping(parts: list[Any]) -> dict[str, Any]:
    return {key: value for key, value in zip(parts[::2], parts[1::2], strict=True) if isinstance(key, str)}
