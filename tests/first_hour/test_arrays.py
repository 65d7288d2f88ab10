"""Arrays in Python: what a script or a simulator leaves in memory."""

import numpy as np

import grace_irl

from .robot import COLUMNS, flat, names_a_column, pays_experts


def test_a_list_of_arrays(experts, negatives):
    """Fit two lists of 2-D arrays, one array for each episode."""
    run = grace_irl.fit(experts=experts, negatives=negatives, seed=0, out="run")
    assert pays_experts(run.reward_path, experts, negatives)
    assert run.best.held_out.auc > 0.9


def test_an_array_of_three_dimensions(experts, negatives):
    """Fit two arrays of episodes, steps and numbers."""
    run = grace_irl.fit(experts=np.stack(experts), negatives=np.stack(negatives), out="run")
    assert pays_experts(run.reward_path, experts, negatives)


def test_flat_arrays_with_flags(experts, negatives):
    """Fit D4RL's dicts, whose arrays hold all episodes one after another."""
    run = grace_irl.fit(experts=flat(experts), negatives=flat(negatives), out="run")
    assert pays_experts(run.reward_path, experts, negatives)


def test_dicts_of_named_arrays(experts, negatives):
    """Fit episodes that are dicts with one array for each named number."""

    def named(episodes):
        return [dict(zip(COLUMNS, each.T, strict=True)) for each in episodes]

    run = grace_irl.fit(experts=named(experts), negatives=named(negatives), out="run")
    assert names_a_column(run.best.source)
    reward = grace_irl.load_reward(run.reward_path)
    assert np.mean(reward.rewards(named(experts))) > np.mean(reward.rewards(named(negatives)))


def test_rewards_of_arrays(recovered, experts, negatives):
    """Ask what a reward pays for a list of arrays, and for the same episodes as one array."""
    reward = grace_irl.load_reward(recovered.reward_path)
    values = reward.rewards(experts)
    assert [len(each) for each in values] == [len(each) for each in experts]
    assert np.mean(values) > np.mean(reward.rewards(negatives))
    np.testing.assert_allclose(reward.rewards(np.stack(experts)), values)


def test_files_of_numpy(here, experts, negatives):
    """Save the episodes with `np.save`, and fit the two files."""
    np.save("expert.npy", np.stack(experts))
    np.save("negative.npy", np.stack(negatives))
    run = grace_irl.fit(["expert.npy", "negative.npy"], out="run")
    assert pays_experts(run.reward_path, experts, negatives)
