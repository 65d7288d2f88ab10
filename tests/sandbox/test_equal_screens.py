"""Equal screens are scored once where a program remembers nothing, and nobody can tell by the rewards."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.demos.screens import pack as pack_states
from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox import memory
from grace_irl.sandbox.answer import Answer
from grace_irl.sandbox.candidate import Candidate, Reward
from grace_irl.sandbox.child import score
from grace_irl.sandbox.packing import pack
from grace_irl.sandbox.screen_packing import ScreenPackage
from grace_irl.sandbox.views import open_views
from grace_irl.sandbox.wire import Job
from tests.demos.conftest import screen

WORDS = """
from lxml import etree


class Reward:
    def __init__(self, extra_info=None):
        self.word = extra_info

    def reward_fn(self, state):
        root = etree.fromstring(state)
        return float(sum(self.word in node.get("text", "") for node in root.iter("node")) + len(state) / 1e4)
"""

COUNTS = WORDS.replace("        root =", "        self.word += 'x'\n        root =")

INDICES = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=6), min_size=1, max_size=6)


def rewards(source: str, trajectories: list[Trajectory], order: list[int]) -> tuple[list[float], int]:
    """What a child gives, and how often it asked the program."""
    package = pack(trajectories)
    positions = np.array(order)
    parcel = package.parcel(positions)
    states = int(package.lengths[positions].sum())
    job = Job.plan(0, len(order), states)
    fd = memory.create(job.size)
    memory.write_all(fd, job.pack(), 0)
    answer = Answer(fd)
    candidate = Candidate(source, source, takes_action=False)
    asked = []
    start = candidate.start

    def counting(extra_info: str) -> Reward:
        reward = start(extra_info)
        call = reward.call
        reward.call = lambda state: asked.append(state) or call(state)
        return reward

    candidate.start = counting  # type: ignore[method-assign]
    score(candidate, source, open_views(parcel), answer)
    memory.close(fd, parcel)
    return list(answer.rewards), len(asked)


def made(indices: list[list[int]]) -> list[Trajectory]:
    screens = [screen(f"a{n}", "b" * n) for n in range(5)]
    return [
        Trajectory(pack_states([screens[index] for index in chosen]), extra_info="ab"[number % 2])
        for number, chosen in enumerate(indices)
    ]


@settings(max_examples=60, deadline=None)
@given(INDICES)
def test_each_screen_is_scored_once_for_each_instruction(indices: list[list[int]]) -> None:
    trajectories = made(indices)
    order = list(range(len(indices)))
    found, asked = rewards(WORDS, trajectories, order)
    assert asked == len({(trajectories[n].extra_info, index) for n, chosen in enumerate(indices) for index in chosen})
    alone = [
        rewards(WORDS, made([[index]] * (n + 1)), [n])[0][0] for n, chosen in enumerate(indices) for index in chosen
    ]
    assert found == alone


def test_a_program_with_a_memory_sees_every_state() -> None:
    found, asked = rewards(COUNTS, made([[0, 0, 0], [1, 1]]), [0, 1])
    assert asked == 5
    assert len(found) == 5


def test_a_portion_counts_a_screen_once() -> None:
    package = pack(made([[0, 1], [1, 0], [2], [0]]))
    assert isinstance(package, ScreenPackage)
    size = {index: len(text) for index, text in enumerate(package.screens)}
    most = size[0] + size[1] + 8 * 4
    assert list(package.portions(np.array([0, 1, 2, 3]), most)) == [slice(0, 2), slice(2, 4)]
    assert list(package.portions(np.array([0, 1, 2, 3]))) == [slice(0, 4)]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 0, 1], [1]])
def test_memory_holds_what_the_run_comes_to_in_its_order(order: list[int]) -> None:
    trajectories = made([[3, 4], [4, 0, 3], [2, 2]])
    package = pack(trajectories)
    fd = package.parcel(np.array(order))
    views = open_views(fd)
    seen = [code for view in views for code in view.codes]  # type: ignore[union-attr]
    assert list(dict.fromkeys(seen)) == list(range(len(set(seen))))
    for index, view in zip(order, views, strict=True):
        states = [view.state(step) for step in range(view.length)]
        assert states == [state.decode() for state in trajectories[index].states.tolist()]
    with pytest.raises(IndexError):
        views[len(order)]
    whole = bytes(memory.read_all(fd, 1 << 20, 0))
    shown = {state for index in order for state in trajectories[index].states.tolist()}
    for state in {state for trajectory in trajectories for state in trajectory.states.tolist()}:
        assert whole.count(state) == (state in shown)
    memory.close(fd)
