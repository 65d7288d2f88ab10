"""Objects of other libraries: what somebody who trains policies already holds."""

import warnings

import numpy as np
import pytest

import grace_irl

from .robot import pays_experts, steps


def test_trajectories_of_imitation(experts, negatives):
    """Fit and reward trajectories of the `imitation` library."""
    types = pytest.importorskip("imitation.data.types")

    def trajectories(episodes):
        return [types.Trajectory(obs=each, acts=steps(each), infos=None, terminal=True) for each in episodes]

    run = grace_irl.fit(experts=trajectories(experts), negatives=trajectories(negatives), out="run")
    assert pays_experts(run.reward_path, experts, negatives)
    values = grace_irl.load_reward(run.reward_path).rewards(trajectories(experts))
    assert [len(each) for each in values] == [len(each) for each in experts]


@pytest.fixture
def datasets(here, monkeypatch, experts, negatives):
    """Two local Minari datasets: experts and negatives."""
    minari = pytest.importorskip("minari")
    gymnasium = pytest.importorskip("gymnasium")
    buffers = pytest.importorskip("minari.data_collector.episode_buffer")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(here / "minari"))

    def dataset(name, episodes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return minari.create_dataset_from_buffers(
                dataset_id=f"robot/{name}-v0",
                buffer=[
                    buffers.EpisodeBuffer(
                        id=number,
                        observations=list(each),
                        actions=list(steps(each)),
                        rewards=[0.0] * (len(each) - 1),
                        terminations=[False] * (len(each) - 2) + [True],
                        truncations=[False] * (len(each) - 1),
                        infos=None,
                    )
                    for number, each in enumerate(episodes)
                ],
                observation_space=gymnasium.spaces.Box(-9, 9, (3,), np.float64),
                action_space=gymnasium.spaces.Box(-9, 9, (2,), np.float64),
            )

    return dataset("expert", experts), dataset("random", negatives)


def test_datasets_of_minari(datasets, experts, negatives):
    """Fit two Minari datasets that are open already."""
    good, bad = datasets
    run = grace_irl.fit(experts=good, negatives=bad, out="run")
    assert pays_experts(run.reward_path, experts, negatives)


def test_episodes_of_minari(datasets, experts, negatives):
    """Fit and reward some episodes of a Minari dataset."""
    good, bad = ([*dataset.iterate_episodes()][:6] for dataset in datasets)
    run = grace_irl.fit(experts=good, negatives=bad, out="run")
    assert pays_experts(run.reward_path, experts, negatives)
    values = grace_irl.load_reward(run.reward_path).rewards(good)
    assert [len(each) for each in values] == [len(each.observations) for each in good]


def test_recorded_episodes(experts, negatives):
    """Fit dicts that a loop around a Gymnasium environment recorded."""

    def recorded(episodes):
        return [
            {
                "observations": list(each),
                "actions": list(steps(each)),
                "rewards": [0.0] * (len(each) - 1),
                "terminations": [False] * (len(each) - 2) + [True],
                "truncations": [False] * (len(each) - 1),
                "infos": {},
            }
            for each in episodes
        ]

    run = grace_irl.fit(experts=recorded(experts), negatives=recorded(negatives), out="run")
    assert pays_experts(run.reward_path, experts, negatives)


def spaces():
    """The robot's spaces of observations and actions."""
    spaces = pytest.importorskip("gymnasium").spaces
    return spaces.Box(-9, 9, (3,), np.float32), spaces.Box(-9, 9, (2,), np.float32)


def test_replay_buffers(experts, negatives):
    """Fit two replay buffers of Stable-Baselines3."""
    buffers = pytest.importorskip("stable_baselines3.common.buffers")

    def replay(episodes):
        buffer = buffers.ReplayBuffer(1000, *spaces(), device="cpu")
        for each in episodes:
            for number, action in enumerate(steps(each)):
                done = number == len(each) - 2
                buffer.add(each[number], each[number + 1], action, np.zeros(1), np.array([done]), [{}])
        return buffer

    run = grace_irl.fit(experts=replay(experts), negatives=replay(negatives), out="run")
    assert pays_experts(run.reward_path, experts, negatives)


def test_rollout_buffers(experts, negatives):
    """Fit the rollout buffers that PPO leaves."""
    buffers = pytest.importorskip("stable_baselines3.common.buffers")
    torch = pytest.importorskip("torch")

    def rollout(episodes):
        buffer = buffers.RolloutBuffer(sum(len(each) - 1 for each in episodes), *spaces(), device="cpu")
        for each in episodes:
            for number, action in enumerate(steps(each)):
                start = np.array([number == 0])
                buffer.add(each[number], action, np.zeros(1), start, torch.zeros(1), torch.zeros(1))
        assert buffer.full
        return buffer

    run = grace_irl.fit(experts=rollout(experts), negatives=rollout(negatives), out="run")
    assert pays_experts(run.reward_path, experts, negatives)
