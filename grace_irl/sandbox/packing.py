"""The contents of one `put`: trajectories that wait in the host until a run is shown some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.sandbox.parcel import PORTION_BYTES, Content, seal_parcel
from grace_irl.sandbox.screen_parcel import ScreenPackage, pack_screens
from grace_irl.sandbox.uniform import action_shape, common_dtype, convert


@dataclass(frozen=True)
class ArrayPackage:
    """The trajectories of one `put`, referred to, not copied.

    Attributes:
        contents: the trajectories, in the order of the `put`.
        stored: the type in which a run's states are stored, one for all.
        precision: the type whose precision all actions have; float64 where there are none.
        lengths: states of each trajectory, `(n,)`.
    """

    contents: tuple[Content, ...]
    stored: np.dtype[Any]
    precision: np.dtype[Any]
    lengths: NDArray[np.int64]

    def portions(self, positions: NDArray[np.int64], most: int = PORTION_BYTES) -> Iterator[slice]:
        """Cut a run into slices of `positions`, one for each child: at most `most` bytes, or one trajectory."""
        start, taken = 0, 0
        for at, index in enumerate(positions.tolist()):
            size = self._bytes(index)
            if at > start and taken + size > most:
                yield slice(start, at)
                start, taken = at, 0
            taken += size
        yield slice(start, len(positions))

    def parcel(self, positions: NDArray[np.int64]) -> int:
        """The descriptor of sealed memory that holds these trajectories, in this order."""
        return seal_parcel([self._even(self.contents[index]) for index in positions.tolist()], self.stored)

    def single_states(self, places: Sequence[tuple[int, int]]) -> int:
        """The same for single states: pairs of trajectory and step, each a trajectory of one state.

        Raises:
            ValueError: a pair that the set does not hold.
        """
        contents = []
        for position, step in places:
            if not 0 <= position < len(self.contents) or not 0 <= step < self.lengths[position]:
                raise ValueError(
                    f"no state {step} of trajectory {position}; expected a position and a step of what `put` was given"
                )
            contents.append(Content(self.contents[position].states[step : step + 1], None, b""))
        return seal_parcel(contents, self.stored)

    def _even(self, content: Content) -> Content:
        """A trajectory whose float actions have the precision that all have."""
        actions = content.actions
        if actions is None or actions.dtype.kind != "f":
            return content
        return content._replace(actions=convert(actions, self.precision))

    def _bytes(self, index: int) -> int:
        states, actions, _ = self.contents[index]
        return states.size * self.stored.itemsize + (0 if actions is None else 8 * actions.size)


Package = ArrayPackage | ScreenPackage


def pack(trajectories: Sequence[Trajectory]) -> Package:
    """Make a set uniform: one type of states, actions for all or for none; none for screens.

    Raises:
        InputError: actions that are not numbers.
    """
    if any(trajectory.kind == "ui" for trajectory in trajectories):
        return pack_screens(trajectories)
    with_actions = all(trajectory.actions is not None for trajectory in trajectories)
    actions = [_actions(trajectory) for trajectory in trajectories]
    shape = action_shape([a.shape[1:] for a in actions if a is not None])
    contents = []
    for trajectory, taken in zip(trajectories, actions, strict=True):
        text = trajectory.extra_info.encode("utf-8", "surrogatepass")
        if taken is None or not with_actions:
            taken = None
        elif shape is not None:
            taken = taken.reshape(len(taken), *shape)
        contents.append(Content(trajectory.states, taken, text))
    floats = [c.actions for c in contents if c.actions is not None and c.actions.dtype.kind == "f"]
    lengths = np.array([len(content.states) for content in contents], dtype=np.int64)
    stored = common_dtype([content.states for content in contents])
    return ArrayPackage(tuple(contents), stored, common_dtype(floats), lengths)


def _actions(trajectory: Trajectory) -> NDArray[Any] | None:
    if trajectory.actions is None:
        return None
    actions = np.asarray(trajectory.actions)
    if actions.dtype.kind not in "fiub":
        found = f"{trajectory.source or 'trajectory'}: actions are {actions.dtype}"
        raise InputError(f"{found}; expected numbers: convert them, or leave the actions out")
    return actions
