"""GAIL, AIRL, BC and PPO on the true reward: found by name, reproducible, and good at what they can be good at."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("imitation", reason="imitation is not installed: requirements/baselines.lock")
pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")

import gymnasium

from grace_irl.demos import load
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError
from grace_irl.rl import environments
from grace_irl.rl.evaluation import evaluate
from grace_irl.rl.hyperparameters import TABLE
from grace_irl.rl.method import PolicyProblem, Trained, load_method, offered
from grace_irl.rl.problems import make_problem
from tests.rl.cart_pole import experts, problem

ALL = ("airl", "bc", "gail", "ppo-true")
SMALL: dict[str, dict[str, Any]] = {
    "bc": {"updates": 20},
    "airl": {"steps_per_disc_update": 64, "demo_batch_size": 64},
    "gail": {"steps_per_disc_update": 64, "demo_batch_size": 64},
    "ppo-true": {},
}
GO_TO_OBJ = "BabyAI-GoToObj-v0"
SHIPPED = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"


QUICK = replace(TABLE["vector"], n_envs=4, n_steps=64, n_epochs=2)  # a rollout of 256 steps
GRID = replace(TABLE["grid"], n_envs=4, n_steps=64, n_epochs=1)


def weights(trained: Trained) -> list[Any]:
    policy: Any = trained.policy
    return [value.numpy() for value in policy.state_dict().values()]


def mean_return(trained: Trained, asked: PolicyProblem) -> float:
    return float(evaluate(trained.policy, asked.make_env, 10, 1, deterministic=True).returns.mean())


def test_the_entry_points_are_found() -> None:
    assert set(ALL) <= set(offered())
    for name in ALL:
        assert load_method(name).name == name


def test_settings_are_the_methods_fields() -> None:
    method: Any = load_method("airl", demo_batch_size=17)
    assert method.demo_batch_size == 17
    with pytest.raises(InputError, match=r"setting 'batch'; expected one of updates, batch_size, learning_rate"):
        load_method("bc", batch=3)
    with pytest.raises(InputError, match=r"setting 'x'; expected one of none"):
        load_method("ppo-true", x=3)


def test_an_unknown_method_is_refused_with_what_there_is() -> None:
    with pytest.raises(InputError, match=r"method 'sqil'; expected one of airl, bc, gail, ppo-true.*/baselines\)"):
        load_method("sqil")


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_a_seed_gives_the_same_policy_again_and_another_one_does_not(name: str) -> None:
    asked, method = problem(512, settings=QUICK), load_method(name, **SMALL[name])
    first, again, other = (weights(method.train(asked, seed)) for seed in (3, 3, 4))
    assert all(np.array_equal(one, same) for one, same in zip(first, again, strict=True))
    assert not all(np.array_equal(one, same) for one, same in zip(first, other, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_looking_at_a_policy_does_not_change_what_is_learnt(name: str) -> None:
    asked, method = problem(1024, watches=3, settings=QUICK), load_method(name, **SMALL[name])
    seen: list[int] = []
    looked: list[Any] = []

    def watch(steps: int, policy: Any) -> None:
        seen.append(steps)
        looked.append([each.copy() for each in weights(Trained(policy))])
        evaluate(policy, asked.make_env, 2, 0)

    watched, alone = method.train(asked, 0, watch), method.train(asked, 0)
    assert all(np.array_equal(one, same) for one, same in zip(weights(watched), weights(alone), strict=True))
    if name == "bc":
        assert (seen, watched.steps) == ([0], 0)
    else:
        assert (seen, watched.steps) == ([344, 684, 1024], 1024)
        learnt = [not all(map(np.array_equal, one, other)) for one, other in pairwise(looked)]
        assert all(learnt)  # each look is at a policy that has learnt since the last one
    assert all(map(np.array_equal, looked[-1], weights(watched)))


@pytest.mark.parametrize("name", ["airl", "gail"])
def test_the_recovered_reward_rates_transitions(name: str) -> None:
    asked = problem(512, settings=QUICK)
    trained = load_method(name, **SMALL[name]).train(asked, 0)
    assert trained.reward is not None
    states = experts()[0].trajectory.states[:11]
    actions = experts()[0].trajectory.actions[:10]
    dones = np.zeros(10, bool)
    rewards = trained.reward(states[:-1], actions, states[1:], dones)
    assert rewards.shape == (10,)
    assert np.isfinite(rewards).all()
    assert np.ptp(rewards) > 0
    one = trained.reward(states[3:4], actions[3:4], states[4:5], dones[:1])
    np.testing.assert_allclose(one, rewards[3:4], rtol=1e-5)


@pytest.mark.parametrize("name", ["airl", "bc", "gail"])
def test_demonstrations_without_actions_are_refused_before_training(name: str) -> None:
    item = experts()[0]
    bare = replace(item, trajectory=replace(item.trajectory, actions=None))
    asked = problem(2048, demonstrations=Demonstrations(experts().metadata, (bare,)))
    with pytest.raises(InputError, match=rf"{name}: episode 0 has no actions; .* leave {name} out of --methods"):
        load_method(name).check(asked)
    load_method("ppo-true").check(asked)


@pytest.mark.parametrize("name", ALL)
def test_logs_are_written_where_they_are_asked_for(name: str, tmp_path: Path) -> None:
    load_method(name, **SMALL[name]).train(replace(problem(512, settings=QUICK), log=tmp_path), 0)
    assert list(tmp_path.rglob("events.out.tfevents*"))


@pytest.mark.parametrize("name", ALL)
def test_grids_with_instructions(name: str) -> None:
    demonstrations = load([SHIPPED])
    asked = make_problem(demonstrations, lambda: environments.make(GO_TO_OBJ), 256, settings=GRID)
    method = load_method(name, **SMALL[name])
    method.check(asked)
    trained = method.train(asked, 0)
    found = evaluate(trained.policy, asked.make_env, 3, 0)
    assert found.successes is not None
    if trained.reward is not None:
        episode = demonstrations.select(role="expert")[0].trajectory
        observations = asked.observe(episode)
        rewards = trained.reward(
            observations[:-1], episode.actions, observations[1:], np.zeros(episode.num_steps, bool)
        )
        assert np.isfinite(rewards).all()


@pytest.mark.slow
def test_cloning_an_expert_that_balances_balances() -> None:
    asked = problem(1)
    assert mean_return(load_method("bc", updates=1500).train(asked, 0), asked) > 450


@pytest.mark.slow
def test_ppo_learns_on_the_true_reward() -> None:
    asked = problem(30_000)
    assert mean_return(load_method("ppo-true").train(asked, 0), asked) > 300


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gail", "airl"])
def test_adversaries_imitate_without_the_true_reward(name: str) -> None:
    """A policy that acts by chance stays up for about 22 steps; untuned, AIRL ended below 50."""
    asked = problem(20_000)
    assert mean_return(load_method(name).train(asked, 0), asked) > 300


@pytest.mark.parametrize("name", ["airl", "bc", "gail", "ppo-true"])
def test_actions_that_do_not_begin_at_0_are_refused(name: str) -> None:
    asked = problem(512, settings=QUICK)
    items = [
        replace(each, trajectory=replace(each.trajectory, actions=each.trajectory.actions + 1))
        for each in asked.demonstrations
    ]
    shifted = replace(asked.demonstrations, items=tuple(items))

    def make() -> Any:
        environment = asked.make_env()
        environment.action_space = gymnasium.spaces.Discrete(2, start=1)
        return environment

    with pytest.raises(InputError, match=r"actions of Discrete\(2, start=1\); expected actions from 0"):
        load_method(name, **SMALL[name]).train(replace(asked, make_env=make, demonstrations=shifted), 0)
