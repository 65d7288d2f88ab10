"""True rewards as functions of transitions, against what the environments pay."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mujoco")

from grace_irl.evaluate.epic import Transitions, epic_distance, pearson_distance
from grace_irl.rl import environments
from grace_irl.rl.true_rewards import TABLE, true_reward


def played(environment_id: str, steps: int = 1500) -> tuple[Transitions, np.ndarray]:
    """Transitions of random actions, some of them held for a while so that the body gets going, and what was paid."""
    environment, _ = environments.make(environment_id)
    environment.action_space.seed(0)
    observation, _ = environment.reset(seed=0)
    rows, rewards = [], []
    for step in range(steps):
        if step % 4 == 0:
            action = environment.action_space.sample()
        reached, reward, terminated, truncated, _ = environment.step(action)
        rows.append((observation, action, reached, terminated))
        rewards.append(reward)
        observation = environment.reset()[0] if terminated or truncated else reached
    environment.close()
    return Transitions(*map(np.array, zip(*rows, strict=True))), np.array(rewards)


@pytest.mark.parametrize("name", sorted(TABLE))
@pytest.mark.parametrize("version", ["v4", "v5"])
def test_it_is_what_the_environment_pays(name: str, version: str) -> None:
    transitions, paid = played(f"{name}-{version}")
    found = true_reward(f"{name}-{version}")
    assert found is not None
    mine = found(transitions.states, transitions.actions, transitions.next_states, transitions.dones)
    if version == "v4" and found.healthy is not None:
        paid = paid - transitions.dones  # v4 pays the alive bonus for the step that ends the episode, too
    assert pearson_distance(mine, paid) < 0.15
    assert np.abs(mine - paid).mean() < 0.15 * paid.std() + 0.05


def test_a_reward_is_nearer_to_itself_without_its_control_cost_than_to_running_backwards() -> None:
    transitions, _ = played("HalfCheetah-v5", 600)
    true = true_reward("HalfCheetah-v5")
    assert true is not None
    forward = epic_distance(true, lambda s, a, n, d: n[:, 8], transitions, 0.99, samples=32)
    backward = epic_distance(true, lambda s, a, n, d: -n[:, 8], transitions, 0.99, samples=32)
    assert forward < 0.3 < 0.9 < backward


def test_others_have_none() -> None:
    assert true_reward("BabyAI-GoToObj-v0") is None
    assert true_reward("CartPole-v1") is None
    assert true_reward("") is None
