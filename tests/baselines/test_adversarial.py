"""The rounds of GAIL and AIRL: what the discriminator is shown, and what the learner is paid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("imitation", reason="imitation is not installed: requirements/baselines.lock")
pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")

import gymnasium
import torch
from imitation.algorithms.adversarial.common import AdversarialTrainer
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata, Trajectory
from grace_irl.rl.hyperparameters import Hyperparameters
from grace_irl.rl.learning import normalised
from grace_irl.rl.method import PolicyProblem, load_method
from grace_irl.rl.observers import RecordObserver, VectorObserver
from grace_irl.rl.trained import build_network
from grace_irl_baselines.gail import Gail
from grace_irl_baselines.nets import Positive, StateActionNet, shaped

LENGTH = 3


class Counter(gymnasium.Env[Any, Any]):
    """Observes the number of steps so far; ends after LENGTH of them, and pays 1,000 for each."""

    observation_space = gymnasium.spaces.Box(0, 10, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.count += 1
        return np.full(1, self.count, np.float32), 1000.0, self.count == LENGTH, False, {}


def counting(make_learner: Any, label: LabelRule = "all", **options: Any) -> PolicyProblem:
    states = np.arange(LENGTH + 1, dtype=np.float32)[:, None]
    expert = Trajectory(states, np.ones(LENGTH, np.int64), terminated=True)
    demonstrations = Demonstrations(Metadata("vector", label=label), (Demonstration(expert, "expert"),))
    return PolicyProblem(demonstrations, Counter, lambda one: one.states, make_learner, 96, num_envs=2, **options)


def ppo(venv: Any, seed: int, **options: Any) -> PPO:
    return PPO("MlpPolicy", venv, n_steps=16, batch_size=16, n_epochs=1, seed=seed, device="cpu", **options)


SMALL = {"steps_per_disc_update": 16, "demo_batch_size": 64}


@pytest.mark.parametrize("name", [pytest.param("airl", marks=pytest.mark.slow), "gail"])
def test_a_transition_into_the_end_of_an_episode_holds_its_last_observation(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectorised environments show the next episode's first observation instead."""
    shown = []
    real = AdversarialTrainer.train_disc

    def spy(self: Any, *, gen_samples: Any) -> Any:
        shown.append(gen_samples)
        return real(self, gen_samples=gen_samples)

    monkeypatch.setattr(AdversarialTrainer, "train_disc", spy)
    load_method(name, **SMALL).train(counting(ppo), 0)
    assert len(shown) == 3 * 2  # rollouts, and updates after each
    for drawn in shown:
        np.testing.assert_array_equal(drawn["next_obs"], drawn["obs"] + 1)
        np.testing.assert_array_equal(drawn["dones"], drawn["next_obs"][:, 0] == LENGTH)
    assert any(drawn["dones"].any() for drawn in shown)


def paid(name: str, label: LabelRule = "all", **settings: Any) -> Any:
    """What the learner was paid in three rollouts, `(48, 2)`."""
    found: list[Any] = []

    class Spy(PPO):
        def train(self) -> None:
            found.append(self.rollout_buffer.rewards.copy())
            super().train()

    def make(venv: Any, seed: int) -> PPO:
        return Spy("MlpPolicy", venv, n_steps=16, batch_size=16, n_epochs=1, seed=seed, device="cpu")

    load_method(name, **SMALL, **settings).train(counting(make, label), 0)
    assert len(found) == 3
    return np.concatenate(found)


@pytest.mark.parametrize("pays", ["reward", "centred", "positive"])
@pytest.mark.parametrize("name", ["airl", "gail"])
def test_the_learner_is_never_paid_the_true_reward(name: str, pays: str) -> None:
    assert np.abs(paid(name, pays=pays)).max() < 100


@pytest.mark.parametrize("name", ["airl", "gail"])
def test_a_centred_reward_has_no_sign(name: str) -> None:
    centred = paid(name, pays="centred")
    assert abs(centred.mean()) < 1.5  # in deviations; the running mean lags behind a discriminator that learns
    for rollout in centred.reshape(3, 16, 2):
        assert (rollout < 0).any()
        assert (rollout > 0).any()


