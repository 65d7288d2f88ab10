"""Checkpoints act as the models they were saved from, and their pickles stay closed."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

sb3 = pytest.importorskip("stable_baselines3")
torch = pytest.importorskip("torch")

import gymnasium  # noqa: E402

from grace_irl.errors import InputError  # noqa: E402
from grace_irl.rl.checkpoint import CheckpointPolicy  # noqa: E402
from grace_irl.rl.collect import collect  # noqa: E402

ALGORITHMS = {
    "PPO": ("CartPole-v1", {"n_steps": 64, "policy_kwargs": {"net_arch": [8], "activation_fn": torch.nn.ReLU}}),
    "DQN": ("CartPole-v1", {"buffer_size": 10}),
    "SAC": ("Pendulum-v1", {"buffer_size": 10, "policy_kwargs": {"net_arch": [16, 16]}}),
    "TD3": ("Pendulum-v1", {"buffer_size": 10}),
}


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_it_acts_as_the_model_does(name: str, tmp_path: Path) -> None:
    environment_id, options = ALGORITHMS[name]
    model = getattr(sb3, name)("MlpPolicy", environment_id, seed=0, device="cpu", **options)
    model.save(tmp_path / "model.zip")
    (found,) = collect(environment_id, str(tmp_path / "model.zip"), 1, "expert", max_steps=15)
    trajectory = found.trajectory
    policy = CheckpointPolicy(tmp_path / "model.zip")
    policy.reset(model.env.envs[0], 0)
    policy.act(trajectory.states[0])
    states = trajectory.states[:-1]
    ours, _ = policy._policy.predict(states, deterministic=True)
    theirs, _ = model.predict(states, deterministic=True)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert trajectory.actions[0].shape == model.action_space.shape
    if name == "PPO":
        with torch.no_grad():
            _, expected, _ = model.policy.evaluate_actions(
                torch.as_tensor(states), torch.as_tensor(np.asarray(trajectory.actions))
            )
        np.testing.assert_allclose(trajectory.log_probs, expected, rtol=1e-4)
    else:
        assert trajectory.log_probs is None


def test_pickles_in_a_checkpoint_stay_closed(tmp_path: Path) -> None:
    """The same weights with a poisoned setting: opening it would leave a file behind."""
    import cloudpickle  # type: ignore[import-untyped]

    model = sb3.PPO("MlpPolicy", "CartPole-v1", n_steps=64, device="cpu")
    model.save(tmp_path / "model.zip")
    trace = tmp_path / "trace"

    class Poison:
        def __reduce__(self) -> tuple[object, tuple[str, str]]:
            return open, (str(trace), "w")

    import base64

    serialised = base64.b64encode(cloudpickle.dumps(Poison())).decode()
    with zipfile.ZipFile(tmp_path / "model.zip") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    about = json.loads(members["data"])
    about["lr_schedule"] = {":type:": "function", ":serialized:": serialised}
    members["data"] = json.dumps(about).encode()
    with zipfile.ZipFile(tmp_path / "poisoned.zip", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert len(collect("CartPole-v1", str(tmp_path / "poisoned.zip"), 1, "expert", max_steps=3)) == 1
    assert not trace.exists()
    cloudpickle.loads(base64.b64decode(serialised)).close()
    assert trace.exists()


def saved(about: dict[str, object]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("data", json.dumps(about))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no zip", "not a Stable-Baselines3 checkpoint"),
        (saved({}), "unknown module"),
        (saved({"policy_class": {"__module__": "my.policies"}}), "a policy from my.policies"),
        (
            saved(
                {
                    "policy_class": {"__module__": "stable_baselines3.common.policies"},
                    "policy_kwargs": {"features_extractor_class": "<class 'my.CNN'>"},
                }
            ),
            "features_extractor_class",
        ),
        (
            saved(
                {
                    "policy_class": {"__module__": "stable_baselines3.common.policies"},
                    "policy_kwargs": {"activation_fn": "<class 'my.Activation'>"},
                }
            ),
            "my.Activation",
        ),
    ],
)
def test_checkpoints_that_cannot_be_used(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "model.zip").write_bytes(content)
    with pytest.raises(InputError, match=message):
        CheckpointPolicy(tmp_path / "model.zip")


def test_another_environments_checkpoint(tmp_path: Path) -> None:
    sb3.PPO("MlpPolicy", "CartPole-v1", n_steps=64, device="cpu").save(tmp_path / "model.zip")
    with pytest.raises(InputError, match=r"do not fit states of shape \(3,\)"):
        collect("Pendulum-v1", str(tmp_path / "model.zip"), 1, "expert")


class Signs(gymnasium.Env):  # type: ignore[type-arg]
    """A choice, two numbers and a picture; ten steps."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Dict(
        {
            "at": gymnasium.spaces.Box(-1, 1, (2,), np.float64),
            "seen": gymnasium.spaces.Box(0, 255, (40, 44, 3), np.uint8),
            "sign": gymnasium.spaces.Discrete(3),
        }
    )

    def reset(self, *, seed=None, options=None):  # type: ignore[no-untyped-def]
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self._left = 10
        return self.observation_space.sample(), {}

    def step(self, action):  # type: ignore[no-untyped-def]
        self._left -= 1
        return self.observation_space.sample(), 0.0, False, self._left == 0, {}


class Picture(Signs):
    """The picture alone."""

    observation_space = Signs.observation_space["seen"]  # type: ignore[assignment]


def signs() -> Signs:
    return Signs()


def picture() -> Picture:
    return Picture()


@pytest.mark.parametrize(
    ("name", "policy", "make"),
    [
        ("PPO", "MultiInputPolicy", signs),
        ("DQN", "MultiInputPolicy", signs),
        ("PPO", "CnnPolicy", picture),
        ("PPO", "MlpPolicy", picture),
        ("DQN", "CnnPolicy", picture),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_policies_of_records_and_pictures_act_as_the_model_does(
    name: str, policy: str, make: Callable[[], Signs], tmp_path: Path
) -> None:
    options = {"buffer_size": 10} if name == "DQN" else {"n_steps": 8}
    model = getattr(sb3, name)(policy, make(), seed=0, device="cpu", **options)
    model.save(tmp_path / "model.zip")
    (found,) = collect(f"{__file__}:{make.__name__}", str(tmp_path / "model.zip"), 1, "negative")
    acting = CheckpointPolicy(tmp_path / "model.zip")
    environment = make()
    observation, _ = environment.reset(seed=3)
    acting.reset(environment, 0)
    acting.act(observation)
    with torch.no_grad():
        ours = acting._policy.obs_to_tensor(acting._seen(observation))[0]
        theirs = model.policy.obs_to_tensor(observation)[0]
        if name == "PPO":
            expected = model.policy.get_distribution(theirs).distribution.logits
            torch.testing.assert_close(acting._policy.get_distribution(ours).distribution.logits, expected)
        else:
            torch.testing.assert_close(acting._policy.q_net(ours), model.policy.q_net(theirs))
    assert found.trajectory.num_steps == 10


def test_a_policy_of_other_parts_is_one_line(tmp_path: Path) -> None:
    sb3.PPO("MlpPolicy", "CartPole-v1", n_steps=64, device="cpu").save(tmp_path / "model.zip")
    with pytest.raises(InputError, match=r"do not fit states of Dict\('at'.*expected a policy trained on this"):
        collect(f"{__file__}:signs", str(tmp_path / "model.zip"), 1, "negative")
