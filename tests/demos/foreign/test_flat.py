"""Flat arrays whose rows or flags are not those of D4RL."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grace_irl.demos import load
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError

STATES = np.array([[0.0], [1.0], [10.0], [11.0], [12.0]])
AFTER = np.array([[1.0], [2.0], [11.0], [12.0], [13.0]])


def read(folder: Path, **arrays: Any) -> Demonstrations:
    np.savez(folder / "expert.npz", **arrays)
    return load([folder / "expert.npz"])


def test_an_episode_ends_where_the_next_observation_is_another_one(tmp_path: Path) -> None:
    found = read(tmp_path, observations=STATES, next_observations=AFTER, terminals=np.zeros(5))
    assert [item.trajectory.states[:, 0].tolist() for item in found] == [[0, 1, 2], [10, 11, 12, 13]]
    assert "without a flag, 1 end where the next observation is not that of the next row" in found.notes[0]


def test_a_shuffled_replay_buffer_is_refused(tmp_path: Path) -> None:
    order = [3, 0, 4, 1, 2]
    with pytest.raises(InputError, match="mostly not the observations one row later; expected rows in order"):
        read(tmp_path, observations=STATES[order], next_observations=AFTER[order], terminals=np.zeros(5))


def test_a_second_array_of_flags_counts_if_the_first_has_none(tmp_path: Path) -> None:
    dones, timeouts = np.array([0, 1, 0, 0, 1]), np.array([0, 0, 0, 0, 1])
    more = {"next_observations": AFTER, "terminals": np.zeros(5), "dones": dones, "timeouts": timeouts}
    found = [item.trajectory for item in read(tmp_path, observations=STATES, **more)]
    assert [len(each.states) for each in found] == [3, 4]
    assert [(each.terminated, each.truncated) for each in found] == [(True, False), (False, True)]


def test_arrays_of_objects_beside_flat_ones_are_not_opened(tmp_path: Path) -> None:
    more = {"next_observations": AFTER, "terminals": np.array([0, 1, 0, 0, 1]), "infos": np.array([{}] * 5, object)}
    found = read(tmp_path, observations=STATES, **more)
    assert len(found) == 2
    assert "left out: infos" in found.notes[0]


def test_a_zip_archive_without_arrays_says_what_it_holds(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "expert.csv.zip", "w") as archive:
        archive.writestr("expert.csv", "episode,x\n0,1\n")
    with pytest.raises(InputError, match=r"a zip archive of expert\.csv; expected npz arrays: unpack it"):
        load([tmp_path / "expert.csv.zip"])
