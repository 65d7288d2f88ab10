"""Every format gives back what was written: one suite for all readers and writers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from grace_irl.demos import iter_trajectories, load, save
from grace_irl.demos.arena import Arena
from grace_irl.demos.files import Format, open_writer
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError
from tests.demos.equality import assert_same, assert_same_demonstration

FORMATS: dict[Format, str] = {
    "parquet": "set.parquet",
    "npz": "set.npz",
    "imitation": "set.npz",
    "minari": "set-v0",
    "minari-arrow": "set-v0",
}
SETS = ("grids", "vectors", "states_only")


@pytest.fixture(params=SETS)
def demonstrations(request: pytest.FixtureRequest) -> Demonstrations:
    return request.getfixturevalue(request.param)


@pytest.fixture(params=FORMATS)
def format_(request: pytest.FixtureRequest) -> Format:
    return request.param


def held_by(format_: Format, demonstrations: Demonstrations) -> Demonstrations:
    """What the format can hold of a set: imitation's needs actions, Minari's trajectories have a step."""
    if format_ == "imitation" and demonstrations[0].trajectory.actions is None:
        pytest.skip("imitation's layout needs actions")
    if format_.startswith("minari"):
        return replace(demonstrations, items=tuple(d for d in demonstrations if d.trajectory.num_steps))
    return demonstrations


def test_round_trip(demonstrations: Demonstrations, format_: Format, tmp_path: Path) -> None:
    demonstrations = held_by(format_, demonstrations)
    path = tmp_path / FORMATS[format_]
    save(demonstrations, path, format_)
    assert_same(load([path]), demonstrations)


def test_states_and_actions_lie_in_one_sealed_arena(
    demonstrations: Demonstrations, format_: Format, tmp_path: Path
) -> None:
    demonstrations = held_by(format_, demonstrations)
    path = tmp_path / FORMATS[format_]
    save(demonstrations, path, format_)
    arenas = set()
    for item in load([path]):
        for array in (item.trajectory.states, item.trajectory.actions):
            if array is None or array.size == 0:
                continue
            place = Arena.of(array)
            assert place is not None
            arenas.add(place[0])
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
    (arena,) = arenas
    assert arena.sealed


def test_streaming_gives_the_same(demonstrations: Demonstrations, format_: Format, tmp_path: Path) -> None:
    demonstrations = held_by(format_, demonstrations)
    path = tmp_path / FORMATS[format_]
    save(demonstrations, path, format_)
    for one, other in zip(iter_trajectories(path), load([path]), strict=True):
        assert_same_demonstration(one, other)


def test_an_empty_set_writes_nothing(vectors: Demonstrations, format_: Format, tmp_path: Path) -> None:
    path = tmp_path / "folder" / FORMATS[format_]
    with pytest.raises(InputError, match="nothing to write"):
        save(replace(vectors, items=()), path, format_)
    assert not path.parent.exists() or not list(path.parent.iterdir())


def test_a_failure_while_writing_leaves_no_file(vectors: Demonstrations, format_: Format, tmp_path: Path) -> None:
    folder = tmp_path / "folder"

    def interrupted() -> None:
        with open_writer(folder / FORMATS[format_], vectors.metadata, format_) as writer:
            writer.add(vectors[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not folder.exists() or not list(folder.iterdir())


def test_what_does_not_fit_what_came_before(vectors: Demonstrations, format_: Format, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    wide = replace(vectors[0].trajectory, states=np.zeros((5, 7)), actions=np.zeros((4, 9)), source="the odd one")

    def mixed() -> None:
        with open_writer(folder / FORMATS[format_], vectors.metadata, format_) as writer:
            writer.add(vectors[0])
            writer.add(replace(vectors[0], trajectory=wide))

    with pytest.raises(InputError, match="the odd one"):
        mixed()
    assert not folder.exists() or not list(folder.iterdir())


def test_minari_ids_are_found_under_the_datasets_path(grids: Demonstrations, tmp_path: Path) -> None:
    import minari

    save(grids, "babyai/go-to-obj/mixed-v3")
    assert (tmp_path / "minari" / "babyai" / "go-to-obj" / "mixed-v3").is_dir()
    assert_same(load(["babyai/go-to-obj/mixed-v3"]), grids)
    assert list(minari.list_local_datasets()) == ["babyai/go-to-obj/mixed-v3"]
    with pytest.raises(InputError, match="exists already"):
        save(grids, "babyai/go-to-obj/mixed-v3")


@pytest.mark.parametrize("data_format", ["hdf5", "arrow"])
def test_minari_data_of_others(data_format: str) -> None:
    """What DataCollector users have: image, direction and mission, and no word of ours in the metadata."""
    import minari
    from gymnasium.spaces import Box, Dict, Discrete, Text
    from minari.data_collector.episode_buffer import EpisodeBuffer

    rng = np.random.default_rng(0)
    images = [rng.integers(0, 11, (n + 1, 7, 7, 3), dtype=np.uint8) for n in (3, 5)]
    buffers = [
        EpisodeBuffer(
            observations={
                "image": image,
                "direction": rng.integers(0, 4, len(image)),
                "mission": [f"pick up box {number}"] * len(image),
            },
            actions=rng.integers(0, 7, len(image) - 1),
            rewards=[0.0] * (len(image) - 2) + [1.0],
            terminations=[False] * (len(image) - 2) + [True],
            truncations=[False] * (len(image) - 1),
        )
        for number, image in enumerate(images)
    ]
    space = {"image": Box(0, 255, (7, 7, 3), np.uint8), "direction": Discrete(4), "mission": Text(256)}
    minari.create_dataset_from_buffers(
        "expert-v0", buffers, observation_space=Dict(space), action_space=Discrete(7), data_format=data_format
    )
    found = load(["expert-v0"])
    assert [d.trajectory.extra_info for d in found] == ["pick up box 0", "pick up box 1"]
    assert {d.role for d in found} == {"expert"}
    for item, image, buffer in zip(found, images, buffers, strict=True):
        np.testing.assert_array_equal(item.trajectory.states, image)
        np.testing.assert_array_equal(item.trajectory.actions, buffer.actions)
        assert item.trajectory.terminated


def test_minari_goal_observations_are_joined() -> None:
    import minari
    from gymnasium.spaces import Box, Dict
    from minari.data_collector.episode_buffer import EpisodeBuffer

    observations = {
        "observation": np.arange(12.0).reshape(4, 3),
        "desired_goal": -np.arange(8.0).reshape(4, 2),
    }
    buffer = EpisodeBuffer(
        observations=observations,
        actions=np.zeros((3, 1)),
        rewards=[0.0] * 3,
        terminations=[False] * 3,
        truncations=[False, False, True],
    )
    space = Dict({k: Box(-99, 99, v.shape[1:], np.float64) for k, v in observations.items()})
    minari.create_dataset_from_buffers(
        "negative-v0", [buffer], observation_space=space, action_space=Box(-1, 1, (1,), np.float64)
    )
    (found,) = load(["negative-v0"])
    assert load(["negative-v0"]).metadata.fields == (
        "desired_goal_0",
        "desired_goal_1",
        "observation_0",
        "observation_1",
        "observation_2",
    )
    np.testing.assert_array_equal(found.trajectory.states[1], [-2.0, -3.0, 3.0, 4.0, 5.0])


def test_imitation_reads_what_we_write(vectors: Demonstrations, tmp_path: Path) -> None:
    serialize = pytest.importorskip("imitation.data.serialize")
    path = tmp_path / "set.npz"
    items = tuple(d for d in vectors if d.trajectory.num_steps)  # imitation refuses episodes without a step
    save(replace(vectors, items=items), path, "imitation")
    with pytest.warns(DeprecationWarning, match="old npz"):
        theirs = serialize.load(path)
    for one, other in zip(theirs, items, strict=True):
        np.testing.assert_array_equal(one.obs, other.trajectory.states)
        np.testing.assert_array_equal(one.acts, other.trajectory.actions)


def test_imitation_infos_stay_unread(tmp_path: Path) -> None:
    """The library's own npz has a pickled array of infos; the rest can be read without it."""
    path = tmp_path / "expert.npz"
    np.savez(
        path,
        obs=np.arange(14.0).reshape(7, 2),
        acts=np.arange(5),
        infos=np.array([{}] * 5),
        terminal=np.array([True, False]),
        indices=np.array([2]),
        rews=np.arange(5.0),
    )
    first, second = load([path])
    np.testing.assert_array_equal(first.trajectory.states, [[0, 1], [2, 3], [4, 5]])
    np.testing.assert_array_equal(second.trajectory.states[:, 0], [6, 8, 10, 12])
    np.testing.assert_array_equal(second.trajectory.actions, [2, 3, 4])
    np.testing.assert_array_equal(second.trajectory.rewards, [2, 3, 4])
    assert (first.trajectory.terminated, second.trajectory.terminated) == (True, False)


