"""PPO end to end, on few steps: it learns what can be learnt at once, goes on after a kill, and says what it did."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import gymnasium
import torch
from gymnasium.spaces import Box, Dict, Discrete, Text

import grace_irl
from grace_irl.demos.trajectory import Metadata
from grace_irl.errors import GraceError, InputError
from grace_irl.rewards.view import StateView
from grace_irl.rl import ppo
from grace_irl.rl.curve import from_json
from grace_irl.rl.environments import FunctionView, make
from grace_irl.rl.hyperparameters import TABLE, Hyperparameters, hyperparameters
from grace_irl.rl.learning import ProgramPay
from grace_irl.rl.ppo import CURVE, POLICY, STATE, TENSORBOARD, Training, train
from grace_irl.rl.rollouts import demonstrations, play
from grace_irl.rl.trained import load_policy
from grace_irl.rl.views import SpaceView
from grace_irl.states.vector import VECTOR

FAST = Hyperparameters("test", n_envs=4, n_steps=32, batch_size=32, n_epochs=4, learning_rate=3e-3, net_arch=(32,))


class Lamp(gymnasium.Env[Any, Any]):
    """A random bit is shown; the action that repeats it earns 1. Five steps."""

    def __init__(self) -> None:
        self.observation_space = Box(-1, 1, (2,), np.float64)
        self.action_space = Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._left = 5
        return self._shown(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = float(int(action) == self._bit)
        self._left -= 1
        return self._shown(), reward, False, self._left == 0, {"reward_bit": reward, "other": 7}

    def _shown(self) -> Any:
        self._bit = int(self.np_random.integers(2))
        return np.array([2.0 * self._bit - 1, 0.0])


WRONG = """
class Reward:
    def reward_fn(self, state, action, next_state):
        return float(int(action) != int(state[0] > 0))
"""


def lamp() -> tuple[Any, StateView]:
    environment = Lamp()
    return environment, SpaceView("", environment.observation_space, VECTOR)


class Sign(Lamp):
    """The bit is a word of a record, beside a number that says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = Dict({"sign": Text(8), "noise": Box(0, 1e6, (1,), np.float64)})  # type: ignore[assignment]

    def _shown(self) -> Any:
        bit = super()._shown()[0] > 0
        return {"sign": "turn left" if bit else "turn right", "noise": self.np_random.uniform(0, 1e6, 1)}


class Camera(Sign):
    """The bit is the lower half of a picture in a record."""

    def _shown(self) -> Any:
        shown = super()._shown()
        seen = np.zeros((36, 36, 1), np.uint8)
        seen[18:] = 200 * (shown.pop("sign") == "turn left")
        return shown | {"seen": seen}


class Screen(Camera):
    """That picture alone, smaller than the network reads."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = Box(0, 255, (6, 5, 3), np.uint8)

    def _shown(self) -> Any:
        return super()._shown()["seen"][::6, :5] * np.ones(3, np.uint8)


class Mission(Sign):
    """The bit is the episode's instruction."""

    mission = ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.mission = ""
        return super().reset(seed=seed)

    def _shown(self) -> Any:
        shown = super()._shown()
        self.mission = self.mission or str(shown["sign"])
        self._bit = int(self.mission == "turn left")
        return {"noise": shown["noise"]}


@pytest.mark.slow
@pytest.mark.parametrize("form", [Sign, Camera, Screen, Mission])
def test_it_reads_texts_pictures_and_instructions(form: type[Lamp], tmp_path: Path) -> None:
    kind = "image" if form is Screen else "record"
    make = lambda: (form(), FunctionView(Metadata(kind)))  # noqa: E731
    settings = dataclasses.replace(FAST, learning_rate=1e-3, net_arch=()) if form is Screen else FAST
    training = train(make, 3000, settings=settings, evaluations=1, out=tmp_path)
    assert training.curve[-1].mean > 4.9
    loaded = load_policy(tmp_path / POLICY)
    assert loaded.observer == training.policy.observer
    one, other = (play(policy, make, 3, seed=1) for policy in (training.policy, loaded))
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine.trajectory.actions, theirs.trajectory.actions)
        np.testing.assert_array_equal(mine.trajectory.log_probs, theirs.trajectory.log_probs)


