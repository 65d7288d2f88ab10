"""`grace_irl.load_reward`."""

from __future__ import annotations

import copy
import pickle
import random
from pathlib import Path

import numpy as np
import pytest

import grace_irl
from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.programs.export import export_source
from tests.fakes.data import vector_set
from tests.fakes.keeping import KEEPING

PROGRAM = """from dataclasses import dataclass


@dataclass
class Reward:
    extra_info: str | None = None
    seen: int = 0

    def reward_fn(self, state):
        self.seen += 1
        return float(state[0]) + self.seen
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "reward.py"
    path.write_text(export_source(PROGRAM, title="Counts.", facts=(), scale=3.0, offset=-1.0))
    return path


def test_a_trusted_file_gives_one_object_per_trajectory(file: Path) -> None:
    reward = grace_irl.load_reward(file, trust=True)
    first, second = reward("go"), reward()
    assert [first.reward_fn([1.0]), first.reward_fn([1.0]), second.reward_fn([1.0])] == [2.0, 3.0, 2.0]
    assert first.extra_info == "go"
    assert reward.discriminator_logit(2.0) == 5.0
    assert reward.discriminator_logit(np.array([0.0, 1.0]), log_pi=1.0).tolist() == [-2.0, 1.0]


def test_a_file_can_be_pickled_after_a_call(file: Path) -> None:
    reward = grace_irl.load_reward(file, trust=True)
    reward()
    again = pickle.loads(pickle.dumps(reward))
    assert again("go").reward_fn([1.0]) == 2.0
    assert vars(again).keys() == vars(reward).keys()


def test_a_file_that_is_not_trusted_runs_only_in_the_sandbox(file: Path) -> None:
    reward = grace_irl.load_reward(file)
    with pytest.raises(grace_irl.InputError, match="not trusted"):
        reward("go")
    trajectories = [item.trajectory for item in vector_set(2, 1, 5)]
    for trajectory, values in zip(trajectories, reward.rewards(trajectories), strict=True):
        assert values == pytest.approx(trajectory.states[:, 0] + np.arange(1, 6))


def test_a_program_gets_the_same_types_online_as_in_the_sandbox(tmp_path: Path) -> None:
    path = tmp_path / "types.py"
    path.write_text(
        "class Reward:\n"
        "    def reward_fn(self, state, action, next_state):\n"
        "        return f'{state.dtype} {action.dtype} {next_state.dtype}'\n"
        "    def debug_fn(self, state):\n"
        "        return str(state.dtype)\n"
    )
    reward = copy.copy(grace_irl.load_reward(path, trust=True)())
    vector, grid = np.zeros(2, np.float32), np.zeros((2, 2, 3), np.uint8)
    assert reward.reward_fn(vector, np.int64(1), vector) == "float64 float64 float64"
    assert reward.reward_fn(grid, np.zeros(3, np.float32), grid) == "int64 float64 int64"
    assert (reward.debug_fn(vector), reward.debug_fn(grid)) == ("float64", "int64")


@pytest.mark.parametrize(
    ("text", "said"), [("x = 1\n", "no class Reward"), ("1 / 0\n", "ZeroDivisionError"), ("class (", "SyntaxError")]
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text)
    with pytest.raises(grace_irl.GraceError, match=said):
        grace_irl.load_reward(path, trust=True)()
    with pytest.raises(grace_irl.InputError, match=r"absent\.py"):
        grace_irl.load_reward(tmp_path / "absent.py")


def walks() -> list[Trajectory]:
    """Episodes of several lengths and instructions."""
    lengths, words = (5, 3, 1, 6), ("go", "", "go", "stay")
    rng = np.random.default_rng(3)
    return [Trajectory(rng.normal(size=(n, 2)), extra_info=word) for n, word in zip(lengths, words, strict=True)]


@pytest.mark.parametrize("name", KEEPING)
def test_a_trusted_file_pays_what_the_sandbox_pays(tmp_path: Path, name: str) -> None:
    path = tmp_path / "reward.py"
    path.write_text(KEEPING[name])
    trusted, trajectories = grace_irl.load_reward(path, trust=True), walks()
    offline = [values.tolist() for values in trusted.rewards(trajectories, workers=1)]
    in_turn = []
    for trajectory in trajectories:
        reward = trusted(trajectory.extra_info)
        in_turn.append([float(reward.reward_fn(state)) for state in trajectory.states])
    assert in_turn == offline
    objects = [trusted(trajectory.extra_info) for trajectory in trajectories]
    side_by_side: list[list[float]] = [[] for _ in objects]
    for step in range(max(len(trajectory.states) for trajectory in trajectories)):
        random.random(), np.random.rand()  # what the process draws for itself
        for reward, trajectory, paid in zip(objects, trajectories, side_by_side, strict=True):
            if step < len(trajectory.states):
                paid.append(float(reward.reward_fn(trajectory.states[step])))
                if hasattr(reward._reward, "debug_fn"):
                    reward.debug_fn(trajectory.states[step])
                    reward.terms_fn(trajectory.states[step])
    assert side_by_side == offline


def test_a_trusted_file_leaves_the_process_its_own_numbers(tmp_path: Path) -> None:
    path = tmp_path / "reward.py"
    path.write_text(KEEPING["random and a global"])
    trusted = grace_irl.load_reward(path, trust=True)
    found = []
    for use in (lambda: None, lambda: trusted("go").reward_fn(np.zeros(2))):
        random.seed(7)
        np.random.seed(7)
        use()
        found.append((random.random(), np.random.rand()))
    assert found[0] == found[1]


def test_no_instruction_is_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "reward.py"
    path.write_text("class Reward:\n    def __init__(self, extra_info):\n        self.n = len(extra_info)\n"
                    "    def reward_fn(self, state):\n        return self.n\n")  # fmt: skip
    assert grace_irl.load_reward(path, trust=True)().reward_fn([0.0]) == 0


def test_annotations_mean_what_the_file_says(tmp_path: Path) -> None:
    """A `from __future__` of the loader is none of the program's."""
    path = tmp_path / "reward.py"
    path.write_text("class Reward:\n    def reward_fn(self, state: 3.5):\n"
                    "        return self.reward_fn.__annotations__['state']\n")  # fmt: skip
    reward = grace_irl.load_reward(path, trust=True)
    assert reward().reward_fn([0.0]) == 3.5
    assert reward.rewards([Trajectory(np.zeros((1, 1)))])[0].tolist() == [3.5]


