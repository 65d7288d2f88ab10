"""Payment by progress: an episode is paid what its end is worth, and nothing reaches the next episode."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import grace_irl
from grace_irl.demos.trajectory import Trajectory
from grace_irl.rewards.scale import Payment, Scale
from grace_irl.sandbox.session import Begin, TurnRewards
from tests.rewards.recorders import Numbered


class Values:
    """Rewards a state by its own number."""

    def __init__(self) -> None:
        self.closed = False

    def turn(self, slots: Sequence[int], actions: Any, states: Any, begins: Sequence[Begin] = ()) -> TurnRewards:
        del actions, begins
        values = np.array([float(state) for state in states])
        return TurnRewards(values, tuple({"value": value} for value in values.tolist()))

    def rewards(self, trajectories: Sequence[Trajectory]) -> list[Any]:
        raise AssertionError("a payment is of running episodes")

    def close(self) -> None:
        self.closed = True


def begin(slot: int) -> Begin:
    return Begin(slot, np.zeros(1), "")


@given(
    st.lists(st.lists(st.floats(-10, 10), min_size=1, max_size=12), min_size=1, max_size=4),
    st.floats(0.5, 1.0),
)
def test_payments_of_an_episode_add_up_to_what_its_last_state_is_worth(
    episodes: list[list[float]], gamma: float
) -> None:
    progress = Payment(Values(), Scale("progress", gamma=gamma))
    for rewards in episodes:  # one after the other in one slot
        progress.turn((), None, (), [begin(0)])
        paid = [float(progress.turn((0,), None, [np.array(value)]).rewards[0]) for value in rewards]
        total = sum(gamma**at * value for at, value in enumerate(paid))
        np.testing.assert_allclose(total, gamma ** len(rewards) * rewards[-1], atol=1e-9)


def test_an_episode_that_begins_in_the_turn_that_ends_one_owes_it_nothing() -> None:
    progress = Payment(Values(), Scale("progress", gamma=1.0))
    progress.turn((), None, (), [begin(0), begin(1)])
    first = progress.turn((0, 1), None, [np.array(5.0), np.array(2.0)], [begin(0)])
    assert first.rewards.tolist() == [5.0, 2.0]
    assert first.terms == ({"value": 5.0}, {"value": 2.0})
    second = progress.turn((1, 0), None, [np.array(3.0), np.array(4.0)])  # slots in any order, some left out
    assert second.rewards.tolist() == [1.0, 4.0]


def test_staying_in_a_valued_state_pays_nothing_and_leaving_it_costs() -> None:
    progress = Payment(Values(), Scale("progress", gamma=0.99))
    progress.turn((), None, (), [begin(0)])
    paid = [float(progress.turn((0,), None, [np.array(value)]).rewards[0]) for value in (0.4, 0.4, 0.4, 0.0)]
    assert paid[0] > 0
    assert all(value < 0 for value in paid[1:])


def test_a_wrapper_takes_the_discount_of_the_learner(tmp_path: Path) -> None:
    (path := tmp_path / "reward.py").write_text(
        "class Reward:\n    def reward_fn(self, state): return float(state[1])\n"
    )
    reward = grace_irl.load_reward(path, trust=True)
    for gamma in (1.0, 0.5):
        environment = reward.wrap(Numbered(0), scale="progress", gamma=gamma)
        environment.reset()
        assert [environment.step(0)[1] for _ in range(2)] == [gamma * 1.0, gamma * 2.0 - 1.0]


def test_only_the_form_progress_remembers() -> None:
    runner = Values()
    rewards = np.array([0.25, -1.0])
    assert Scale("progress", 60.0, -30.0)(rewards) is rewards  # no calibration: potentials in the program's own unit
    for form, expected in (("raw", [5.0, 5.0]), ("progress", [4.5, -0.5])):
        payment = Payment(runner, Scale(form, 60.0, -30.0, gamma=0.9))  # type: ignore[arg-type]
        payment.turn((), None, (), [begin(0)])
        paid = [float(payment.turn((0,), None, [np.array(5.0)]).rewards[0]) for _ in range(2)]
        np.testing.assert_allclose(paid, expected)
        payment.close()
        assert runner.closed