def numbers(training: Training) -> list[tuple[Any, ...]]:
    return [dataclasses.astuple(dataclasses.replace(point, seconds=0.0)) for point in training.curve]


def weights(training: Training) -> dict[str, torch.Tensor]:
    return dict(training.policy.network.state_dict())


@pytest.mark.slow
def test_it_learns_the_true_reward_or_the_one_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "reward.py").write_text(WRONG)
    reward = ProgramPay(grace_irl.load_reward(tmp_path / "reward.py", trust=True))
    options: dict[str, Any] = {"settings": FAST, "evaluations": 2, "episodes": 20}
    assert train(lamp, 3000, **options).curve[-1].mean > 4.9
    misled = train(lamp, 3000, reward=reward, **options).curve[-1]
    assert misled.mean < 0.1  # what counts in evaluations is the environment's own reward
    assert misled.components == {"reward_bit": misled.mean}
    assert misled.paid is not None
    assert misled.paid > 4
    assert misled.success is None
    assert misled.length == 5


def test_where_the_program_runs_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "reward.py").write_text(WRONG)
    trainings = [
        train(
            lamp,
            500,
            reward=ProgramPay(grace_irl.load_reward(tmp_path / "reward.py", trust=trust), form="logit"),
            settings=FAST,
            evaluations=1,
        )
        for trust in (True, False)
    ]
    assert numbers(trainings[0]) == numbers(trainings[1])
    for one, other in zip(*(weights(training).values() for training in trainings), strict=True):
        assert torch.equal(one, other)


def test_a_program_that_fails_ends_the_training_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "reward.py").write_text("class Reward:\n    def reward_fn(self, s):\n        return 1 / (s[0] - 1)\n")
    with pytest.raises(GraceError, match=r"reward.py: .*(ZeroDivisionError|nonfinite)"):
        train(lamp, 500, reward=ProgramPay(grace_irl.load_reward(tmp_path / "reward.py")), settings=FAST)


def test_the_same_seed_gives_the_same_policy_and_another_another() -> None:
    first, again, other = (train(lamp, 400, settings=FAST, evaluations=2, episodes=3, seed=seed) for seed in (3, 3, 4))
    assert numbers(first) == numbers(again) != numbers(other)
    assert first.steps == 512  # two parts, each of whole rollouts of 128


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["Hopper-v5", "BabyAI-GoToObj-v0"])
def test_a_resumed_training_gives_what_an_uninterrupted_one_gives(tmp_path: Path, environment: str) -> None:
    pytest.importorskip("mujoco" if environment == "Hopper-v5" else "minigrid")
    settings = dataclasses.replace(FAST, norm_reward=environment == "Hopper-v5")

    class StopError(Exception):
        pass

    def stop(point: Any) -> None:
        if point.steps >= 256:
            raise StopError

    def run(out: Path, **options: Any) -> Training:
        return train(lambda: make(environment), 640, settings=settings, evaluations=5, episodes=2, out=out, **options)

    whole = run(tmp_path / "whole")
    with pytest.raises(StopError):
        run(tmp_path / "cut", progress=stop)
    seen: list[int] = []
    resumed = run(tmp_path / "cut", progress=lambda point: seen.append(point.steps))
    assert seen == [384, 512, 640]
    assert numbers(resumed) == numbers(whole)
    assert from_json((tmp_path / "cut" / CURVE).read_text()) == resumed.curve
    if find_spec("tensorboard") is not None:  # one log, which every part of the training goes on with
        assert len(list((tmp_path / "cut" / TENSORBOARD).iterdir())) == 1
    for one, other in zip(weights(resumed).values(), weights(whole).values(), strict=True):
        assert torch.equal(one, other)
    assert numbers(run(tmp_path / "cut")) == numbers(whole)  # nothing is left to do