@pytest.mark.parametrize("dict_of", [False, True])
def test_an_environment_with_vectors_of_another_length_is_refused(tmp_path: Path, dict_of: bool) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    spaces = gymnasium.spaces

    class Shows(gymnasium.Env):  # type: ignore[name-defined,misc]
        def __init__(self, length: int) -> None:
            box = spaces.Box(-1, 1, (length,), np.float64)
            self.observation_space = spaces.Dict({"state": box}) if dict_of else box
            self.action_space = spaces.Discrete(2)

        def reset(self, **_: object) -> object:
            return self.observation_space.sample(), {}

    path = tmp_path / "reward.py"
    named = (("states", "vector (3,)"), ("fields", "x0 height, x1 speed, x2 angle"))
    path.write_text(export_source(PROGRAM, title="Counts.", facts=named, scale=3.0, offset=-1.0))
    reward = grace_irl.load_reward(path, trust=True)
    assert reward.fields == ("height", "speed", "angle")
    reward.wrap(Shows(3)).reset()
    said = (
        r"reward.py: observations of 4 numbers; expected the 3 numbers that the reward reads \(height, speed, angle\)"
    )
    with pytest.raises(InputError, match=said):
        reward.wrap(Shows(4))
    with pytest.raises(InputError, match=said):
        reward.wrap_vec(gymnasium.vector.SyncVectorEnv([lambda: Shows(4)] * 2))
    parts = Shows(3)
    parts.observation_space = spaces.Dict({name: spaces.Box(-1, 1, ()) for name in reward.fields})
    with pytest.raises(InputError, match="observations of parts 'angle', 'height', 'speed'; expected the 3 numbers"):
        reward.wrap(parts)
    pixels = Shows(3)
    pixels.observation_space = spaces.Box(0, 255, (8, 8, 3), np.uint8)
    with pytest.raises(InputError, match=r"observations of shape \(8, 8, 3\); expected the 3 numbers"):
        reward.wrap(pixels)
    sb3 = pytest.importorskip("stable_baselines3.common.vec_env")
    with pytest.raises(InputError, match=said):
        reward.wrap_vec(sb3.DummyVecEnv([lambda: Shows(4)]))


@pytest.mark.parametrize("reads", ["state, action, next_state", "state"])
def test_a_reward_from_a_table_takes_actions_as_the_table_has_them(reads: str, tmp_path: Path) -> None:
    """A column has single numbers, and the environment vectors of one. The first row of an episode is its start."""
    gymnasium = pytest.importorskip("gymnasium")

    class Slope(gymnasium.Env):  # type: ignore[name-defined,misc]
        observation_space, action_space = gymnasium.spaces.Box(-9, 9, (2,)), gymnasium.spaces.Box(-1, 1, (1,))

        def reset(self, **_: object) -> tuple[object, dict[str, object]]:
            return np.zeros(2, np.float32), {}

        def step(self, action: object) -> tuple[object, float, bool, bool, dict[str, object]]:
            return np.zeros(2, np.float32), 0.0, False, False, {}

    rows = "".join(
        f"{number},{step},0.{number},{(-1) ** step * (number % 2)},{'negative' if number % 2 else 'expert'}\n"
        for number in range(4)
        for step in range(5)
    )
    (tmp_path / "demos.csv").write_text(f"episode,x,y,action,role\n{rows}")
    paid = "1.0 - action ** 2" if "action" in reads else "float(state[1])"
    (tmp_path / "mine.py").write_text(f"class Reward:\n    def reward_fn(self, {reads}):\n        return {paid}\n")
    run = grace_irl.fit(
        tmp_path / "demos.csv", out=tmp_path / "run", start_from=[tmp_path / "mine.py"], max_calls=1, label="all"
    )
    found = grace_irl.load_reward(run.reward_path)
    assert found.reads.actions == (() if "action" in reads else None)
    environment = found.wrap(Slope(), scale="raw")
    environment.reset(seed=0)
    if "action" in reads:
        online = grace_irl.load_reward(run.reward_path, trust=True)()
        assert online.reward_fn(np.zeros(2), np.array([0.5]), np.zeros(2)) == 0.75
    assert environment.step(np.array([0.5], np.float32))[1] == (0.75 if "action" in reads else 0.0)
