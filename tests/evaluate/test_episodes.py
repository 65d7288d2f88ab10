"""Metrics over episodes: which episodes are paid, who outranks whom, and the intervals of both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, norm

import grace_irl
from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.demos.labels import label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata, Role, Trajectory
from grace_irl.evaluate.episodes import EpisodeLabels, correlated, outranking, share
from grace_irl.evaluate.separation import EpisodeMetrics, Measurement


def episode(
    values: list[float], role: Role = "expert", goals: tuple[int, ...] | None = None, **more: Any
) -> Demonstration:
    """An episode whose states are the rewards that the tests give it."""
    states = np.array(values, dtype=np.float64)[:, None]
    return Demonstration(Trajectory(states, np.zeros(len(values) - 1), **more), role, goals=goals)


def measured(items: list[Demonstration], rule: LabelRule, *, takes_action: bool = False) -> EpisodeMetrics:
    problem = label(Demonstrations(Metadata("vector"), tuple(items)), rule)
    episodes = EpisodeLabels.of(problem.items, rule, takes_action=takes_action)
    first = 1 if takes_action else 0
    values = np.concatenate([item.trajectory.states[first:, 0] for item in items])
    return episodes.metrics(values, threshold=0.5)


@pytest.mark.parametrize("reward", [1.1, 0.3, 1e-3, -7e5])
def test_equal_rewards_are_ties_whatever_the_lengths(reward: float) -> None:
    lengths = (1000, 37, 23, 59, 41, 20)
    items = [episode([reward] * length, role) for role in ("expert", "negative") for length in lengths]  # type: ignore[arg-type]
    assert values_of(measured(items[:7] + items[8:], "all").outranks) == [0.5]


def values_of(*estimates: Measurement | None) -> list[float | None]:
    return [None if each is None else each.value for each in estimates]


def test_one_wrong_state_in_an_episode_makes_the_episode_wrong() -> None:
    experts = [episode([0, 0, 0, 1]), episode([0, 1, 0, 1]), episode([0, 0, 0, 0]), episode([1, 0, 0, 1])]
    negatives = [episode([0] * 100, "negative"), episode([0] * 99 + [1], "negative")]
    found = measured([*experts, *negatives], "last")
    assert values_of(found.hit, found.early, found.false) == [0.75, 0.5, 0.5]
    assert (found.experts, found.negatives, found.outranks, found.correlation) == (4, 2, None, None)


def test_a_goal_in_the_middle_is_hit_there_and_what_follows_is_not_early() -> None:
    experts = [episode([0, 1, 1, 1], goals=(1,)), episode([1, 0, 0, 0], goals=(1, 2)), episode([0, 0, 1, 0], goals=())]
    found = measured([*experts, episode([0, 0], "negative")], "goal")
    assert values_of(found.hit, found.early) == [0.5, 0.5]
    # An expert without a goal state must not be paid, as negative episodes must not.
    assert (found.experts, found.negatives) == (2, 2)
    assert values_of(found.false) == [0.5]


def test_the_threshold_itself_is_not_paid() -> None:
    assert values_of(measured([episode([0, 0.5]), episode([0, 0], "negative")], "last").hit) == [0.0]


def test_rewards_of_transitions_have_no_first_state() -> None:
    items = [episode([1, 0, 1]), episode([1], "negative"), episode([1, 0], "negative")]
    found = measured(items, "last", takes_action=True)
    assert (found.experts, found.negatives) == (1, 1)
    assert values_of(found.hit, found.early, found.false) == [1.0, 0.0, 0.0]


def test_rule_all_ranks_episodes_by_their_mean_and_sums_against_true_returns() -> None:
    def with_return(values: list[float], true: float, role: Role) -> Demonstration:
        rewards = np.zeros(len(values) - 1)
        rewards[0] = true
        return episode(values, role, rewards=rewards)

    items = [with_return([3, 3], 5, "expert"), with_return([1, 1, 1, 1, 1], 6, "expert")]
    items += [with_return([2, 2], 1, "negative"), with_return([0, 0], 0, "negative")]
    found = measured(items, "all")
    assert found.outranks is not None
    assert found.correlation is not None
    assert found.outranks.value == 3 / 4  # means: 3 and 1 against 2 and 0
    assert found.correlation.value == pytest.approx(0.8)  # sums 6, 5, 4, 0 and true returns 5, 6, 1, 0
    assert values_of(found.hit, found.early, found.false) == [None] * 3


def test_without_true_returns_or_with_equal_ones_there_is_no_correlation() -> None:
    items = [episode([3, 3]), episode([2, 2]), episode([1, 1], "negative")]
    assert measured(items, "all").correlation is None
    flat = [episode(each.trajectory.states[:, 0].tolist(), each.role, rewards=np.ones(1)) for each in items]
    assert measured(flat, "all").correlation is None


def test_experts_alone_have_no_false_episodes() -> None:
    found = measured([episode([0, 1])], "last")
    assert found.false is None
    assert values_of(found.hit) == [1.0]


def test_shares_have_wilsons_interval() -> None:
    for count, of in ((8, 8), (0, 8), (3, 10), (59, 60)):
        found, expected = share(count / of, of), binomtest(count, of).proportion_ci(method="wilson")
        assert found is not None
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_the_interval_of_outranking_covers_about_95_percent_of_draws() -> None:
    rng = np.random.default_rng(0)
    true = float(norm.cdf(1.5 / np.sqrt(2)))
    covered = 0
    for _ in range(1000):
        experts, negatives = rng.normal(1.5, size=8), rng.normal(size=8)
        found = outranking(float((experts[:, None] > negatives).mean()), 8, 8)
        assert 0 <= found.low <= found.value <= found.high <= 1
        covered += found.low <= true <= found.high
    assert 930 <= covered <= 990


def test_few_episodes_leave_a_wide_interval_even_without_a_mistake() -> None:
    assert outranking(1.0, 2, 2).low < 0.5
    assert outranking(1.0, 60, 60).low > 0.93
    assert correlated(1.0, 4).low < 0
    assert correlated(-1.0, 30).high < -0.99


PAYS_TOO_MUCH = """
class Reward:
    def __init__(self, extra_info):
        pass

    def reward_fn(self, state):
        return 1.0 if state[0] >= 9 or state[1] == 1 else 0.0
