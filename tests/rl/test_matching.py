"""The environment that shows what demonstrations show: layouts of MuJoCo over the years, views, adapters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("mujoco")

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory  # noqa: E402
from grace_irl.errors import InputError  # noqa: E402
from grace_irl.rl.environments import make, quiet_models  # noqa: E402
from grace_irl.rl.matching import BODIES, environment_for, layout, told  # noqa: E402  # noqa: E402
from grace_irl.rl.views import VECTOR_FIELDS  # noqa: E402
from grace_irl.states.record import RecordStates  # noqa: E402
from tests.cli import corridor  # noqa: E402

WIDTHS = [(name, width) for name, body in BODIES.items() for width in body.options]
OLD = [("Ant-v4", 27), ("Humanoid-v4", 376), ("Reacher-v4", 11), ("InvertedDoublePendulum-v4", 11), ("Hopper-v4", 11)]


def data(environment: str, shape: tuple[int, ...] = (11,), **metadata: Any) -> Demonstrations:
    states = np.zeros((3, *shape), np.float32 if len(shape) == 1 else np.uint8)
    kind = "vector" if len(shape) == 1 else "grid"
    about = Metadata(kind, environment=environment, **metadata)  # type: ignore[arg-type]
    return Demonstrations(about, (Demonstration(Trajectory(states), "expert"),))


SCREENS = Demonstrations(Metadata("ui"), (Demonstration(Trajectory(np.array([b"<hierarchy/>"])), "expert"),))


@pytest.mark.parametrize(("name", "width"), WIDTHS)
def test_every_layout_has_the_width_that_tells_it(name: str, width: int) -> None:
    environment, view = environment_for(data(f"{name}-v4", (width,)))()
    observation, _ = environment.reset(seed=0)
    assert view.state(environment, observation).shape == (width,)
    assert environment.spec.id == f"{name}-v5"
    environment.close()


@pytest.mark.parametrize(("environment_id", "width"), OLD)
def test_what_is_said_of_older_versions_is_so(environment_id: str, width: int) -> None:
    """The widths of v4, and which of its numbers v5 gives for the same position and velocity."""
    try:
        with quiet_models(), pytest.warns(DeprecationWarning, match="out of date"):
            old = gymnasium.make(environment_id, disable_env_checker=True)
    except gymnasium.error.Error as error:
        pytest.skip(f"no {environment_id} here: {error}")
    assert old.observation_space.shape == (width,)
    name = environment_id.removesuffix("-v4")
    keep = {"Humanoid": 45, "Reacher": 10, "InvertedDoublePendulum": 9}.get(name, width)
    new, _ = environment_for(data(environment_id, (keep,)))()
    observation, _ = old.reset(seed=3)
    new.reset(seed=4)
    base = old.unwrapped
    new.unwrapped.set_state(base.data.qpos.copy(), base.data.qvel.copy())
    np.testing.assert_allclose(new.unwrapped._get_obs()[:8], observation[:8], atol=1e-9)
    if name in ("Ant", "Humanoid", "Hopper"):
        np.testing.assert_allclose(new.unwrapped._get_obs(), observation[:keep], atol=1e-9)


@pytest.mark.parametrize(
    ("environment", "width", "message"),
    [
        ("Ant-v4", 111, "keep the first 27 numbers"),
        ("Humanoid-v2", 376, "keep the first 45 numbers"),
        ("Reacher-v4", 11, "leave it out"),
        ("InvertedDoublePendulum-v2", 11, "leave them out"),
        ("Hopper-v4", 13, "states of 13 numbers of Hopper-v4; expected a width of 11, 12, as in Hopper-v5"),
    ],
)
def test_layouts_that_cannot_be_had_are_refused_with_advice(environment: str, width: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        layout(environment, width)


def test_older_data_of_real_files_meets_v5() -> None:
    from grace_irl.demos import load

    folder = Path(__file__).resolve().parents[3] / "shared" / "data" / "mujoco"
    if not folder.exists():
        pytest.skip("the real MuJoCo demonstrations are not here")
    for path in sorted(folder.glob("*.npz")):
        name = "Hopper" if "Hopper" in path.name else "HalfCheetah"
        found = load([], negatives=[path])  # the files state no role
        states = found.items[0].trajectory.states
        environment, view = environment_for(data(f"{name}-v2", states.shape[1:], fields=VECTOR_FIELDS[name]))()
        observation, _ = environment.reset(seed=0)
        assert view.state(environment, observation).shape == states.shape[1:]
        assert environment.spec.id == f"{name}-v5"


def test_older_data_in_a_newer_environment_is_said_so() -> None:
    assert told(data("Hopper-v5")) == ""
    assert told(data("Hopper-v4")) == "Hopper-v4: trained in Hopper-v5, whose states are the same numbers"
    assert "include_cfrc_ext_in_observation=False" in told(data("Ant-v4", (27,)))
    assert told(data("CartPole-v1", (4,))) == ""


@pytest.mark.parametrize(
    ("demonstrations", "name", "message"),
    [
        (data(""), "", "do not name their environment; expected --env"),
        (data("Hopper-v5"), "BabyAI-GoToObj-v0", "its states are grid, and the demonstrations have vector"),
        (
            data("CartPole-v1", (5,)),
            "",
            "states of 4 numbers beside the demonstrations with 5; expected one width, as in the",
        ),
        (data("Hopper-v5", view="pixels"), "", "its view is vector|view"),
        (data("Hopper-v5", fields=tuple("abcdefghijk")), "", "its fields are z_torso"),
        (Demonstrations(Metadata("vector", environment="Hopper-v5")), "", "no demonstrations"),
        (
            data("No-v0"),
            "",
            "^the environment that the demonstrations name: No-v0: no such .*, give --env FILE.py:FUNCTION",
        ),
        (data("Hopper-v5"), "No-v0", "^No-v0: no such environment"),
        (data("", view="scrambled"), "Hopper-v5", "are a scrambled copy, and no environment gives such states"),
        *(
            (SCREENS, name, "are screens, which no environment here gives, so no policy can be")
            for name in ("", "Hopper-v5")
        ),
    ],
)
def test_environments_that_do_not_fit_are_refused(demonstrations: Demonstrations, name: str, message: str) -> None:
    pytest.importorskip("minigrid")
    with pytest.raises(InputError, match=message):
        environment_for(demonstrations, name)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"at": np.zeros((3, 2))}, "no part 'at'"),
        ({"place": np.zeros(3)}, r"'camera' \(uint8 of shape \(12, 28, 3\)\) beside the demonstrations with no part"),
        ({"place": np.zeros(3), "camera": np.zeros((3, 12, 20, 3), np.uint8)}, r"\(12, 28, 3\).*with .*\(12, 20, 3\)"),
        (
            {"place": np.zeros(3), "camera": np.zeros((3, 12, 28, 3), np.uint8)},
            r"'place' \(int64\).*'place' \(float64\)",
        ),
    ],
)
def test_records_of_other_parts_are_refused(parts: dict[str, np.ndarray[Any, Any]], message: str) -> None:
    found = Demonstrations(Metadata("record"), (Demonstration(Trajectory(RecordStates(parts)), "expert"),))
    with pytest.raises(InputError, match=message):
        environment_for(found, f"{corridor.__file__}:records")


def test_images_of_other_channels_are_refused_and_grids_are_told_from_them() -> None:
    for kind, channels, message in (
        ("image", 1, "images of 3 channels, but of 1 in the demonstrations"),
        ("grid", 3, ""),
    ):
        states = np.zeros((3, 12, 28, channels), np.uint8)
        found = Demonstrations(Metadata(kind), (Demonstration(Trajectory(states, kind=kind), "expert"),))  # type: ignore[arg-type]
        if message:
            with pytest.raises(InputError, match=message):
                environment_for(found, f"{corridor.__file__}:images")
        else:
            assert environment_for(found, f"{corridor.__file__}:images")()[1].metadata.kind == kind


def test_grids_and_adapters_are_found() -> None:
    pytest.importorskip("minigrid")
    environment, view = environment_for(data("BabyAI-GoToObj-v0", (8, 8, 3), view="minigrid-full"), max_steps=7)()
    environment.reset(seed=0)
    assert [environment.step(6)[3] for _ in range(7)][-1]
    assert view.metadata.view == "minigrid-full"
    example = Path(__file__).resolve().parents[2] / "examples" / "custom_environment.py"
    environment, view = environment_for(data("Corridor-v0", (2,)), f"{example}:corridor")()
    assert view.metadata.view == "corridor"


def test_options_reach_the_environment() -> None:
    environment, view = make("Ant-v5", options={"include_cfrc_ext_in_observation": False})
    assert view.state(environment, environment.reset(seed=0)[0]).shape == (27,)
