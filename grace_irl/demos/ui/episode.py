"""Episodes of screens: one as a `Source`, which every reader of text formats comes down to, and one as a folder.

    episode/task.json               {"task": "Set an alarm …", "role": "expert", "success": true}; all optional
    episode/hierarchy/step_1.xml    or in the folder itself; steps are in the order of the numbers in their names
    episode/screenshots/step_1.png  or beside the dump; png, jpg, jpeg or webp; optional

Without a task file, a folder is an episode if it holds dumps and nothing else that could be demonstrations.
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
from grace_irl.demos.source import build, stated_role
from grace_irl.demos.trajectory import Demonstration, Metadata, Role
from grace_irl.demos.ui.texts import DUMPS, TASK, read_bytes, read_json, steps
from grace_irl.errors import InputError
from grace_irl.states.kind import Allocate
from grace_irl.states.ui import markup

METADATA = Metadata(kind="ui", view="uiautomator")

_OTHERS = (".parquet", ".npz", ".tfrecord", ".json", ".json.gz", ".yaml", ".yml")

MAX_BYTES = 1024 * 1024 * 1024
"""Most bytes of one episode's states, which are all as wide as its longest screen."""


@dataclass(frozen=True)
class ScreenEpisode:
    """One episode, opened; its screens are read on demand.

    Attributes:
        screens: gives the states in order, as canonical XML (`grace_irl.states.ui.markup.write`), each time anew.
        instruction: the goal, or "".
        task: name of the task.
        role: what the source says, or None.
        success: whether the goal was reached, or None if the source does not say.
        screenshots: one for each state, or ().
    """

    screens: Callable[[], Iterator[str]]
    instruction: str = ""
    task: str = "default"
    role: Role | None = None
    success: bool | None = None
    screenshots: tuple[Screenshot | None, ...] = ()

    @property
    def stated_role(self) -> Role | None:
        """The role, or else what success says of it: an episode that failed is negative."""
        if self.role is not None or self.success is None:
            return self.role
        return "expert" if self.success else "negative"


class EpisodeSource:
    """A file or folder that holds one episode (see `Source`).

    Every screen is read once when it is opened, so that what cannot be used is refused before anything is loaded.

    Raises:
        InputError: no screens, one that cannot be used, or too many bytes.
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
        """The screens as `screens.pack` has them, one text in memory at a time."""
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
    """Whether a folder has the dumps of one episode: a task file beside them, or nothing else that may be data."""
    if not folder.is_dir() or not steps(folder):
        return False
    return (folder / TASK).is_file() or not any(file.name.endswith(_OTHERS) for file in folder.iterdir())


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
    """The goal that a source states, without the blanks around it; "" if it states none.

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
    """Whether an episode reached its goal, if a source says so.

    Raises:
        InputError: neither a truth nor null.
    """
    if value is None or isinstance(value, bool):
        return value
    raise InputError(f"{where}: success {reprlib.repr(value)}; expected true, false, or none")
