"""Payment by potentials: an episode is paid what its end is worth, and nothing reaches the next episode."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_irl
from grace_irl.config import ExpandConfig
from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.keywords import FitSettings
from grace_irl.programs.export import export_source
from grace_irl.rewards.scale import Form, FormChoice, Payment, Scale
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


def paid_by(scale: Scale, rewards: list[float]) -> list[float]:
    """What an episode with these rewards pays, step by step."""
    payment = Payment(Values(), scale)
    payment.turn((), None, (), [begin(0)])
    return [float(payment.turn((0,), None, [np.array(value)]).rewards[0]) for value in rewards]


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=12), st.floats(-1, 9), st.floats(0.5, 1.0))
def test_guided_pays_for_goals_and_costs_and_once_for_where_an_episode_ends(
    rewards: list[float], threshold: float, gamma: float
) -> None:
    paid = paid_by(Scale("guided", threshold=threshold, gamma=gamma), rewards)
    unpaid = [0 < value <= threshold for value in rewards]
    own = [0.0 if less else value for value, less in zip(rewards, unpaid, strict=True)]
    total, whole = (sum(gamma**at * value for at, value in enumerate(each)) for each in (paid, own))
    end = gamma ** len(rewards) * rewards[-1] if unpaid[-1] else 0.0
    np.testing.assert_allclose(total, whole + end, atol=1e-9)
    if not any(unpaid) or threshold <= 0:
        assert paid == rewards
    worth = Scale("guided", threshold=threshold, gamma=1.0).worth(np.array([0.0, *rewards]))
    np.testing.assert_allclose(worth, sum(own) + (rewards[-1] if unpaid[-1] else 0.0), atol=1e-9)


@pytest.mark.parametrize("threshold", [0.75, 0.5])
def test_guided_pays_nothing_for_waiting_before_a_guess_and_all_of_the_goal(threshold: float) -> None:
    """A guess at the threshold itself is not paid either: paid is what lies above it."""
    paid = paid_by(Scale("guided", threshold=threshold, gamma=0.99), [0.0, 0.5, 0.5, 0.5, 0.0, 1.0, 1.0, -0.25])
    np.testing.assert_allclose(paid, [0.0, 0.495, -0.005, -0.005, -0.5, 1.0, 1.0, -0.25], atol=1e-12)


def test_a_checkpoint_of_a_version_without_thresholds_is_still_known() -> None:
    assert repr(Scale("raw", 2.0, -1.0, threshold=0.5)) == "Scale(form='raw', scale=2.0, offset=-1.0, gamma=0.99)"


def test_guided_needs_a_threshold() -> None:
    with pytest.raises(InputError, match="'guided' for a reward without THRESHOLD; expected a file with a THRESHOLD"):
        Scale("guided")


NUMBER = "class Reward:\n    def reward_fn(self, state): return float(state[1])\n"


@pytest.mark.parametrize(
    ("facts", "numbers", "form"),
    [
        ({"label": "all (…)"}, (2.0, -3.0, 1.5), "soft"),
        ({"label": "last (…)"}, (2.0, -3.0, 1.5), "guided"),
        ({"label": "goal (…)", "lineage": "a (reshape) <- b (mutate)"}, (2.0, -3.0, 1.5), "guided"),
        ({"label": "all (…)", "lineage": "a (reshape) <- b (mutate)"}, (2.0, -3.0, 1.5), "soft"),
        ({}, (2.0, -3.0, 1.5), "raw"),
        ({"label": "last (…)"}, (2.0, -3.0, None), "raw"),
        ({"label": "all (…)"}, (2.0, -3.0, None), "soft"),
        ({"label": "any (…)"}, (2.0, -3.0, 1.5), "raw"),
        ({"label": " (…)"}, (2.0, -3.0, 1.5), "raw"),
        ({"label": "all (…)"}, (None, 0.0, None), "raw"),  # a search that trains policies judges the raw reward
    ],
)
def test_a_file_asks_for_the_form_of_its_labels(
    facts: dict[str, str], numbers: tuple[float | None, float, float | None], form: Form, tmp_path: Path
) -> None:
    scale, offset, threshold = numbers
    text = export_source(
        NUMBER, title="Counts.", facts=list(facts.items()), scale=scale, offset=offset, threshold=threshold
    )
    (path := tmp_path / "reward.py").write_text(text)
    reward = grace_irl.load_reward(path, trust=True)
    assert (reward.form, reward.scaled().form, reward.scaled("raw").form) == (form, form, "raw")
    environment = reward.wrap(Numbered(0))
    environment.reset()
    stated = reward.wrap(Numbered(0), scale=form)
    stated.reset()
    paid = [environment.step(0)[1] for _ in range(2)]
    assert paid == [stated.step(0)[1] for _ in range(2)]
    assert (paid == [1.0, 2.0]) == (form == "raw")


def test_a_setting_may_name_any_form() -> None:
    hints = get_type_hints(FitSettings)
    assert get_args(ExpandConfig.model_fields["form"].annotation) == get_args(FormChoice) == ("auto", *get_args(Form))
    assert get_args(hints["expand_form"]) == get_args(FormChoice)


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


def test_only_potentials_remember() -> None:
    runner = Values()
    rewards = np.array([0.25, -1.0])
    progress = Scale("progress", 60.0, -30.0)  # no calibration: potentials in the program's own unit
    assert progress.potential(rewards) is rewards
    assert [Scale(form, threshold=0.0).remembers for form in get_args(Form)].count(True) == 2
    for form, expected in (("raw", [5.0, 5.0]), ("progress", [4.5, -0.5])):
        payment = Payment(runner, Scale(form, 60.0, -30.0, gamma=0.9))  # type: ignore[arg-type]
        payment.turn((), None, (), [begin(0)])
        paid = [float(payment.turn((0,), None, [np.array(5.0)]).rewards[0]) for _ in range(2)]
        np.testing.assert_allclose(paid, expected)
        payment.close()
        assert runner.closed
