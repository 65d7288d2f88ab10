"""One episode of screens as a `Source`: what every reader of text formats comes down to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.header import Header
from grace_irl.demos.screenshots import Screenshot
from grace_irl.demos.source import Allocate, build, total_bytes
from grace_irl.demos.trajectory import Demonstration, Metadata, Role, Trajectory
from grace_irl.errors import InputError

METADATA = Metadata(kind="ui", view="uiautomator")

MAX_BYTES = 1024 * 1024 * 1024
"""Most bytes of one episode's states, which are all as wide as its longest screen."""


@dataclass(frozen=True)
class ScreenEpisode:
    """One episode, opened; its screens are read when they are asked for.

    Attributes:
        screens: gives the states in order, as canonical XML (`grace_irl.states.ui.markup.write`), each time anew.
        instruction: the goal, or "".
        task: name of the task.
        role: what the source says, or None.
        success: whether the goal was reached, or None where the source does not say.
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

    exact = True

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
        self.capacity = total_bytes(1, count * width)

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


@dataclass(frozen=True, eq=False)
class AnnotatedTrajectory(Trajectory):
    """A trajectory with its actions as texts; programs see nothing of them.

    Attributes:
        action_texts: T actions, each a JSON object in AndroidControl's terms (`{"action_type": "click", …}`); or ().
        step_instructions: T texts, what each action is for; or ().
    """

    action_texts: tuple[str, ...] = ()
    step_instructions: tuple[str, ...] = ()

    @classmethod
    def of(cls, trajectory: Trajectory, action_texts: tuple[str, ...], step_instructions: tuple[str, ...]) -> Self:
        """A trajectory with texts."""
        parts = {field.name: getattr(trajectory, field.name) for field in fields(Trajectory)}
        return cls(**parts, action_texts=action_texts, step_instructions=step_instructions)