@pytest.mark.parametrize("name", [pytest.param("airl", marks=pytest.mark.slow), "gail"])
def test_what_is_paid_is_positive_unless_episodes_end_with_success(name: str) -> None:
    """-log(1 - D) > 0 is the reason for `reads_length`; where success ends an episode, it pays for not finishing."""
    assert (paid(name, pays="positive") > 0).all()
    np.testing.assert_array_equal(paid(name), paid(name, pays="positive"))
    np.testing.assert_array_equal(paid(name, label="last"), paid(name, pays="centred"))


def test_gails_own_reward_is_the_positive_one_and_airls_is_not() -> None:
    np.testing.assert_array_equal(paid("gail", pays="reward"), paid("gail", pays="positive"))
    assert (paid("airl", pays="reward") != paid("airl", pays="positive")).any()


def test_the_positive_form_is_that_of_the_discriminator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside imitation's GAIL, whose reward it is."""
    asked: list[Any] = []
    real = Positive.__call__

    def spy(self: Positive, *transition: Any) -> Any:
        found = real(self, *transition)
        asked.append((found, self._trainer.reward_train.predict_processed(*transition)))
        return found

    monkeypatch.setattr(Positive, "__call__", spy)
    monkeypatch.setattr(Gail, "is_positive", False)
    load_method("gail", **SMALL).train(counting(ppo), 0)
    assert len(asked) == 3 * 16
    for ours, theirs in asked:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_a_schedule_of_the_learner_runs_once_over_the_whole_training() -> None:
    left: list[float] = []

    def schedule(part: float) -> float:
        left.append(part)
        return 1e-3 * part

    load_method("gail", **SMALL).train(counting(lambda venv, seed: ppo(venv, seed, learning_rate=schedule)), 0)
    steps = list(dict.fromkeys(round(part, 6) for part in left))
    assert steps == sorted(steps, reverse=True)
    assert {round(2 / 3, 6), round(1 / 3, 6), 0.0} <= set(steps)


def test_rewards_are_scaled_alike_for_all_and_only_where_the_problem_says_so() -> None:
    venv = DummyVecEnv([Counter])
    assert normalised(venv, 0.9, norm_reward=False) is venv
    scaled = normalised(venv, 0.9, norm_reward=True)
    assert isinstance(scaled, VecNormalize)
    assert (scaled.norm_obs, scaled.norm_reward, scaled.gamma) == (False, True, 0.9)


def test_airl_is_a_reward_and_a_potential() -> None:
    """f(s, a, s') = g(s, a) + discount h(s') - h(s), and h is 0 at the end (Fu et al. 2018, equation 4)."""
    policy = ppo(DummyVecEnv([Counter]), 0).policy
    net = shaped(policy, (8,), 0.9).eval()
    state, reached = torch.rand(5, 1), torch.rand(5, 1)
    action, done = torch.eye(2)[[0, 1, 1, 0, 1]], torch.tensor([0.0, 0, 0, 1, 1])
    expected = net.base(state, action, reached, done) - net.potential(state)
    expected = expected + 0.9 * (1 - done) * net.potential(reached)
    torch.testing.assert_close(net(state, action, reached, done), expected)
    assert not torch.allclose(net(state, action, reached, done), net.base(state, action, reached, done))


def test_nets_share_no_weights_with_the_policy() -> None:
    """The discriminator must not move what the learner reads observations with."""
    policy = ppo(DummyVecEnv([Counter]), 0).policy
    mine = {id(value) for value in policy.parameters()}
    assert not mine & {id(value) for value in shaped(policy, (8,), 0.9).parameters()}


@pytest.mark.parametrize(
    ("observer", "state_of"),
    [
        (RecordObserver.of({"at": np.zeros(2), "said": "go"}), lambda at: {"at": at, "said": "go"}),
        (VectorObserver(2), lambda at: at),
    ],
    ids=["record", "vector"],
)
def test_numbers_are_normalised_by_what_the_discriminator_sees(observer: Any, state_of: Any) -> None:
    policy = build_network(observer, gymnasium.spaces.Discrete(2), Hyperparameters("test", net_arch=(8,)))
    net = StateActionNet(policy, (8,))
    rng = np.random.default_rng(0)
    for _ in range(20):
        seen = np.stack([observer.observe(state_of(at), "") for at in rng.normal(5000, 1000, (50, 2))])
        transition = net.preprocess(seen, np.zeros(50, np.int64), seen, np.zeros(50, bool))
        net.train()(*transition)
    with torch.no_grad():
        numbers = net.eval().reader(transition[0])[:, :2]
    assert 0.5 < float(numbers.std()) < 2
    assert abs(float(numbers.mean())) < 0.5
