"""Data of other tools; `test_readers_suite.py` and `test_writers.py` have the duties of all formats."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.files import Format
from grace_irl.demos.given import in_memory
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from tests.demos.equality import assert_same


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


@pytest.mark.parametrize("data_format", ["hdf5", "arrow"])
def test_minari_jpeg(data_format: str, tmp_path: Path) -> None:
    """Minari compresses what looks like an image, which changes values."""
    import minari
    from gymnasium.spaces import Box, Discrete
    from minari.data_collector.episode_buffer import EpisodeBuffer

    buffer = EpisodeBuffer(
        observations=np.zeros((3, 40, 40, 3), np.uint8),
        actions=np.zeros(2, np.int64),
        rewards=[0.0, 0.0],
        terminations=[False, True],
        truncations=[False, False],
    )
    minari.create_dataset_from_buffers(
        "expert-v0",
        [buffer],
        observation_space=Box(0, 255, (40, 40, 3), np.uint8),
        action_space=Discrete(2),
        data_format=data_format,
    )
    with pytest.raises(InputError, match=r"expert-v0: states of .* JPEG.*expected jpeg_encoding=False"):
        load([tmp_path / "minari" / "expert-v0"])


def test_a_line_says_that_minaris_actions_of_several_parts_are_left_out() -> None:
    import minari
    from gymnasium.spaces import Box, Dict
    from minari.data_collector.episode_buffer import EpisodeBuffer

    buffer = EpisodeBuffer(
        observations=np.zeros((3, 2)),
        actions={"arm": np.ones((2, 3)), "grip": np.ones((2, 1))},
        rewards=[0.0, 0.0],
        terminations=[False, True],
        truncations=[False, False],
    )
    parts = {"arm": Box(-1, 1, (3,), np.float64), "grip": Box(-1, 1, (1,), np.float64)}
    minari.create_dataset_from_buffers(
        "expert-v0", [buffer], observation_space=Box(-1, 1, (2,), np.float64), action_space=Dict(parts)
    )
    found = load(["expert-v0"])
    assert found.items[0].trajectory.actions is None
    assert "expert-v0: left out: actions of a Dict space (expected a Box or whole numbers)" in found.notes


def test_a_disk_without_room_for_a_minari_dataset_is_named(
    vectors: Demonstrations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library that writes hdf5 would end this process."""
    whole = replace(vectors, items=tuple(each for each in vectors if each.trajectory.num_steps))
    monkeypatch.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(10**6, 10**6 - 10**5, 10**5))
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\); free some space"):
        save(whole, tmp_path / "one" / "expert-v0", "minari")
    assert not [*tmp_path.glob("one/*")]
    monkeypatch.undo()
    save(whole, tmp_path / "one" / "expert-v0", "minari")


