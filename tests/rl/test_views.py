"""Views of programs: the same as MiniGrid's own wrapper shows."""

from __future__ import annotations

import pytest

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("minigrid")

import numpy as np  # noqa: E402

from grace_irl.errors import InputError  # noqa: E402
from grace_irl.rl.environments import make  # noqa: E402
from grace_irl.rl.views import VECTOR_FIELDS  # noqa: E402

LEVELS = (
    "BabyAI-GoToObj-v0",
    "BabyAI-OpenDoorLoc-v0",
    "BabyAI-UnlockPickup-v0",
    "BabyAI-PutNextS5N1-v0",
    "MiniGrid-Empty-5x5-v0",
    "MiniGrid-LavaGapS5-v0",
)


@pytest.mark.parametrize("level", LEVELS)
def test_states_equal_the_fully_observed_wrapper(level: str) -> None:
    from minigrid.wrappers import FullyObsWrapper

    theirs = FullyObsWrapper(gymnasium.make(level, disable_env_checker=True))
    ours, view = make(level)
    rng = np.random.default_rng(0)
    for seed in range(3):
        expected, _ = theirs.reset(seed=seed)
        observation, _ = ours.reset(seed=seed)
        for _ in range(40):
            state = view.state(ours, observation)
            assert state.dtype == expected["image"].dtype
            np.testing.assert_array_equal(state, expected["image"])
            assert view.instruction(ours) == expected["mission"]
            action = int(rng.integers(7))
            expected, reward, terminated, truncated, _ = theirs.step(action)
            observation, our_reward, our_terminated, our_truncated, _ = ours.step(action)
            assert (reward, terminated, truncated) == (our_reward, our_terminated, our_truncated)
            if terminated or truncated:
                break


def test_states_are_copies() -> None:
    environment, view = make("BabyAI-GoToObj-v0")
    observation, _ = environment.reset(seed=0)
    first = view.state(environment, observation)
    before = first.copy()
    for action in (0, 0, 2, 2):
        environment.step(action)
    np.testing.assert_array_equal(first, before)


@pytest.mark.parametrize("name", VECTOR_FIELDS)
def test_field_names_fit_the_simulator(name: str) -> None:
    """The named positions and velocities are those of MuJoCo's own joints."""
    pytest.importorskip("mujoco")
    environment, view = make(f"{name}-v5")
    observation, _ = environment.reset(seed=0)
    fields = view.metadata.fields
    assert view.metadata.label == "all"
    assert len(fields) == len(set(fields)) == len(view.state(environment, observation))
    for action in np.random.default_rng(0).uniform(-1, 1, (20, *environment.action_space.shape)):
        observation, *_ = environment.step(action)
    data, model = environment.unwrapped.data, environment.unwrapped.model
    joints = [model.joint(number).name for number in range(model.njnt)]
    state = dict(zip(fields, view.state(environment, observation), strict=True))
    assert state["z_torso"] == data.qpos[1]
    assert state["angle_torso"] == data.qpos[2]
    assert state["velocity_x"] == pytest.approx(np.clip(data.qvel[0], -10, 10))
    assert state["velocity_angle_torso"] == pytest.approx(np.clip(data.qvel[2], -10, 10))
    short = {"back_": "b", "front_": "f"}
    for number, joint in enumerate(joints[3:], 3):
        (field,) = [
            f
            for f in fields
            if f.startswith("angle_") and _mujoco_name(f.removeprefix("angle_"), short) == joint.removesuffix("_joint")
        ]
        assert state[field] == data.qpos[number]
        assert state[f"velocity_{field}"] == pytest.approx(np.clip(data.qvel[number], -10, 10))
    environment.close()


def _mujoco_name(name: str, short: dict[str, str]) -> str:
    for side, letter in short.items():
        if name.startswith(side):
            return letter + name.removeprefix(side)
    if name.startswith("right_"):
        return name.removeprefix("right_")
    if name.startswith("left_"):
        return name.removeprefix("left_") + "_left"
    return name


@pytest.mark.parametrize(
    ("environment_id", "message"),
    [
        ("BabyAI-GoToNowhere-v0", "no such environment"),
        ("Blackjack-v1", "expected a vector"),
        ("not an id", "no such environment"),
    ],
)
def test_environments_that_cannot_be_used(environment_id: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(environment_id)
