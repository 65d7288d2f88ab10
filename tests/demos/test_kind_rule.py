"""Grid or image: who decides, in which order, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grace_irl.cli import main
from grace_irl.demos import iter_trajectories, load, save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.states import kind_of, kind_of_state
from grace_irl.states.grid import LIKELY_CODES, MOST_CODES

FORMATS = ("npz", "parquet", "minari")


def states(values: int, seed: int = 0, channels: int = 3, steps: int = 5) -> np.ndarray[Any, Any]:
    """Bytes with up to so many different values in each channel, all of them in the first state."""
    found = np.random.default_rng(seed).integers(0, values, (steps + 1, 20, 20, channels), dtype=np.uint8)
    found[0].reshape(-1, channels)[:values] = np.arange(values)[:, None]
    return found


def foreign(path: Path, *trajectories: np.ndarray[Any, Any]) -> str:
    """A file that somebody else wrote, which does not say what its states are."""
    if path.suffix == ".npz":
        lengths = [len(each) for each in trajectories]
        np.savez(path, observations=np.concatenate(trajectories), episode_lengths=lengths)
    elif path.suffix == ".parquet":
        rows = np.concatenate(trajectories)
        pq.write_table(
            pa.table(
                {
                    "episode": np.repeat(np.arange(len(trajectories)), [len(each) for each in trajectories]),
                    "state": list(rows.reshape(len(rows), -1)),
                    "height": np.full(len(rows), rows.shape[1]),
                    "width": np.full(len(rows), rows.shape[2]),
                }
            ),
            path,
        )
    else:
        minari_set(path, trajectories)
    return str(path)


def minari_set(path: Path, trajectories: Any, jpeg: bool = False, **parts: Any) -> None:
    minari = pytest.importorskip("minari")
    from gymnasium.spaces import Box, Dict, Discrete
    from minari.data_collector.episode_buffer import EpisodeBuffer

    space = Box(0, 255, trajectories[0].shape[1:], np.uint8)
    buffers = [
        EpisodeBuffer(
            observations={"image": each, **{name: part[1](len(each)) for name, part in parts.items()}}
            if parts
            else each,
            actions=np.zeros(len(each) - 1, np.int64),
            rewards=[0.0] * (len(each) - 1),
            terminations=[False] * (len(each) - 1),
            truncations=[False] * (len(each) - 1),
        )
        for each in trajectories
    ]
    minari.create_dataset_from_buffers(
        path.name,
        buffers,
        observation_space=Dict({"image": space, **{name: part[0] for name, part in parts.items()}}) if parts else space,
        action_space=Discrete(2),
        jpeg_encoding=jpeg,
    )


@pytest.fixture(autouse=True)
def _minari_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


def place(tmp_path: Path, name: str, format: str) -> Path:
    return tmp_path / (f"{name}-v0" if format == "minari" else f"{name}.{format}")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("values", "kind"), [(2, "grid"), (LIKELY_CODES, "grid"), (17, "image"), (256, "image")])
def test_values_decide_where_nobody_says(format: str, values: int, kind: str, tmp_path: Path) -> None:
    expert = foreign(place(tmp_path, "expert", format), states(values, 1), states(2, 2))
    found = load([expert])
    assert found.metadata.kind == kind
    assert {item.trajectory.kind for item in found} == {kind}
    assert found.choice is not None
    assert found.choice.line.startswith(f"states are {kind}s: ")
    assert str(values) in found.choice.reason
    assert {item.trajectory.kind for item in iter_trajectories(expert)} == {kind}
    np.testing.assert_array_equal(found[0].trajectory.states, states(values, 1))


def test_large_flat_drawings_are_images(tmp_path: Path) -> None:
    def flat(side: int, *colours: int) -> np.ndarray[Any, Any]:
        return np.random.default_rng(0).choice(np.array(colours, np.uint8), (3, side, side, 3))

    for number, (made, kind) in enumerate(
        [(flat(40, 0, 100, 255), "image"), (flat(40, 0, 5, 9), "grid"), (flat(20, 0, 100, 255), "grid")]
    ):
        found = load([foreign(tmp_path / f"expert-{number}.npz", made)])
        assert found.metadata.kind == kind
    assert load([tmp_path / "expert-0.npz"], kind="grid").metadata.kind == "grid"
    choice = load([tmp_path / "expert-0.npz"]).choice
    assert choice is not None
    assert "the value 255 in states of 40 or more rows and columns" in choice.line


def test_what_minigrid_draws_is_an_image_and_its_codes_are_a_grid(tmp_path: Path) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    wrappers = pytest.importorskip("minigrid.wrappers")
    for name in ("MiniGrid-Empty-8x8-v0", "BabyAI-GoToObj-v0"):
        for number, (wrapper, kind) in enumerate(
            [
                (wrappers.RGBImgObsWrapper, "image"),
                (wrappers.RGBImgPartialObsWrapper, "image"),
                (wrappers.FullyObsWrapper, "grid"),
                (lambda environment: environment, "grid"),
            ]
        ):
            environment = wrapper(gymnasium.make(name))
            observation, _ = environment.reset(seed=0)
            seen = [observation["image"]]
            environment.action_space.seed(0)
            for _ in range(6):
                seen.append(environment.step(environment.action_space.sample())[0]["image"])
            found = load([foreign(tmp_path / f"expert-{name}-{number}.npz", np.stack(seen))])
            assert found.metadata.kind == kind, (name, number)


@pytest.mark.parametrize("format", FORMATS)
def test_the_whole_set_decides_and_no_single_file(format: str, tmp_path: Path) -> None:
    expert = foreign(place(tmp_path, "expert", format), states(4, 1), states(4, 2))
    negative = foreign(place(tmp_path, "negative", format), states(3, 3), states(90, 4))
    assert load([expert]).metadata.kind == "grid"
    for given in ([expert, negative], [negative, expert]):
        found = load(given)
        assert {item.trajectory.kind for item in found} == {found.metadata.kind} == {"image"}
    assert load([expert], [negative]).metadata.kind == "image"


@pytest.mark.parametrize("format", FORMATS)
def test_the_user_decides_before_the_values(format: str, tmp_path: Path) -> None:
    few = foreign(place(tmp_path, "expert", format), states(4))
    many = foreign(place(tmp_path, "negative", format), states(MOST_CODES))
    found = load([few], kind="image")
    assert found.metadata.kind == "image"
    assert found.choice is not None
    assert found.choice.line == "states are images: chosen with --kind (--kind chooses otherwise: grid)"
    assert load([few, many], kind="grid").metadata.kind == "grid"


def test_values_that_cannot_be_codes_are_refused(tmp_path: Path) -> None:
    noise = foreign(tmp_path / "expert.npz", states(256))
    said = r"expert.npz: at least 256 different values in a channel, and grids have at most 128 codes, for --kind grid"
    with pytest.raises(InputError, match=said):
        load([noise], kind="grid")
    grey = foreign(tmp_path / "expert-grey.parquet", states(4, channels=1))
    with pytest.raises(InputError, match=r"states of 1 channels, and grids have 3, for --kind grid"):
        load([grey], kind="grid")
    with pytest.raises(InputError, match=r"expected one of vector, grid"):
        load([noise], kind="pixels")
    with pytest.raises(
        InputError, match=r"expert.npz: grids or images for --kind record; expected --kind grid or image, or none"
    ):
        load([noise], kind="record")


@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize("format", FORMATS)
def test_one_or_four_channels_are_images(format: str, channels: int, tmp_path: Path) -> None:
    found = load([foreign(place(tmp_path, "expert", format), states(3, channels=channels))])
    assert found.metadata.kind == "image"
    assert found[0].trajectory.states.shape == (6, 20, 20, channels)


def test_a_file_that_states_its_kind_decides_for_the_others(tmp_path: Path) -> None:
    items = (Demonstration(Trajectory(states(200), kind="grid"), "expert"),)
    save(Demonstrations(Metadata("grid"), items), tmp_path / "grid.parquet")  # as earlier versions wrote noise
    save(Demonstrations(Metadata("image"), items), tmp_path / "image.parquet")
    few = foreign(tmp_path / "negative.npz", states(4))
    noise = foreign(tmp_path / "negative-noise.npz", states(4, 1), states(256))
    grid, image = str(tmp_path / "grid.parquet"), str(tmp_path / "image.parquet")
    assert load([grid]).metadata.kind == load([grid, few]).metadata.kind == load([few, grid]).metadata.kind == "grid"
    assert load([image, few]).metadata.kind == load([few, image]).metadata.kind == "image"
    stated = load([image, few]).choice
    assert stated is not None
    assert stated.line == "states are images: image.parquet states it"
    with pytest.raises(InputError, match=r"negative-noise.npz: at least 256 .* beside .*grid.parquet with grids"):
        load([grid, noise])
    with pytest.raises(InputError, match=r"image.parquet: image states beside .*grid.parquet with grid states"):
        load([grid, image])
    with pytest.raises(InputError, match=r"--kind image: .*grid.parquet holds grids.*demos convert --kind image"):
        load([grid], kind="image")


def test_whole_numbers_wider_than_bytes_are_grids(tmp_path: Path) -> None:
    wide = foreign(tmp_path / "expert.npz", states(200).astype(np.int64))
    found = load([wide])
    assert found.metadata.kind == "grid"
    assert found.choice is None
    with pytest.raises(InputError, match=r"--kind image: .*expert.npz holds grids; expected --kind grid"):
        load([wide], kind="image")


def test_convert_restates_a_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = (Demonstration(Trajectory(states(200), kind="grid"), "expert"),)
    save(Demonstrations(Metadata("grid"), items), tmp_path / "grid.parquet")
    convert = ["demos", "convert", str(tmp_path / "grid.parquet"), str(tmp_path / "image.parquet")]
    main([*convert, "--kind", "image"])
    found = load([tmp_path / "image.parquet"])
    assert found.metadata.kind == "image"
    assert found[0].trajectory.digest == items[0].trajectory.digest
    capsys.readouterr()
    assert main([*convert[:-1], str(tmp_path / "other.parquet"), "--kind", "record"]) in (
        2,
        None,
    )


def test_a_set_in_memory_has_the_kind_of_its_metadata() -> None:
    mixed = tuple(Demonstration(Trajectory(each), "expert") for each in (states(3), states(200)))
    assert [item.trajectory.kind for item in mixed] == ["grid", "image"]
    for kind in ("grid", "image"):
        assert {each.trajectory.kind for each in Demonstrations(Metadata(kind), mixed)} == {kind}
    with pytest.raises(InputError, match="grid states in a set of vector states"):
        Demonstrations(Metadata("vector"), mixed)


def test_one_trajectory_and_one_state_are_judged_alike() -> None:
    for values, kind in ((16, "grid"), (17, "image")):
        assert kind_of(states(values), "here").name == kind
        assert kind_of_state(states(values)[0], "here").name == kind


def test_inspect_says_which_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expert = foreign(tmp_path / "expert.npz", states(60))
    main(["demos", "inspect", expert, "--json"])
    about = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert about["kind"] == "image"
    assert about["kind_reason"] == "at least 60 different values in a channel, and grids have up to 16"
    assert [row["distinct"] for row in about["channels"]] == [60, 60, 60]
    main(["demos", "inspect", expert, "--kind", "grid"])
    said = " ".join(capsys.readouterr().out.split())
    assert "states are grids: chosen with --kind" in said


def test_minaris_dicts(tmp_path: Path) -> None:
    """With an image and what says little, an image or a grid; with further numbers, a record."""
    from gymnasium.spaces import Box, Discrete, Text

    mission = (Text(20), lambda n: ["go"] * n)
    direction = (Discrete(4), lambda n: np.zeros(n, np.int64))
    minari_set(tmp_path / "expert-rgb-v0", [states(90)], direction=direction, mission=mission)
    minari_set(tmp_path / "expert-codes-v0", [states(9)], direction=direction, mission=mission)
    arm = (Box(-1, 1, (7,), np.float64), lambda n: np.zeros((n, 7)))
    minari_set(tmp_path / "expert-arm-v0", [states(90)], arm=arm)
    found = {name: load([f"expert-{name}-v0"]).metadata.kind for name in ("rgb", "codes", "arm")}
    assert found == {"rgb": "image", "codes": "grid", "arm": "record"}
    assert load(["expert-rgb-v0"])[0].trajectory.extra_info == "go"
    assert load(["expert-arm-v0"], kind="image").metadata.kind == "image"
    assert load(["expert-arm-v0"], kind="vector").metadata.kind == "vector"
