"""Data sets of robots whose rows, flags or groups are not as usual: LeRobot's folders and robomimic's HDF5."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grace_irl.demos import load
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError
from tests.demos.foreign.writing import plain, to_lerobot


def lerobot(folder: Path, change: Callable[[pa.Table], pa.Table]) -> Demonstrations:
    to_lerobot(plain(), folder)
    file = sorted((folder / "data").rglob("*.parquet"))[0]
    pq.write_table(change(pq.read_table(file)), file)
    return load([folder], role="expert")


def test_rows_of_lerobot_are_put_in_the_order_of_frames(tmp_path: Path) -> None:
    as_it_was = lerobot(tmp_path / "a", lambda table: table)
    backwards = lerobot(tmp_path / "b", lambda table: table.take(list(range(len(table)))[::-1]))
    for one, other in zip(as_it_was, backwards, strict=True):
        np.testing.assert_array_equal(one.trajectory.states, other.trajectory.states)


def test_lerobot_states_stay_float32(tmp_path: Path) -> None:
    to_lerobot(plain(), tmp_path)
    for file in (tmp_path / "data").rglob("*.parquet"):
        table = pq.read_table(file)
        place = table.column_names.index("observation.state")
        column = table.column(place).cast(pa.list_(pa.float32()))
        pq.write_table(table.set_column(place, "observation.state", column), file)
    assert {item.trajectory.states.dtype for item in load([tmp_path], role="expert")} == {np.dtype(np.float32)}


def test_an_episode_of_lerobot_in_two_files_is_refused(tmp_path: Path) -> None:
    to_lerobot(plain(), tmp_path)
    file = sorted((tmp_path / "data").rglob("*.parquet"))[0]
    shutil.copy(file, file.with_name("copy.parquet"))
    with pytest.raises(InputError, match="episode 0 is in the data twice, or in two parts; expected the rows"):
        load([tmp_path], role="expert")


def robomimic(folder: Path, **arrays: Any) -> Demonstrations:
    with h5py.File(folder / "expert.hdf5", "w") as file:
        for name, array in arrays.items():
            file[f"data/demo_0/{name}"] = array
        file["data/demo_0_mirrored/obs"] = np.zeros((3, 2))
    return load([folder / "expert.hdf5"])


def test_flags_of_a_group_count_if_the_last_state_is_there(tmp_path: Path) -> None:
    obs, ends = np.arange(8.0).reshape(4, 2), [False, False, True]
    found = robomimic(tmp_path, obs=obs, actions=np.zeros(3), dones=ends, truncated=[0, 0, 1])
    assert found.items[0].trajectory.terminated
    assert found.items[0].trajectory.truncated
    assert any("passed over: demo_0_mirrored" in note for note in found.notes)
    assert not robomimic(tmp_path, obs=obs[:3], actions=np.zeros(3), dones=ends).items[0].trajectory.terminated


def test_next_observations_of_other_parts_are_refused(tmp_path: Path) -> None:
    more = {"obs/x": np.zeros((3, 1)), "obs/y": np.zeros((3, 1)), "next_obs/x": np.zeros((3, 1))}
    with pytest.raises(InputError, match="part 'y' in only one of obs and next_obs; expected the same parts in both"):
        robomimic(tmp_path, **more)
