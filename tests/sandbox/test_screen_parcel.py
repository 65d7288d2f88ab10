"""Equal screens lie in a run's memory once, in the order in which the run comes to them."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox import memory
from grace_irl.sandbox.packing import pack
from grace_irl.sandbox.parcel import Views
from grace_irl.states.texts import pack as pack_states
from tests.demos.conftest import screen


def made(indices: list[list[int]]) -> list[Trajectory]:
    screens = [screen(f"a{n}", "b" * n) for n in range(5)]
    return [
        Trajectory(pack_states([screens[index] for index in chosen]), extra_info="ab"[number % 2])
        for number, chosen in enumerate(indices)
    ]


def test_a_portion_counts_a_screen_once() -> None:
    package = pack(made([[0, 1], [1, 0], [2], [0]]))
    size = {index: len(text) for index, text in enumerate(package.texts)}
    most = size[0] + size[1] + 8 * 4
    assert list(package.portions(np.array([0, 1, 2, 3]), most)) == [slice(0, 2), slice(2, 4)]
    assert list(package.portions(np.array([0, 1, 2, 3]))) == [slice(0, 4)]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 0, 1], [1]])
def test_memory_holds_what_the_run_comes_to_in_its_order(order: list[int]) -> None:
    trajectories = made([[3, 4], [4, 0, 3], [2, 2]])
    package = pack(trajectories)
    fd = package.parcel(np.array(order))
    views = Views(fd)
    seen = [code for view in views for code in view.arrays[0].tolist()]
    assert list(dict.fromkeys(seen)) == list(range(len(set(seen))))
    for index, view in zip(order, views, strict=True):
        states = [view.state(step) for step in range(view.length)]
        assert list(view.states()) == states
        assert states == [state.decode() for state in trajectories[index].states.tolist()]
    with pytest.raises(IndexError):
        views[len(order)]
    whole = bytes(memory.read_all(fd, 1 << 20, 0))
    shown = {state for index in order for state in trajectories[index].states.tolist()}
    for state in {state for trajectory in trajectories for state in trajectory.states.tolist()}:
        assert whole.count(state) == (state in shown)
    memory.close(fd)
