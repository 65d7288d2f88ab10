"""A reward beside an episode's last state, as tables and robots' logs have one for each row: it stays in the return."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grace_irl.cli import main
from grace_irl.demos import load
from grace_irl.demos.trajectory import Demonstrations, step_rewards
from grace_irl.errors import InputError
from tests.demos.foreign.writing import plain, rows, to_csv, to_lerobot, to_rlds

NAMES = ("height", "speed", "angle")
PAID = [[0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
"""Rewards beside the states of two episodes; the first one succeeds in its last row."""


def sets() -> Demonstrations:
    """Two episodes of five and three states; their rewards are `PAID` as far as there are steps."""
    found = plain(NAMES, ended=False)
    items = [
        replace(each, trajectory=replace(each.trajectory, rewards=np.array(paid[:-1])))
        for each, paid in zip(found, PAID, strict=True)
    ]
    return replace(found, items=tuple(items))


def table() -> list[dict[str, object]]:
    paid = [reward for episode in PAID for reward in episode]
    return [row | {"reward": reward} for row, reward in zip(rows(sets()), paid, strict=True)]


def csv_file(place: Path) -> Path:
    to_csv(table(), place / "set.csv")
    return place / "set.csv"


def json_lines(place: Path) -> Path:
    (place / "set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table()))
    return place / "set.jsonl"


def own_parquet(place: Path) -> Path:
    columns = {
        "episode": [number for number, episode in enumerate(PAID) for _ in episode],
        "state": [state.tolist() for each in sets() for state in each.trajectory.states],
        "reward": [reward for episode in PAID for reward in episode],
        "role": ["expert"] * 8,
    }
    pq.write_table(pa.table(columns), place / "set.parquet")
    return place / "set.parquet"


def arrays() -> dict[str, np.ndarray]:
    """D4RL's arrays without next observations."""
    return {
        "observations": np.concatenate([each.trajectory.states for each in sets()]),
        "rewards": np.concatenate(PAID),
        "timeouts": np.array([0, 0, 0, 0, 1, 0, 0, 1], bool),
    }


def npz(place: Path) -> Path:
    np.savez(place / "set.npz", **arrays())
    return place / "set.npz"


def npz_of_lengths(place: Path) -> Path:
    kept = {name: array for name, array in arrays().items() if name != "timeouts"}
    np.savez(place / "set.npz", **kept, episode_lengths=np.array([5, 3]))
    return place / "set.npz"


def d4rl(place: Path) -> Path:
    with h5py.File(place / "set.hdf5", "w") as file:
        for name, array in arrays().items():
            file[name] = array
    return place / "set.hdf5"


def robomimic(place: Path) -> Path:
    with h5py.File(place / "set.hdf5", "w") as file:
        for number, (each, paid) in enumerate(zip(sets(), PAID, strict=True)):
            file[f"data/demo_{number}/obs"], file[f"data/demo_{number}/rewards"] = each.trajectory.states, paid
    return place / "set.hdf5"


def lerobot(place: Path) -> Path:
    to_lerobot(sets(), place / "set", last_rewards=[1.0, 0.0])
    return place / "set"


def rlds(place: Path) -> Path:
    to_rlds(sets(), place / "set", last_rewards=[1.0, 0.0])
    return place / "set"


FORMATS = (csv_file, json_lines, own_parquet, npz, npz_of_lengths, d4rl, robomimic, lerobot, rlds)


@pytest.mark.parametrize("write", FORMATS, ids=lambda write: write.__name__)
def test_a_success_that_is_paid_in_the_last_row_is_one(write: Callable[[Path], Path], tmp_path: Path) -> None:
    path = write(tmp_path)
    found = load([path], role="expert")
    assert [each.trajectory.rewards.tolist() for each in found] == [[0, 0, 0, 1], [0, 0]]
    kept = tmp_path / "kept.parquet"
    assert main(["demos", "select", "--from", str(path), "--out", str(kept), "--role", "expert", "--success"]) == 0
    (only,) = load([kept], role="expert")
    assert len(only.trajectory.states) == 5


def test_it_is_added_to_the_last_step_unless_there_is_none() -> None:
    assert step_rewards(np.array([1, 2, 3]), 2).tolist() == [1, 5]
    assert step_rewards(np.array([1, 2, np.nan]), 2).tolist() == [1, 2]
    assert step_rewards(np.array([1, 2]), 2).tolist() == [1, 2]
    assert step_rewards(np.array([7.0]), 0).tolist() == []
    assert step_rewards(np.array([]), -1).tolist() == []
    assert step_rewards(np.ones((3, 2)), 2).shape == (2, 2)  # refused later, with its shape


def test_an_episode_without_states_is_refused_and_padding_is_cut(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "set.hdf5", "w") as file:
        file["data/demo_0/obs"], file["data/demo_0/rewards"] = np.zeros((3, 2)), np.arange(5.0)
        file["data/demo_0/actions"] = np.zeros((5, 1))
    (padded,) = load([tmp_path / "set.hdf5"], role="expert")
    assert padded.trajectory.rewards.tolist() == [0, 1 + 2]
    with h5py.File(tmp_path / "none.hdf5", "w") as file:
        file["data/demo_0/obs"], file["data/demo_0/rewards"] = np.zeros((0, 2)), np.zeros(0)
    with pytest.raises(InputError, match="no states; expected at least one"):
        load([tmp_path / "none.hdf5"], role="expert")