@pytest.mark.parametrize("data_format", ["minari", "minari-arrow"])
@pytest.mark.parametrize(
    "actions", [(None, [0, 2]), ([-1, 0], [1, 1]), ([3, 4], None), (None, [[0.5, 1], [2, 3]]), (None, None)]
)
def test_the_space_of_minari_contains_all_actions(
    actions: tuple[list[Any] | None, ...], data_format: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    import minari

    trajectories = [Trajectory(np.full((3, 2), number), each) for number, each in enumerate(actions)]
    whole = Demonstrations(Metadata("vector"), tuple(Demonstration(each, "expert") for each in trajectories))
    save(whole, "expert-v0", data_format)
    assert_same(load(["expert-v0"]), whole)
    space = minari.load_dataset("expert-v0").action_space
    assert all(space.contains(action) for each in trajectories if each.actions is not None for action in each.actions)
    if actions[1] in ([0, 2], [1, 1]):
        monkeypatch.setattr("grace_irl.demos.minari.writer.BUFFERED_STATES", 1)
        with pytest.raises(InputError, match=r"actions from \d to \d after a space Discrete\(.*\); Minari fixes"):
            save(whole, "expert-v1", data_format)


def test_minari_holds_instructions_that_a_later_trajectory_has(
    vectors: Demonstrations, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (each for each in vectors if each.trajectory.num_steps)
    second = replace(second, trajectory=replace(second.trajectory, extra_info="turn left"))
    save(whole := replace(vectors, items=(first, second, third)), "expert-v0")
    assert_same(load(["expert-v0"]), whole)
    monkeypatch.setattr("grace_irl.demos.minari.writer.BUFFERED_STATES", 1)
    with pytest.raises(InputError, match=r"an instruction after trajectories without any; .*: put a traj"):
        save(whole, "expert-v1")


@pytest.mark.parametrize("data_format", ["hdf5", "arrow"])
def test_a_mission_of_minari_that_changes_within_an_episode_is_refused(data_format: str) -> None:
    import minari
    from gymnasium.spaces import Box, Dict, Text
    from minari.data_collector.episode_buffer import EpisodeBuffer

    def made(name: str, missions: list[str]) -> None:
        buffer = EpisodeBuffer(
            observations={"image": np.zeros((3, 2)), "mission": missions},
            actions=np.zeros((2, 1)),
            rewards=[0.0] * 2,
            terminations=[False, True],
            truncations=[False, False],
        )
        space = Dict({"image": Box(-9, 9, (2,), np.float64), "mission": Text(20)})
        action_space = Box(-1, 1, (1,), np.float64)
        minari.create_dataset_from_buffers(
            name, [buffer], observation_space=space, action_space=action_space, data_format=data_format
        )

    made("expert-v0", ["go left"] * 3)
    assert load(["expert-v0"]).items[0].trajectory.extra_info == "go left"
    made("expert-v1", ["go left", "go left", "go right"])
    with pytest.raises(InputError, match="mission 'go left' and then 'go right'; expected one through the episode"):
        load(["expert-v1"])


@pytest.mark.parametrize("data_format", ["minari", "minari-arrow"])
def test_an_open_dataset_of_minari_with_an_instruction_is_read_as_its_id(
    data_format: Format, grids: Demonstrations
) -> None:
    import minari

    save(grids, "babyai/mixed-v0", data_format)
    dataset = minari.load_dataset("babyai/mixed-v0")
    whole = in_memory(dataset, (), ())
    assert whole is not None
    assert_same(whole, load(["babyai/mixed-v0"]))
    short = in_memory((), dataset.filter_episodes(lambda episode: len(episode.rewards) < 4), ())
    assert short is not None
    assert [each.trajectory.extra_info for each in short] == ["go to the grüne ball", "go to the blue ball"]


def test_a_mission_of_minari_that_is_no_text_is_a_part_of_the_states(tmp_path: Path) -> None:
    import minari
    from gymnasium.spaces import Box, Dict, Discrete
    from minari.data_collector.episode_buffer import EpisodeBuffer

    buffer = EpisodeBuffer(
        observations={"mission": np.arange(4), "image": np.zeros((4, 2), np.float32)},
        actions=np.zeros((3, 1)),
        rewards=[0.0] * 3,
        terminations=[False] * 3,
        truncations=[False, False, True],
    )
    space = Dict(mission=Discrete(5), image=Box(-9, 9, (2,), np.float32))
    made = minari.create_dataset_from_buffers(
        "numbered/mission-v0", [buffer], observation_space=space, action_space=Box(-1, 1, (1,))
    )
    found = in_memory((), made, ())
    assert found is not None
    assert found[0].trajectory.states.parts.keys() == {"mission", "image"}


def test_minari_goal_observations_are_records(tmp_path: Path) -> None:
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
    assert load(["negative-v0"]).metadata.kind == "record"
    state = found.trajectory.states[1]
    assert sorted(state) == ["desired_goal", "observation"]
    np.testing.assert_array_equal(state["desired_goal"], [-2.0, -3.0])
    np.testing.assert_array_equal(state["observation"], [3.0, 4.0, 5.0])
    assert main(["demos", "convert", "negative-v0", str(tmp_path / "joined.parquet"), "--kind", "vector"]) == 0
    joined = load([tmp_path / "joined.parquet"])
    assert joined.metadata.fields == (
        "desired_goal_0",
        "desired_goal_1",
        "observation_0",
        "observation_1",
        "observation_2",
    )
    np.testing.assert_array_equal(joined[0].trajectory.states[1], [-2.0, -3.0, 3.0, 4.0, 5.0])
    assert main(["demos", "convert", str(tmp_path / "joined.parquet"), str(tmp_path / "x.npz"), "--kind", "grid"]) == 2


def test_a_file_that_two_paths_name_counts_once(vectors: Demonstrations, tmp_path: Path) -> None:
    for name in ("expert", "expert2"):
        save(vectors, tmp_path / f"{name}.npz")
    paths = [tmp_path, tmp_path / "expert.npz", tmp_path / ".." / tmp_path.name / "expert2.npz"]
    assert len(load(paths)) == 2 * len(vectors)
    assert len(load([], role="expert", experts=paths)) == 2 * len(vectors)


def test_what_this_user_may_not_read_is_no_damaged_file(
    vectors: Demonstrations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(vectors, tmp_path / "expert.parquet")
    monkeypatch.setattr("grace_irl.demos.formats.os.access", lambda *_: False)
    with pytest.raises(InputError, match=r"expert\.parquet: this user may not read it; expected a readable file"):
        load([tmp_path / "expert.parquet"])
    with pytest.raises(InputError, match="this user may not read it; expected a readable folder"):
        load([tmp_path])


def test_a_file_counts_once_in_the_role_that_names_it(vectors: Demonstrations, tmp_path: Path) -> None:
    """A file of a folder may be named again with a role. Two roles for one file are refused."""
    save(replace(vectors, items=vectors.items[:3]), tmp_path / "expert.parquet")
    save(replace(vectors, items=vectors.items[3:]), tmp_path / "late.parquet")
    file = tmp_path / "late.parquet"
    found = load([tmp_path], negatives=[file])
    assert [item.role for item in found][3:] == ["negative"] * (len(vectors) - 3)
    assert [item.role for item in load([file], experts=[tmp_path])] == ["expert"] * len(vectors)
    with pytest.raises(InputError, match=r"late.parquet: named as expert and as negative; expected one role"):
        load([], experts=[tmp_path], negatives=[file])


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


def test_parquet_holds_grids_with_a_long_side(grids: Demonstrations, tmp_path: Path) -> None:
    long = replace(grids[0].trajectory, states=np.zeros((6, 40_000, 1, 3), np.uint8))
    save(replace(grids, items=(replace(grids[0], trajectory=long),)), tmp_path / "set.parquet")
    assert load([tmp_path / "set.parquet"])[0].trajectory.states.shape == (6, 40_000, 1, 3)


def test_parquet_holds_goals_that_come_after_a_row_group_without_any(tmp_path: Path) -> None:
    from grace_irl.demos.parquet.source import BATCH_ROWS

    items = [Demonstration(Trajectory(np.zeros((BATCH_ROWS, 1))), "expert")]
    items += [Demonstration(Trajectory(np.ones((3, 1))), "expert", goals=(1,))]
    save(Demonstrations(Metadata("vector"), tuple(items)), tmp_path / "set.parquet")
    assert [item.goals for item in load([tmp_path / "set.parquet"])] == [None, (1,)]


def test_parquet_across_batches(tmp_path: Path) -> None:
    """Episodes that begin and end within batches, span several of them, and end with one."""
    from grace_irl.demos.parquet.source import BATCH_ROWS

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


def test_parquet_flags_that_are_null_are_off(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"episode": [0, 0, 0], "state": [[1.0], [2.0], [3.0]], "goal": [None, True, None]}
    pq.write_table(pa.table({**columns, "terminated": [None, None, True]}), tmp_path / "expert.parquet")
    (item,) = load([tmp_path / "expert.parquet"])
    assert (item.goals, item.trajectory.terminated, item.trajectory.truncated) == ((1,), True, False)


@pytest.mark.parametrize("texts", [["go", None], [None, "go"]])
def test_a_parquet_row_without_an_instruction_does_not_count(texts: list[str | None], tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"episode": [0, 0], "state": [[1.0, 2.0], [3.0, 4.0]], "instruction": texts}
    pq.write_table(pa.table(columns), tmp_path / "expert.parquet")
    assert load([tmp_path / "expert.parquet"])[0].trajectory.extra_info == "go"


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
