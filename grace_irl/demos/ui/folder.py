"""Reads an episode that is a folder: one uiautomator dump for each step, and a task file beside them.

    episode/task.json               {"task": "Set an alarm …", "role": "expert", "success": true}; all optional
    episode/hierarchy/step_1.xml    or in the folder itself; steps are in the order of the numbers in their names
    episode/screenshots/step_1.png  or beside the dump; png, jpg, jpeg or webp; optional

Without a task file, a folder is an episode if it holds dumps and nothing else that could be demonstrations.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from grace_irl.demos.links import require_inside
from grace_irl.demos.memory import Memory
from grace_irl.demos.screenshots import beside
from grace_irl.demos.source import stated_role
from grace_irl.demos.ui.episode import EpisodeSource, ScreenEpisode
from grace_irl.demos.ui.texts import DUMPS, TASK, read_bytes, read_json, steps
from grace_irl.errors import InputError
from grace_irl.states.ui import markup


def open_folder(folder: Path, memory: Memory) -> EpisodeSource:
    """An episode that is a folder.

    Args:
        folder: of it.
        memory: of the set.

    Raises:
        InputError: no dumps, or a dump, picture or task file that cannot be used or lies elsewhere.
    """
    dumps = steps(folder)
    if not dumps:
        raise InputError(f"{folder}: no screens; expected .xml files of uiautomator, there or in {DUMPS}/")
    task = [folder / TASK] if (folder / TASK).is_file() else []
    for file in (*dumps, *task):
        require_inside(file, folder)
        if not file.is_file():
            raise InputError(f"{file}: not a file; expected the .xml of a screen")
    about = read_json(folder / TASK, memory) if task else {}
    if not isinstance(about, Mapping):
        raise InputError(f'{folder / TASK}: not an object; expected one such as {{"task": "Set an alarm"}}')
    return EpisodeSource(folder, _episode(dumps, about, folder / TASK, memory))


def open_dump(path: Path, memory: Memory) -> EpisodeSource:
    """A single dump, as an episode of one state.

    Args:
        path: of it.
        memory: of the set.

    Raises:
        InputError: it cannot be used.
    """
    return EpisodeSource(path, _episode([path], {}, path, memory))


def _episode(dumps: list[Path], about: Mapping[str, Any], where: Path, memory: Memory) -> ScreenEpisode:
    def read() -> Iterator[str]:
        for dump in dumps:
            yield markup.write(markup.parse(read_bytes(dump, memory, markup.MAX_BYTES), str(dump)), str(dump))

    pictures = tuple(beside(dump) for dump in dumps)
    return ScreenEpisode(
        read,
        instruction=instruction_of(about, where),
        role=None if about.get("role") is None else stated_role(about["role"], str(where)),
        success=success_of(about.get("success"), where),
        screenshots=pictures if any(pictures) else (),
    )


def instruction_of(about: Mapping[str, Any], where: Path) -> str:
    """The goal that a source states, without the blanks around it; "" where it states none.

    Raises:
        InputError: it is no text.
    """
    for key in ("task", "goal", "instruction"):
        value = about.get(key)
        if value is not None:
            if not isinstance(value, str):
                raise InputError(f"{where}: {key!r} is {reprlib.repr(value)}; expected a text")
            return markup.rinse(value).strip()
    return ""


def success_of(value: object, where: Path) -> bool | None:
    """Whether an episode reached its goal, where a source says so.

    Raises:
        InputError: neither a truth nor null.
    """
    if value is None or isinstance(value, bool):
        return value
    raise InputError(f"{where}: success {reprlib.repr(value)}; expected true, false, or none")
