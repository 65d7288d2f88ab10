"""Trajectories and demonstrations that a user makes: what they hold, and what is refused in one line."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.states.record import RecordStates

STATES = np.arange(8.0).reshape(4, 2)
MASKED = np.ma.masked_array(STATES, STATES == 3)


def made(**parts: Any) -> Demonstration:
    return Demonstration(Trajectory(STATES), **{"role": "expert", **parts})


def test_lists_become_arrays() -> None:
    found = Trajectory(STATES, actions=[[1, 2], [3, 4], [5, 6]], rewards=[0, 1, 2], log_probs=[-1.0, -np.inf, 0])
    assert found.actions is not None
    assert found.actions.shape == (3, 2)
    assert isinstance(found.rewards, np.ndarray)
    assert isinstance(found.log_probs, np.ndarray)


def test_no_split_may_be_an_empty_text() -> None:
    assert made(split="").split is None


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "a role": (lambda: made(role="Expert"), "role 'Expert'; expected 'expert' or 'negative'"),
    "no role": (lambda: made(role=""), "no role; expected 'expert' or 'negative'"),
    "a split": (lambda: made(split="test"), "split 'test'; expected 'train', 'validation' or 'held_out'"),
    "a task": (lambda: made(task=None), "task None; expected a text"),
    "no trajectory": (lambda: Demonstration(STATES, "expert"), "demonstration: array.*; expected a Trajectory"),  # type: ignore[arg-type]
    "an instruction": (lambda: Trajectory(STATES, extra_info=None), "extra_info None; expected a text"),  # type: ignore[arg-type]
    "objects": (lambda: Trajectory(STATES, rewards=np.array([1, None, 2])), "rewards: object .*; expected numbers"),
    "texts": (lambda: Trajectory(STATES, actions=np.array(["a", "b", "c"])), "actions: <U1 .*; expected numbers"),
    "ragged": (lambda: Trajectory(STATES, actions=[[1], [1, 2], [1]]), "actions: object .*; expected numbers"),  # type: ignore[arg-type]
    "masked states": (lambda: Trajectory(MASKED), "trajectory: masked values"),
    "masked actions": (lambda: Trajectory(STATES, MASKED[:3]), "trajectory, actions: masked values"),
    "a masked part": (lambda: RecordStates({"arm": MASKED}), "part 'arm': masked values"),
    "codes": (
        lambda: Trajectory(np.full((2, 1, 1, 3), 1 << 63, np.uint64)),
        r"trajectory: 9223372036854775808; .* 2\*\*63",
    ),
    "fields": (lambda: Demonstrations(Metadata("vector", ("x",)), (made(),)), "1 names of fields for states of 2"),
    "no demonstration": (lambda: Demonstrations(Metadata("vector"), (Trajectory(STATES),)), "expected Demonstrations"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_used_is_refused_in_one_line(name: str) -> None:
    make, said = BAD[name]
    with pytest.raises(InputError, match=said) as error:
        make()
    assert "\n" not in str(error.value)
    assert "expected" in str(error.value)
