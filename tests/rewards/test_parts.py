"""Rewards of records: the parts that a file names, with their shapes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grace_irl
from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.programs.export import export_source, reads_of
from grace_irl.programs.parts import Reads, written
from grace_irl.rewards.file import RewardFile
from grace_irl.states.record import RECORD, RecordStates

gymnasium = pytest.importorskip("gymnasium")
Box, Dict, Discrete = gymnasium.spaces.Box, gymnasium.spaces.Dict, gymnasium.spaces.Discrete

PROGRAM = """class Reward:
    def __init__(self, extra_info=None):
        pass

    def reward_fn(self, state):
        return float(state["state"].sum() + state["inner/phase"])
"""
PARTS = {"state": (2,), "goal": (3,), "inner/phase": ()}


class Arm(gymnasium.Env):  # type: ignore[name-defined,misc]
    """Parts of which one is called "state"."""

    def __init__(self, left_out: str = "") -> None:
        box = {name: Box(-9, 9, shape, np.float64) for name, shape in PARTS.items() if shape and name != left_out}
        self.observation_space = Dict({**box, "inner": Dict({"phase": Discrete(9)}), "more": Box(0, 1, (5,))})
        self.action_space = Discrete(2)

    def _seen(self) -> dict[str, Any]:
        return {name: np.full(box.shape, 2.0) for name, box in self.observation_space.items() if name != "inner"} | {
            "inner": {"phase": self.steps}
        }

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.steps = 0
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self._seen(), 0.0, self.steps == 3, False, {}


def loaded(path: Path, trust: bool = True, shapes: dict[str, tuple[int, ...]] = PARTS) -> RewardFile:
    line = written(RECORD.layout(RecordStates({name: np.zeros((1, *shape)) for name, shape in shapes.items()})))
    path.write_text(export_source(PROGRAM, title="Sums.", facts=(("parts", line),), scale=1.0))
    return grace_irl.load_reward(path, trust=trust)


def stacked() -> Any:
    return gymnasium.wrappers.TransformObservation(
        Arm(), lambda seen: seen, Dict({**Arm().observation_space, "goal": Box(-9, 9, (4, 3))})
    )


def test_a_file_holds_names_and_shapes_of_parts(tmp_path: Path) -> None:
    names = ('say "hi"', "it's", "é, {x}")
    shapes = dict(zip(names, ((), (2, 3), (1,)), strict=True))
    assert loaded(tmp_path / "reward.py", shapes=shapes).parts == shapes
    assert "parts: {'goal': (3,), 'inner/phase': (), 'state': (2,)}" in loaded(tmp_path / "reward.py").source
    states = RecordStates({"said": np.array([b"hallo"]), "at": np.zeros((1, 2))})
    text = export_source(PROGRAM, title="T.", facts=(("parts", written(RECORD.layout(states))),))
    assert reads_of(text).parts == {"at": (2,), "said": None}
    assert reads_of(PROGRAM) == Reads()
    with pytest.raises(InputError, match="cannot be read; expected names with shapes"):
        reads_of(text.replace("(2,)", "(2,"))


@pytest.mark.parametrize("trust", [True, False])
def test_a_part_called_state_is_no_state(tmp_path: Path, trust: bool) -> None:
    env = loaded(tmp_path / "reward.py", trust).wrap(Arm())
    env.reset()
    assert [env.step(0)[1] for _ in range(2)] == [5, 6]
    env.close()
    venv = loaded(tmp_path / "reward.py", trust).wrap_vec(gymnasium.vector.SyncVectorEnv([Arm] * 2))
    venv.reset()
    assert venv.step(np.zeros(2, int))[1].tolist() == [5, 5]
    venv.close()


def test_a_part_called_state_is_no_state_in_stable_baselines(tmp_path: Path) -> None:
    sb3 = pytest.importorskip("stable_baselines3.common.vec_env")
    flat = gymnasium.wrappers.TransformObservation(
        Arm(),
        lambda seen: {"state": seen["state"], "goal": seen["goal"], "inner/phase": seen["inner"]["phase"]},
        Dict({"state": Box(-9, 9, (2,)), "goal": Box(-9, 9, (3,)), "inner/phase": Discrete(9)}),
    )
    shapes = {"state": (2,), "goal": (3,)}
    reward = loaded(tmp_path / "reward.py", shapes=shapes)
    venv = reward.wrap_vec(sb3.DummyVecEnv([lambda: flat]))
    venv.reset()
    assert [float(venv.step(np.zeros(1, int))[1][0]) for _ in range(3)] == [5, 6, 7]
    boxes = gymnasium.wrappers.FilterObservation(flat, ["state", "goal"])
    with pytest.raises(InputError, match=r"observations with part 'goal' \(shape \(9,\)\); expected shape \(3,\)"):
        reward.wrap_vec(sb3.VecFrameStack(sb3.DummyVecEnv([lambda: boxes]), 3))


def test_a_dict_may_still_hold_the_record_under_state(tmp_path: Path) -> None:
    outer = gymnasium.wrappers.TransformObservation(
        Arm(), lambda seen: {"state": seen, "other": 1}, Dict({"state": Arm().observation_space, "other": Discrete(2)})
    )
    env = loaded(tmp_path / "reward.py").wrap(outer)
    env.reset()
    assert env.step(0)[1] == 5


def test_other_shapes_and_missing_parts_are_refused(tmp_path: Path) -> None:
    reward = loaded(tmp_path / "reward.py")
    said = r"reward.py: observations with part 'goal' \(shape \(4, 3\)\); expected shape \(3,\), as the reward reads it"
    with pytest.raises(InputError, match=said):
        reward.wrap(stacked())
    with pytest.raises(InputError, match=said):
        reward.wrap_vec(gymnasium.vector.SyncVectorEnv([stacked]))
    with pytest.raises(InputError, match=r"observations with no part 'goal'; expected it \(shape \(3,\)\)"):
        reward.wrap(Arm("goal"))
    arrays = {name: np.ones((3, *shape)) for name, shape in PARTS.items()}
    assert reward.rewards([Trajectory(RecordStates(arrays))])[0].tolist() == [3, 3, 3]
    with pytest.raises(InputError, match=r"trajectories: part 'goal' \(shape \(4, 3\)\); expected shape \(3,\)"):
        reward.rewards([Trajectory(RecordStates(arrays | {"goal": np.ones((3, 4, 3))}))])
    del arrays["goal"]
    with pytest.raises(InputError, match="trajectories: no part 'goal'; expected it"):
        reward.rewards([Trajectory(RecordStates(arrays))])
    with pytest.raises(InputError, match="trajectories: no part"):
        reward.rewards([Trajectory(np.ones((3, 2)))])


@pytest.mark.parametrize("trust", [True, False])
def test_the_function_for_imitation_refuses_other_parts(tmp_path: Path, trust: bool) -> None:
    act, over = np.zeros(1), np.zeros(1, bool)
    seen = {"state": np.ones((1, 2)), "goal": np.ones((1, 3)), "inner": {"phase": np.ones(1)}}
    reward = loaded(tmp_path / "reward.py", trust).imitation_reward()
    for each, said in (
        (seen | {"goal": np.ones((1, 4, 3))}, r"reward.py: observations with part 'goal' \(shape \(4, 3\)\); expected"),
        (
            {**seen, "goal": np.ones((1, 5))},
            r"part 'goal' \(shape \(5,\)\); expected shape \(3,\), as",
        ),
        (np.ones((1, 5)), "no part 'state'|no part 'goal'"),
    ):
        with pytest.raises(InputError, match=said):
            reward(each, act, each, over)
    assert reward(seen, act, seen, over).tolist() == [3]
    reward.close()


@pytest.mark.parametrize("trust", [True, False])
def test_states_of_another_kind_are_refused(tmp_path: Path, trust: bool) -> None:
    path = tmp_path / "reward.py"
    source = (
        "class Reward:\n    def __init__(self, extra_info=None): pass\n    def reward_fn(self, state): return 1.0\n"
    )
    path.write_text(export_source(source, title="One.", facts=(("states", "grid"),)))
    reward = grace_irl.load_reward(path, trust=trust)
    said = "reward.py: observations with vectors; expected grids, as the reward reads them"
    with pytest.raises(InputError, match=said):
        reward.wrap(gymnasium.make("CartPole-v1")).reset()
    with pytest.raises(InputError, match=said):
        reward.wrap_vec(gymnasium.make_vec("CartPole-v1", 1)).reset()
    with pytest.raises(InputError, match="trajectories: vectors; expected grids, as the reward reads them: choose"):
        reward.rewards([Trajectory(np.ones((3, 2)))])
    pixels = np.arange(192, dtype=np.uint8).reshape(1, 8, 8, 3)
    assert Trajectory(pixels).kind == "image"  # which fits a reward of grids, as far as its form tells
    assert reward.rewards([Trajectory(pixels)])[0].tolist() == [1]
    path.write_text(path.read_text().replace("grid", "vector (2,)"))
    assert grace_irl.load_reward(path).rewards([Trajectory(np.ones((3, 2)))])[0].tolist() == [1, 1, 1]
    with pytest.raises(InputError, match="trajectories: 3 numbers; expected 2, as the reward reads them"):
        grace_irl.load_reward(path).rewards([Trajectory(np.ones((3, 3)))])
    with pytest.raises(InputError, match="observations with 4 numbers; expected 2, as the reward reads them"):
        grace_irl.load_reward(path, trust=trust).wrap(gymnasium.make("CartPole-v1")).reset()
    with pytest.raises(InputError, match="trajectories: images; expected vectors, as the reward reads them"):
        grace_irl.load_reward(path).rewards([Trajectory(pixels)])


@pytest.mark.parametrize("goal", [np.array([0, np.nan, 0]), [0.0, math.nan, 0.0], (0, 0, -math.inf)])
@pytest.mark.parametrize("trust", [True, False])
def test_observations_with_nan_are_refused(tmp_path: Path, trust: bool, goal: Any) -> None:
    def spoilt(seen: dict[str, Any]) -> dict[str, Any]:
        return seen if seen["inner"]["phase"] < 2 else seen | {"goal": goal}

    broken = gymnasium.wrappers.TransformObservation(Arm(), spoilt, Arm().observation_space)
    reward = loaded(tmp_path / "reward.py", trust)
    for env in (reward.wrap(broken), reward.wrap_vec(gymnasium.vector.SyncVectorEnv([lambda: broken]))):
        env.reset()
        action = 0 if env.action_space.shape == () else np.zeros(1, int)
        env.step(action)
        with pytest.raises(InputError, match="part 'goal' of an observation: NaN or infinity; expected finite numbers"):
            env.step(action)
        env.close()
