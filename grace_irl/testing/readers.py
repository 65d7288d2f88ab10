"""The conformance suite of readers, which read demonstrations from a file format. The suite is a base class for pytest:

class TestMyReader(ReaderSuite):
    def make(self, demonstrations, folder):
        path = folder / "set.mine"
        ...  # write the demonstrations to this file
        return lambda: MySource(path, Memory())
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grace_irl.demos.source import Source
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Split, Trajectory


def vectors() -> Demonstrations:
    """Demonstrations whose states are vectors, with actions, rewards and log-probabilities.

    The set has both roles, several splits, different lengths, and all combinations of `terminated` and `truncated`.
    """
    rng = np.random.default_rng(0)
    items = []
    splits: tuple[Split | None, ...] = ("train", None, "held_out", "train")
    for number, (steps, split) in enumerate(zip((4, 1, 6, 2), splits, strict=True)):
        trajectory = Trajectory(
            rng.normal(size=(steps + 1, 3)),
            rng.normal(size=(steps, 2)),
            ("öffne 门 🚪", "", "a\nb\t'\"\\", "go")[number],
            rewards=rng.normal(size=steps) * 1e300,
            log_probs=rng.normal(size=steps),
            terminated=number in (0, 2),
            truncated=number in (1, 2),
        )
        items.append(Demonstration(trajectory, "negative" if number % 2 else "expert", f"task {number % 2}", split))
    return Demonstrations(Metadata("vector", ("height", "speed", "angle"), label="all"), tuple(items))


def require_same(one: Demonstration, other: Demonstration) -> None:
    """Assert that two demonstrations are equal. The names of their files may differ."""
    for name in ("role", "task", "split", "goals"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.trajectory.digest == other.trajectory.digest
    for name in ("extra_info", "terminated", "truncated", "action_texts", "step_instructions"):
        assert getattr(one.trajectory, name) == getattr(other.trajectory, name), name
    for name in ("actions", "rewards", "log_probs"):
        mine, theirs = getattr(one.trajectory, name), getattr(other.trajectory, name)
        assert (mine is None) == (theirs is None), name
        if mine is not None:
            assert mine.dtype == theirs.dtype, name
            np.testing.assert_array_equal(mine, theirs, name)


class Places:
    """An allocator of arrays for a reader. It remembers all arrays that it made."""

    def __init__(self) -> None:
        self.given: list[NDArray[Any]] = []

    def __call__(self, shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
        """Return a new array of this shape and type."""
        self.given.append(np.empty(shape, dtype))
        return self.given[-1]

    def hold(self, array: NDArray[Any]) -> bool:
        """Whether an array uses the memory of a remembered array. Empty arrays use no memory and always pass."""
        return not array.size or any(np.shares_memory(array, each) for each in self.given)


class ReaderSuite(ABC):
    """The tests of the conformance suite for readers."""

    role: ClassVar[Role | None] = None
    """Role of all demonstrations ("expert" or "negative") if the format stores no roles, otherwise None."""

    @abstractmethod
    def make(self, demonstrations: Demonstrations, folder: Path) -> Callable[[], Source]:
        """Write demonstrations to the folder. Return a function that opens the written set anew at each call."""

    def demonstrations(self) -> Demonstrations:
        """A set that the format can hold."""
        return vectors()

    def test_it_gives_what_was_written_in_order_each_time_it_is_opened(self, tmp_path: Path) -> None:
        whole = self.demonstrations()
        opened = self.make(whole, tmp_path)
        for _ in range(2):
            found = list(opened().demonstrations(self.role, np.empty))
            assert len(found) == len(whole)
            for one, other in zip(found, whole, strict=True):
                require_same(one, other)

    def test_the_header_is_there_before_a_trajectory_is_read(self, tmp_path: Path) -> None:
        whole = self.demonstrations()
        source = self.make(whole, tmp_path)()
        assert source.header.metadata.kind == whole.metadata.kind
        assert source.header.metadata.fields == whole.metadata.fields
        assert source.path.exists()

    def test_states_and_actions_lie_where_the_caller_wants_them(self, tmp_path: Path) -> None:
        source = self.make(self.demonstrations(), tmp_path)()
        places = Places()
        for each in source.demonstrations(self.role, places):
            states, actions = each.trajectory.states, each.trajectory.actions
            parts = each.trajectory.state_kind.parts(states).values()
            assert all(places.hold(array) for array in parts)
            assert actions is None or places.hold(actions)

    def test_a_role_that_the_caller_gives_counts(self, tmp_path: Path) -> None:
        opened = self.make(self.demonstrations(), tmp_path)
        roles: tuple[Role, ...] = ("expert", "negative")
        for role in roles:
            assert {each.role for each in opened().demonstrations(role, np.empty)} == {role}

    def test_it_may_be_left_early(self, tmp_path: Path) -> None:
        whole = self.demonstrations()
        opened = self.make(whole, tmp_path)
        first = next(iter(opened().demonstrations(self.role, np.empty)))
        assert first.trajectory.digest == whole[0].trajectory.digest
        assert len(list(opened().demonstrations(self.role, np.empty))) == len(whole)
