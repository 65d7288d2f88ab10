"""Problems: experts' episodes as methods get them, the fixed-horizon form of a whole problem, and warnings."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import gymnasium
import torch
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Tuple

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.rl import environments
from grace_irl.rl.curve import Watching
from grace_irl.rl.episodes import expert_episodes
from grace_irl.rl.hyperparameters import hyperparameters
from grace_irl.rl.learning import learn_on, true_pay
from grace_irl.rl.method import PolicyProblem, Trained
from grace_irl.rl.observed import acts_continuously
from grace_irl.rl.problems import ends_early, length_warnings, make_problem
from tests.rl.cart_pole import experts, play, problem


def having(*trajectories: Trajectory) -> Demonstrations:
    return Demonstrations(Metadata("vector"), tuple(Demonstration(each, "expert") for each in trajectories))


def pendulum(*trajectories: Trajectory) -> PolicyProblem:
    return make_problem(having(*trajectories), lambda: environments.make("Pendulum-v1"), 10)


@dataclass(frozen=True)
class Stand:
    """A method that learns nothing."""

    name: str
    reads_length: str

    def check(self, problem: PolicyProblem) -> None:
        """Nothing."""

    def train(self, problem: PolicyProblem, seed: int, watch: Any = None) -> Trained:
        raise AssertionError


READS, DOES_NOT = Stand("gail", "its reward is positive"), Stand("bc", "")


def test_only_training_experts_are_learnt_from() -> None:
    items = (replace(play(0), split="held_out"), replace(play(1), split="train"), play(2, "negative"))
    found = expert_episodes(problem(1, demonstrations=Demonstrations(experts().metadata, items)), "bc")
    assert len(found) == 1
    np.testing.assert_array_equal(found[0].observations, items[1].trajectory.states)


def test_without_experts_there_is_nothing_to_learn_from() -> None:
    empty = Demonstrations(experts().metadata, (play(2, "negative"),))
    with pytest.raises(InputError, match=r"bc: no expert demonstration .* expected at least one"):
        expert_episodes(problem(1, demonstrations=empty), "bc")


def test_continuous_actions_are_clipped_to_what_can_be_done() -> None:
    taken = np.array([[-9.0], [0.5], [9.0]])
    (found,) = expert_episodes(pendulum(Trajectory(np.zeros((4, 3)), taken)), "gail")
    np.testing.assert_array_equal(found.actions, np.array([[-2], [0.5], [2]], np.float32))
    assert found.actions.dtype == np.float32
    assert not found.ended


def test_continuous_actions_may_be_single_numbers_where_vectors_of_one_are_taken() -> None:
    """As a table with one column of actions has them."""
    (found,) = expert_episodes(pendulum(Trajectory(np.zeros((4, 3)), np.array([-1.0, 0.5, 1.0]))), "gail")
    np.testing.assert_array_equal(found.actions, np.array([[-1], [0.5], [1]], np.float32))


@pytest.mark.parametrize("actions", [np.zeros((3, 2)), np.zeros((3, 1, 2))])
def test_continuous_actions_of_another_size_are_refused(actions: Any) -> None:
    with pytest.raises(InputError, match=r"gail: .* expected \(1,\) for Box.*another environment"):
        expert_episodes(pendulum(Trajectory(np.zeros((4, 3)), actions)), "gail")


@pytest.mark.parametrize("actions", [np.array([0, 1, 2]), np.array([-1, 0, 1]), np.array([0.5, 1, 0]), np.ones((3, 2))])
def test_discrete_actions_that_do_not_exist_are_refused(actions: Any) -> None:
    asked = problem(1, demonstrations=having(Trajectory(np.zeros((4, 4)), actions)))
    with pytest.raises(InputError, match=r"gail: .* expected whole numbers in Discrete\(2\)"):
        expert_episodes(asked, "gail")


@pytest.mark.parametrize("actions", [np.array([0.0, 1, 1]), np.array([[0], [1], [1]]), np.array([0, 1, 1], np.uint8)])
def test_discrete_actions_are_whole_numbers_however_they_are_kept(actions: Any) -> None:
    asked = problem(1, demonstrations=having(Trajectory(np.zeros((4, 4)), actions)))
    (found,) = expert_episodes(asked, "gail")
    assert found.actions.dtype == np.int64
    assert found.actions.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("space", "actions", "dtype"),
    [(MultiDiscrete([3, 2]), [[2, 1], [0, 0]], np.int64), (MultiBinary(2), [[True, False], [False, True]], np.float32)],
)
def test_several_discrete_actions_at_once(space: Any, actions: Any, dtype: Any) -> None:
    def make() -> Any:
        environment = gymnasium.make("CartPole-v1")
        environment.action_space = space
        return environment

    def asked(taken: Any) -> PolicyProblem:
        return make_problem(having(Trajectory(np.zeros((3, 4)), np.array(taken))), make, 10)

    (found,) = expert_episodes(asked(actions), "gail")
    assert found.actions.dtype == dtype
    assert found.actions.tolist() == actions
    for others in ([[0, 2], [0, 0]], [[0.5, 0], [0, 0]], [0, 1], [[0], [1]]):
        with pytest.raises(InputError, match=rf"gail: .* expected whole numbers in {type(space).__name__}\("):
            expert_episodes(asked(others), "gail")


def test_states_of_another_environment_are_refused() -> None:
    asked = problem(1, demonstrations=having(Trajectory(np.zeros((4, 7)), np.zeros(3))))
    with pytest.raises(InputError, match=r"observations of shape \(7,\); expected \(4,\).*another environment"):
        expert_episodes(asked, "gail")


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (Discrete(3, start=1), "actions from 0: shift them"),
        (MultiDiscrete([3, 2], start=[0, 1]), "actions from 0"),
        (Box(-np.inf, np.inf, (1,), np.float32), "finite bounds"),
        (Box(-2, 2, (2,), np.int32), "a Box of float32, or whole numbers from 0"),
        (MultiBinary([2, 2]), "of one dimension: flatten them"),
        (Tuple((Discrete(2), Discrete(3))), "Discrete, Box, or"),
    ],
    ids=str,
)
@pytest.mark.parametrize("call", [lambda make: make_problem(having(), make, 10, horizon=9), acts_continuously])
def test_actions_that_ppo_cannot_learn_are_refused_before_any_training(
    call: Callable[[Any], object], space: gymnasium.Space[Any], expected: str
) -> None:
    def make() -> tuple[Any, Any]:
        environment, view = environments.make("Pendulum-v1")
        environment.action_space = space
        return environment, view

    with pytest.raises(InputError, match=f"^actions of {re.escape(str(space))}; expected .*{expected}"):
        call(make)


def test_the_fixed_horizon_holds_for_environment_and_experts() -> None:
    fallen = replace(play(3, "negative"), role="expert")
    length = fallen.trajectory.num_steps
    asked = problem(1, horizon=30, demonstrations=Demonstrations(experts().metadata, (play(0), fallen)))
    with closing(asked.make_env()) as environment:
        assert environment.observation_space.shape == (5,)
        observation, _ = environment.reset(seed=0)
        learner_sees = observation.dtype
    long, short = expert_episodes(asked, "gail")
    assert (len(long.actions), len(short.actions)) == (30, 30)
    assert long.ended
    assert short.ended
    assert short.observations.dtype == learner_sees
    np.testing.assert_array_equal(short.observations[:, 4], [0.0] * length + [1.0] * (31 - length))
    assert not long.observations[:, 4].any()
    _, imitated = expert_episodes(asked, "bc", absorbing=False)
    assert len(imitated.actions) == length


def test_a_grid_has_a_fixed_horizon_with_its_instruction() -> None:
    pytest.importorskip("minigrid")
    from grace_irl.rl.collect import collect

    level = "BabyAI-GoToObj-v0"
    asked = make_problem(collect(level, "bot", 2, "expert"), lambda: environments.make(level), 10, horizon=64)
    (first, _) = expert_episodes(asked, "gail")
    with closing(asked.make_env()) as environment:
        observation, _ = environment.reset(seed=0)
        policy = asked.make_learner(_vectorised(asked), 0).policy
        assert environment.observation_space.contains(observation)
        assert first.observations.shape == (65, *observation.shape)
    actions, _ = policy.predict(first.observations)
    assert actions.shape == (65,)


def _vectorised(asked: PolicyProblem) -> Any:
    from stable_baselines3.common.vec_env import DummyVecEnv

    return DummyVecEnv([asked.make_env] * asked.num_envs)


def test_who_can_read_the_length_of_episodes_is_warned_of() -> None:
    (line,) = length_warnings(problem(1), (READS, DOES_NOT))
    assert line.startswith("gail: episodes vary in length (5 of 5 episodes of random actions reach a terminal state)")
    assert "its reward is positive" in line
    assert "--horizon" in line
    fallen = Demonstrations(experts().metadata, (play(0), replace(play(3), trajectory=play(3, "negative").trajectory)))
    assert "1 of 2 experts' episodes" in ends_early(problem(1, demonstrations=fallen))


def test_an_episode_that_does_not_end_ends_nothing_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grace_irl.rl.problems.PROBED", 1)
    assert ends_early(problem(1)) == ""


def test_where_episodes_have_one_length_nobody_is_warned() -> None:
    states, actions = np.zeros((201, 3)), np.zeros((200, 1))
    # Recordings call a time limit terminal; Pendulum-v1 has one of 200 steps and nothing else.
    assert length_warnings(pendulum(Trajectory(states, actions, terminated=True)), (READS,)) == ()
    assert length_warnings(problem(1, horizon=100), (READS,)) == ()
    assert length_warnings(problem(1), (DOES_NOT,)) == ()


@pytest.mark.parametrize("name", ["steps", "num_envs", "watches"])
def test_a_problem_needs_positive_numbers(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} 0; expected at least 1"):
        replace(problem(1), **{name: 0})
    with pytest.raises(InputError, match="horizon -1; expected at least 0"):
        replace(problem(1), horizon=-1)


def test_a_policy_is_shown_at_even_distances_and_once_at_the_end() -> None:
    seen: list[int] = []
    watching = Watching(replace(problem(100), watches=4), lambda steps, policy: seen.append(steps))
    policy: Any = object()
    for steps in range(7, 112, 7):  # the last rollout ends at 112 steps
        watching.at(steps, policy)
    watching.end(112, policy)
    assert seen == [28, 56, 77, 112]
    watching.end(112, policy)
    assert seen == [28, 56, 77, 112]
    assert watching.kept == ()
    jumps = Watching(replace(problem(100), watches=4), lambda steps, policy: seen.append(-steps))
    jumps.at(80, policy)  # three points at once
    jumps.at(99, policy)
    jumps.at(100, policy)
    jumps.end(100, policy)
    assert seen[4:] == [-80, -100]


def test_no_policy_is_shown_or_kept_before_its_first_update() -> None:
    """PPO updates a policy after 8 x 256 steps here."""
    for steps, watches in ((1_000, 1), (4_095, 1), (4_096, 2), (100_000, 10)):
        assert problem(steps, watches=10, keeps=(2_047, 2_048)).watches == watches
    assert problem(4_096, keeps=(2_047, 2_048, 4_000)).keeps == (2_048, 4_000)


def test_copies_of_a_policy_are_kept_on_the_way_and_learn_no_more() -> None:
    policy: Any = {"weight": 0}
    watching = Watching(replace(problem(100), keeps=(30, 40, 90)), lambda steps, policy: None)
    for steps in (7, 35, 50, 95):
        policy["weight"] = steps
        watching.at(steps, policy)
    watching.end(100, policy)
    assert [(each.steps, each.policy) for each in watching.kept] == [
        *((35, {"weight": 35}), (50, {"weight": 50}), (95, {"weight": 95})),
    ]


@pytest.mark.parametrize("environment", ["CartPole-v1", "Pendulum-v1"])
def test_a_policy_is_copied_right_after_its_update(environment: str) -> None:
    """Then the distribution of its last actions belongs to the update's graph, which torch does not copy."""
    settings = replace(hyperparameters(environment, "vector"), n_envs=2, n_steps=16, batch_size=16)
    made = Demonstrations(environments.make(environment)[1].metadata, ())
    short = make_problem(made, lambda: environments.make(environment), 96, settings=settings, keeps=(32, 64))
    trained = learn_on(short, 0, true_pay, lambda steps, policy: None)
    first, second = trained.kept
    assert (first.steps, second.steps) == (32, 64)
    policies: list[Any] = [first.policy, second.policy]
    assert not torch.equal(*(each.action_net.weight for each in policies))
    for each in policies:
        each.predict(each.observation_space.sample())
