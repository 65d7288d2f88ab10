"""Episodes of screens: the class `EpisodeSource` for formats with one episode per file or folder, and a folder reader.

The folder of an episode holds the files below. A dump, such as `step_1.xml`, is uiautomator's XML of one screen.

    episode/task.json               {"task": "Set an alarm …", "role": "expert", "success": true}; all optional
    episode/hierarchy/step_1.xml    or in the folder itself; sorted by the numbers in the names
    episode/screenshots/step_1.png  or beside the dump; png, jpg, jpeg or webp; optional

Without `task.json`, a folder is an episode if it holds dumps and no other files that could be demonstrations.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.contents import require_inside
from grace_irl.demos.header import Header
from grace_irl.demos.memory import Memory
from grace_irl.demos.screenshots import Screenshot, beside
from grace_irl.demos.source import build
from grace_irl.demos.trajectory import Demonstration, Metadata, Role, stated_role
from grace_irl.demos.ui.texts import DUMPS, TASK, read_bytes, read_json, steps
from grace_irl.errors import InputError
from grace_irl.states.kind import Allocate
from grace_irl.states.ui import markup

METADATA = Metadata(kind="ui", view="uiautomator")

_OTHERS = (".parquet", ".npz", ".tfrecord", ".json", ".json.gz", ".yaml", ".yml")
"""Endings of files, other than dumps, that could be demonstrations."""

MAX_BYTES = 1024 * 1024 * 1024
"""Maximum size of an episode's states in bytes. In their array, each state takes the size of the longest state."""


@dataclass(frozen=True)
class ScreenEpisode:
    """An episode of screens. The screens are read on demand.

    Attributes:
        screens: function that reads the states in order, as canonical XML (`grace_irl.states.ui.markup.write`).
        instruction: the goal, or "".
        task: name of the task.
        role: role that the source gives, or None.
        success: whether the episode reached its goal; None if unknown.
        screenshots: one screenshot per state, None for a state without a screenshot; () if there are no screenshots.
    """

    screens: Callable[[], Iterator[str]]
    instruction: str = ""
    task: str = "default"
    role: Role | None = None
    success: bool | None = None
    screenshots: tuple[Screenshot | None, ...] = ()

    @property
    def stated_role(self) -> Role | None:
        """The role from the source, or else from `success`: "expert" for True, "negative" for False, None for None."""
        if self.role is not None or self.success is None:
            return self.role
        return "expert" if self.success else "negative"


class EpisodeSource:
    """A file or folder with one episode (see `Source`).

    All screens are read once at the start, so an unusable screen raises an error before any data are loaded.

    Args:
        path: the file or folder.
        episode: the episode in the file or folder.

    Raises:
        InputError: no screens, a screen that cannot be used, or too many bytes.
    """

    def __init__(self, path: Path, episode: ScreenEpisode) -> None:
        self.path = path
        self._episode = episode
        count = width = 0
        for screen in episode.screens():
            count, width = count + 1, max(width, len(screen.encode()))
        if count == 0:
            raise InputError(f"{path}: no screens; expected at least one")
        if count * width > MAX_BYTES:
            raise InputError(
                f"{path}: {count:,} screens of up to {width:,} bytes, which take {count * width:,}; expected at "
                f"most {MAX_BYTES:,} in an episode: split it, or drop its longest screens"
            )
        self.header = Header(METADATA, episode.stated_role, (episode.task,), (), np.dtype(f"S{width}").name)
        self._count, self._width = count, width

    def demonstrations(self, role: Role | None, allocate: Allocate) -> Iterator[Demonstration]:
        """See `Source.demonstrations`."""
        found = role or self.header.role
        if found is None or found == "mixed":
            raise InputError(f"{self.path}: no role; expected 'expert' or 'negative'")
        trajectory = build(
            self._states(allocate),
            str(self.path),
            extra_info=self._episode.instruction,
            terminated=bool(self._episode.success),
            screenshots=self._episode.screenshots,
        )
        yield Demonstration(trajectory, found, self._episode.task)

    def _states(self, allocate: Allocate) -> NDArray[np.bytes_]:
        """The screens as an array of bytes, `(T+1,)`, with one text in memory at a time."""
        states = allocate((self._count,), f"S{self._width}")
        count = 0
        for screen in self._episode.screens():
            encoded = screen.encode()
            if count == self._count or len(encoded) > self._width:
                count = -1
                break
            states[count] = encoded
            count += 1
        if count != self._count:
            raise InputError(
                f"{self.path}: its screens changed while they were read; expected files at rest: try again"
            )
        return states


def is_episode(folder: Path) -> bool:
    """Whether a folder is an episode. It needs dumps, and either a task file or no file with an ending in `_OTHERS`."""
    if not folder.is_dir() or not steps(folder):
        return False
    return (folder / TASK).is_file() or not any(file.name.endswith(_OTHERS) for file in folder.iterdir())


def open_folder(folder: Path, memory: Memory) -> EpisodeSource:
    """Open a folder as an episode.

    Args:
        folder: the folder.
        memory: memory limit of the set.

    Raises:
        InputError: no dumps; a dump or task file that cannot be used, or that is a link to a file outside the folder;
            or a picture that `beside` refuses.
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
    """Open a single dump as an episode of one state.

    Args:
        path: the file.
        memory: memory limit of the set.

    Raises:
        InputError: a dump that cannot be used.
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
    """The goal in a task file or another source, without surrounding blanks; "" if there is none.

    Raises:
        InputError: a goal that is not a text.
    """
    for key in ("task", "goal", "instruction"):
        value = about.get(key)
        if value is not None:
            if not isinstance(value, str):
                raise InputError(f"{where}: {key!r} is {reprlib.repr(value)}; expected a text")
            return markup.rinse(value).strip()
    return ""


def success_of(value: object, where: Path) -> bool | None:
    """Check and return a source's value for success: True if the episode reached its goal, None if there is no value.

    Raises:
        InputError: neither a boolean nor null.
    """
    if value is None or isinstance(value, bool):
        return value
    raise InputError(f"{where}: success {reprlib.repr(value)}; expected true, false, or none")