def test_a_training_goes_on_after_the_file_of_its_environment_has_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StopError(Exception):
        pass

    def stop(_: object) -> None:
        raise StopError

    def run(place: str, name: str = "own.py:make", **options: Any) -> Training:
        view = FunctionView(Metadata("vector", (), f"{place}/{name}"))
        made = lambda: (gymnasium.make("CartPole-v1"), view)  # noqa: E731
        return train(made, 256, settings=FAST, evaluations=2, episodes=1, out=tmp_path / "run", **options)

    # Checkpoints of older versions name the folder, and go on where the file stays.
    monkeypatch.setattr(ppo, "without_folder", lambda name: name)
    with pytest.raises(StopError):
        run("/here", progress=stop)
    monkeypatch.undo()
    with pytest.raises(InputError, match="of a training with other settings"):
        run("/there", progress=stop)
    with pytest.raises(StopError):
        run("/here", progress=stop)
    with pytest.raises(InputError, match="of a training with other settings"):
        run("/there", "other.py:make")
    assert len(run("/there").curve) == 2


@pytest.mark.slow
def test_a_killed_training_goes_on(tmp_path: Path) -> None:
    script = f"""
from tests.rl.test_ppo import FAST, lamp
from grace_irl.rl.ppo import train
train(lamp, 2000, settings=FAST, evaluations=15, episodes=2, out={str(tmp_path / "run")!r}, progress=print)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    options: dict[str, Any] = {"settings": FAST, "evaluations": 15, "episodes": 2}
    resumed = train(lamp, 2000, out=tmp_path / "run", **options)
    assert numbers(resumed) == numbers(train(lamp, 2000, **options))
    kept = {path.name for path in (tmp_path / "run").iterdir() if path.suffix != ".part"}
    assert kept - {TENSORBOARD} == {POLICY, STATE, CURVE}


def test_a_training_is_evaluated_at_most_once_a_rollout() -> None:
    steps = [point.steps for point in train(lamp, 200, settings=FAST, evaluations=50, episodes=1).curve]
    assert steps == sorted(set(steps))
    assert steps[-1] >= 200


def test_a_training_leaves_nothing_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    train(lamp, 200, settings=FAST, evaluations=2, episodes=1)
    assert list(tmp_path.iterdir()) == []


def test_another_training_s_folder_is_refused(tmp_path: Path) -> None:
    train(lamp, 100, settings=FAST, evaluations=1, episodes=1, out=tmp_path)
    with pytest.raises(InputError, match="another folder for a new one"):
        train(lamp, 100, settings=FAST, evaluations=1, episodes=1, out=tmp_path, seed=1)
    (tmp_path / STATE).write_bytes(b"nonsense")
    with pytest.raises(InputError, match="not a checkpoint"):
        train(lamp, 100, settings=FAST, evaluations=1, episodes=1, out=tmp_path)


def test_training_can_start_from_a_policy() -> None:
    learnt = train(lamp, 3000, settings=FAST, evaluations=1, episodes=1).policy
    before = {name: value.clone() for name, value in learnt.network.state_dict().items()}
    onwards = train(lamp, 128, settings=FAST, evaluations=1, episodes=20, initial=learnt)
    assert onwards.curve[0].mean > 4.5
    for name, value in learnt.network.state_dict().items():
        assert torch.equal(value, before[name])


def test_a_policy_of_another_environment_is_no_start() -> None:
    pytest.importorskip("minigrid")
    learnt = train(lamp, 128, settings=FAST, evaluations=1, episodes=1).policy
    with pytest.raises(InputError, match="observes VectorObserver"):
        train(lambda: make("BabyAI-GoToObj-v0"), 128, settings=FAST, initial=learnt)
    with pytest.raises(InputError, match=r"layers \(32,\)"):
        train(lamp, 128, settings=dataclasses.replace(FAST, net_arch=(8,)), initial=learnt)


@pytest.mark.parametrize("environment", ["Hopper-v5", "BabyAI-GoToLocal-v0"])
def test_rollouts_are_demonstrations_of_the_same_form_as_collected_ones(environment: str) -> None:
    pytest.importorskip("mujoco" if environment == "Hopper-v5" else "minigrid")
    policy = train(lambda: make(environment), 128, settings=FAST, evaluations=1, episodes=1).policy
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    rollouts = play(policy, lambda: make(environment), 20, seed=9)
    assert torch.equal(torch.rand(1), expected)
    found = demonstrations(rollouts, lambda: make(environment), task="mine")
    from grace_irl.rl.collect import collect

    like = collect(environment, "random", 1, "negative", keep_successes=True)
    assert found.metadata == like.metadata
    assert len(found) == 20
    for one, rollout in zip(found, rollouts, strict=True):
        theirs = like[0].trajectory
        trajectory = one.trajectory
        assert (one.role, one.task) == ("negative", "mine")
        assert trajectory.states.dtype == theirs.states.dtype
        assert trajectory.states.shape[1:] == theirs.states.shape[1:]
        assert trajectory.terminated or trajectory.truncated
        assert trajectory.log_probs is not None
        assert trajectory.rewards is not None
        # The total is added up step by step, numpy adds in pairs: 1000 roundings differ by 2e-13 at most.
        assert rollout.total == pytest.approx(trajectory.rewards.sum(), rel=1e-12)
        if environment == "Hopper-v5":
            parts = {"reward_forward", "reward_ctrl", "reward_survive"}
            assert parts == set(rollout.components)
            assert sum(rollout.components.values()) == pytest.approx(rollout.total)
            assert rollout.success is None
        else:
            assert rollout.success == (rollout.total > 0)
            assert trajectory.extra_info
    again = play(policy, lambda: make(environment), 20, seed=9)
    for one, other in zip(rollouts, again, strict=True):
        np.testing.assert_array_equal(one.trajectory.states, other.trajectory.states)


def test_settings_are_found_by_name_then_by_kind() -> None:
    assert hyperparameters("Humanoid-v5", "vector") is TABLE["Humanoid"]
    assert hyperparameters("CartPole-v1", "vector") is TABLE["vector"]
    assert hyperparameters("BabyAI-GoToObj-v0", "grid") is TABLE["grid"]
    with pytest.raises(InputError, match=r"^states that are screens; expected vectors .* PPO reads no others$"):
        hyperparameters("own.py:make", "ui")
    for settings in TABLE.values():
        assert settings.source
        assert settings.rollout % settings.batch_size == 0


@pytest.mark.parametrize("name", ["steps", "evaluations", "episodes"])
def test_numbers_below_one_are_refused(name: str) -> None:
    options = {"steps": 100, "settings": FAST, name: 0}
    with pytest.raises(InputError, match=f"{name} 0; expected at least 1"):
        train(lamp, **options)  # type: ignore[arg-type]


def test_metadata_of_a_custom_environment_needs_no_id() -> None:
    assert lamp()[1].metadata == Metadata("vector", (), "", "vector")


def test_a_function_may_return_an_environment_alone() -> None:
    cart = lambda: gymnasium.make("CartPole-v1")  # noqa: E731
    training = train(cart, 128, settings=FAST, evaluations=1, episodes=1)
    rollouts = play(training.policy, cart, 2)
    assert demonstrations(rollouts, cart).metadata == Metadata("vector", view="vector")
    with pytest.raises(InputError, match=r"<lambda>\(\) gave a int; expected"):
        train(lambda: 3, 128, settings=FAST)