"""


def test_a_reward_that_pays_every_negative_once_has_a_high_accuracy_and_is_found_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """99 % of states are right; every negative episode is paid, and half of the experts before their goal."""

    def walk(length: int, wrong: bool) -> Trajectory:
        states = np.stack([np.linspace(0, 9 if length == 10 else 5, length), np.zeros(length)], axis=1)
        states[1, 1] = wrong
        return Trajectory(states, np.zeros(length - 1))

    items = [Demonstration(walk(10, n % 2 == 0), "expert") for n in range(8)]
    items += [Demonstration(walk(200, True), "negative") for _ in range(8)]
    metadata = Metadata("vector", label="last")
    for role in ("expert", "negative"):
        chosen = tuple(item for item in items if item.role == role)
        save(Demonstrations(metadata, chosen), tmp_path / "demos" / f"{role}.parquet")
    reward = tmp_path / "reward.py"
    reward.write_text(PAYS_TOO_MUCH + "\nTHRESHOLD = 0.5\n")
    arguments = ["score", str(reward), "--demos", str(tmp_path / "demos")]
    assert main([*arguments, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert answer["accuracy"] > 0.98
    assert answer["episodes"]["false"]["value"] == 1.0
    assert answer["episodes"]["early"]["value"] == 0.5
    assert main(arguments) == 0
    told = capsys.readouterr().out
    assert "1.000 [0.68, 1.00]" in told
    assert "negative episodes paid anywhere" in told
    episodes = grace_irl.score(reward, tmp_path / "demos").metrics.episodes
    assert episodes is not None
    assert values_of(episodes.hit, episodes.early, episodes.false) == [1.0, 0.5, 1.0]