def test_parquet_holds_grids_of_different_sizes_and_goals(grids: Demonstrations, tmp_path: Path) -> None:
    other = replace(grids[0].trajectory, states=np.zeros((6, 9, 2, 3), np.uint8))
    mixed = replace(
        grids,
        items=(
            replace(grids[0], goals=(1, 5)),
            replace(grids[1], trajectory=other),
            replace(grids[2], goals=()),
        ),
    )
    save(mixed, tmp_path / "set.parquet")
    assert_same(load([tmp_path / "set.parquet"]), mixed)


def test_parquet_across_batches(tmp_path: Path) -> None:
    """Episodes that begin and end within batches, span several of them, and end with one."""
    from grace_irl.demos.parquet import BATCH_ROWS
    from grace_irl.demos.trajectory import Demonstration, Metadata, Trajectory

    lengths = (BATCH_ROWS, 7, 2 * BATCH_ROWS + 5, BATCH_ROWS - 12, 1)
    items, start = [], 0
    for length in lengths:
        states = np.arange(start, start + length, dtype=np.float64)[:, None]
        items.append(
            Demonstration(Trajectory(states, states[1:].astype(np.int64)[:, 0], rewards=-states[1:, 0]), "expert")
        )
        start += length
    demonstrations = Demonstrations(Metadata("vector"), tuple(items))
    save(demonstrations, tmp_path / "set.parquet")
    assert_same(load([tmp_path / "set.parquet"]), demonstrations)


def test_parquet_of_others(tmp_path: Path) -> None:
    """The least that a file needs: an episode number and a state in each row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    states = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(10.0)), 2)
    pq.write_table(pa.table({"episode": [7, 7, 7, 3, 3], "state": states}), tmp_path / "expert_a.parquet")
    first, second = load([tmp_path / "expert_a.parquet"])
    np.testing.assert_array_equal(first.trajectory.states, [[0, 1], [2, 3], [4, 5]])
    np.testing.assert_array_equal(second.trajectory.states, [[6, 7], [8, 9]])
    assert (first.role, first.task, first.trajectory.actions) == ("expert", "default", None)
