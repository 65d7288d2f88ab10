"""States of another kind, or images of another number of channels, than those that a reward was fitted to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grace_irl
from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.programs.export import export_source
from grace_irl.rewards.file import RewardFile

gymnasium = pytest.importorskip("gymnasium")

PROGRAM = """class Reward:
    def reward_fn(self, state):
        return float(state[0, 0, 0])
"""


class Pictures(gymnasium.Env):  # type: ignore[name-defined,misc]
    """An environment that shows pictures with one bright half."""

    def __init__(self, shape: tuple[int, ...], bright: int = 250) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.bright = bright

    def _seen(self) -> Any:
        seen = np.zeros(self.observation_space.shape, np.uint8)
        seen[: len(seen) // 2] = self.bright
        return seen

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        return self._seen(), 0.0, False, False, {}


def loaded(path: Path, states: str) -> RewardFile:
    path.write_text(export_source(PROGRAM, title="A corner.", facts=(("states", states),), scale=1.0))
    return grace_irl.load_reward(path, trust=True)


def test_stacked_frames_are_refused(tmp_path: Path) -> None:
    sb3 = pytest.importorskip("stable_baselines3.common.vec_env")
    reward = loaded(tmp_path / "reward.py", "image (40, 40, 1)")
    stacked = sb3.VecFrameStack(sb3.DummyVecEnv([lambda: Pictures((40, 40, 1))]), 4)
    said = r"observations with 4 channels; expected 1, as the reward reads them"
    with pytest.raises(InputError, match=said):
        reward.wrap_vec(stacked).reset()
    with pytest.raises(InputError, match=said):
        reward.wrap(Pictures((40, 40, 4))).reset()
    with pytest.raises(InputError, match=r"trajectories: 4 channels; expected 1"):
        reward.rewards([Trajectory(np.zeros((3, 40, 40, 4), np.uint8))])
    other_size = reward.wrap(Pictures((20, 30, 1)))
    other_size.reset()
    assert other_size.step(0)[1] == 250


@pytest.mark.parametrize(
    ("states", "shape", "bright", "said"),
    [
        ("grid (8, 8, 3)", (64, 64, 3), 250, "images; expected grids"),
        ("grid", (64, 64, 3), 250, "images; expected grids"),
        ("grid (8, 8, 3)", (64, 64, 3), 9, ""),  # a larger grid
        ("grid (64, 64, 3)", (64, 64, 3), 250, ""),  # the user chose the kind
        ("image (64, 64, 3)", (8, 8, 3), 0, ""),  # a dark picture
    ],
)
def test_pictures_are_no_grids(states: str, shape: tuple[int, ...], bright: int, said: str, tmp_path: Path) -> None:
    env = loaded(tmp_path / "reward.py", states).wrap(Pictures(shape, bright))
    if said:
        with pytest.raises(InputError, match=said):
            env.reset()
        return
    env.reset()
    assert env.step(0)[1] == bright


def test_grids_may_have_many_codes(tmp_path: Path) -> None:
    """The user may have chosen the kind of the demonstrations."""
    states = np.arange(2 * 8 * 8 * 3, dtype=np.uint8).reshape(2, 8, 8, 3) % 100
    for fact in ("grid", "grid (6, 6, 3)"):
        reward = loaded(tmp_path / "reward.py", fact)
        assert reward().reward_fn(states[1]) == states[1, 0, 0, 0]
        assert reward.rewards([Trajectory(states)])[0].tolist() == states[:, 0, 0, 0].tolist()


def test_a_dark_picture_in_memory_is_one(tmp_path: Path) -> None:
    dark = np.zeros((3, 96, 96, 3), np.uint8)
    reward = loaded(tmp_path / "reward.py", "image (64, 64, 3)")
    assert reward.rewards([Trajectory(dark)])[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("wrap", ["wrap", "wrap_vec"])
def test_hindsight_is_refused(wrap: str, tmp_path: Path) -> None:
    """The reward of the environment inside a wrapper is not the recovered one."""
    sb3 = pytest.importorskip("stable_baselines3.common.vec_env")
    reward = loaded(tmp_path / "reward.py", "image (40, 40, 1)")
    pictures = Pictures((40, 40, 1))
    pictures.compute_reward = lambda *_: -100.0  # type: ignore[attr-defined]
    if wrap == "wrap":
        venv = sb3.DummyVecEnv([lambda: reward.wrap(pictures)])
    else:
        venv = reward.wrap_vec(sb3.DummyVecEnv([lambda: pictures]))
    with pytest.raises(InputError, match="compute_reward of the recovered reward"):
        venv.env_method("compute_reward", np.zeros(2), np.zeros(2), {}, indices=[0])
    assert venv.env_method("reset", indices=[0])


def test_demonstrations_that_state_another_kind_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded(tmp_path / "reward.py", "image (64, 64, 3)")
    states = np.zeros((4, 8, 8, 3), np.uint8)
    items = (Demonstration(Trajectory(states), "expert"), Demonstration(Trajectory(states + 1), "negative"))
    save(Demonstrations(Metadata("grid"), items), tmp_path / "set.npz")
    assert main(["score", str(tmp_path / "reward.py"), "--demos", str(tmp_path / "set.npz")]) == 2
    assert "grids; expected images, as the reward reads them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("states", "first", "said"),
    [
        ("vector (3,)", np.zeros(27), "27 numbers; expected 3"),
        ("vector (3,)", np.zeros((8, 8, 3), np.uint8), "grids; expected vectors"),
        ("image (40, 40, 1)", np.zeros((40, 40, 4), np.uint8), "4 channels; expected 1"),
    ],
)
def test_an_object_of_one_episode_refuses_them(states: str, first: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"the reward: observations with {said}"):
        loaded(tmp_path / "reward.py", states)().reward_fn(first)


def test_an_object_of_one_episode_refuses_what_is_not_finite(tmp_path: Path) -> None:
    path = tmp_path / "reward.py"
    path.write_text("class Reward:\n    def reward_fn(self, state):\n        return float(state[0] < 1)\n")
    reward = grace_irl.load_reward(path, trust=True)()
    assert reward.reward_fn([0.0]) == 1
    for wrong in (np.nan, np.inf):
        with pytest.raises(InputError, match="an observation: NaN or infinity; expected finite numbers"):
            reward.reward_fn(np.array([wrong]))
