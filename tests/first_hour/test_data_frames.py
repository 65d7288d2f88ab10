"""Data frames in Python: logs that a user keeps as a table."""

import numpy as np
import pytest

import grace_irl

from .robot import COLUMNS, STEPS, names_a_column, pays_experts, rows


def test_a_wide_frame(experts, negatives):
    """Fit pandas tables with a column for each number and a column of episodes."""
    pandas = pytest.importorskip("pandas")
    run = grace_irl.fit(experts=pandas.DataFrame(rows(experts)), negatives=pandas.DataFrame(rows(negatives)), out="run")
    assert names_a_column(run.best.source)
    assert '"episode"' not in run.best.source
    assert pays_experts(run.reward_path, experts, negatives)


def test_a_long_frame(experts, negatives):
    """Fit tidy pandas tables: a row for each episode, step and name of a number."""
    pandas = pytest.importorskip("pandas")

    def long(episodes):
        wide = pandas.DataFrame(rows(episodes))
        wide["step"] = wide.groupby("episode").cumcount()
        return wide.melt(id_vars=["episode", "step"], value_vars=list(COLUMNS), var_name="name", value_name="value")

    run = grace_irl.fit(experts=long(experts), negatives=long(negatives), out="run")
    assert names_a_column(run.best.source)
    reward = grace_irl.load_reward(run.reward_path)
    assert np.mean(reward.rewards(long(experts))) > np.mean(reward.rewards(long(negatives)))


def test_a_polars_frame(experts, negatives):
    """Fit wide Polars tables."""
    polars = pytest.importorskip("polars")
    run = grace_irl.fit(experts=polars.DataFrame(rows(experts)), negatives=polars.DataFrame(rows(negatives)), out="run")
    assert names_a_column(run.best.source)
    assert pays_experts(run.reward_path, experts, negatives)


def test_rewards_of_a_frame(recovered, experts, negatives):
    """Ask what a reward pays for each episode of a wide pandas table."""
    pandas = pytest.importorskip("pandas")
    reward = grace_irl.load_reward(recovered.reward_path)
    values = reward.rewards(pandas.DataFrame(rows(experts)))
    assert [len(each) for each in values] == [STEPS] * len(experts)
    assert np.mean(values) > np.mean(reward.rewards(pandas.DataFrame(rows(negatives))))
