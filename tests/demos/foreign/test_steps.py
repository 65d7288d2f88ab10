"""Tables whose rows are not in the order of their steps."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grace_irl.demos import load
from grace_irl.demos.foreign.columns import Columns
from grace_irl.errors import InputError


def states(path: Path, columns: Columns = Columns()) -> list[list[list[float]]]:
    return [item.trajectory.states.tolist() for item in load([path], role="expert", columns=columns)]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int32, np.float64])
def test_numbers_of_every_type_sort_the_rows(dtype: type, tmp_path: Path) -> None:
    table = {"episode": [0, 0, 0], "step": np.array([2, 1, 0], dtype), "x": [2.5, 1.5, 0.5]}
    pq.write_table(pa.table(table), tmp_path / "set.parquet")
    assert states(tmp_path / "set.parquet") == [[[0.5], [1.5], [2.5]]]


def test_a_row_without_a_step_is_refused(tmp_path: Path) -> None:
    (tmp_path / "set.csv").write_text("episode,step,x\n0,1,1.5\n0,,2.5\n0,0,0.5\n")
    with pytest.raises(InputError, match=r"no step in row 1; expected a number in each row"):
        states(tmp_path / "set.csv")


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [([1, 0], [[0.0, 0.5], [1.0, 1.5]]), ([1.5, 0.2], [[1.5, 1.5], [0.2, 0.5]]), ([1, 0, 1], None)],
)
def test_a_chosen_column_of_steps_sorts_the_rows_if_it_counts(
    steps: list[float], wanted: list[list[float]] | None, tmp_path: Path
) -> None:
    rows = list(zip(steps, [1.5, 0.5, 2.5], strict=False))
    (tmp_path / "set.csv").write_text("episode,t,x\n" + "".join(f"0,{step},{x}\n" for step, x in rows))
    found = states(tmp_path / "set.csv", Columns(("t", "x")))
    assert found == [wanted or [list(map(float, row)) for row in rows]]


def test_a_parquet_file_of_vectors_is_read_with_its_other_columns(tmp_path: Path) -> None:
    states_of_rows = pa.array([[2.5, 0.0], [0.5, 0.0], [1.5, 0.0]], pa.list_(pa.float32()))
    table = {"episode": [0, 0, 0], "step": [2, 0, 1], "state": states_of_rows, "done": [True, False, False]}
    pq.write_table(pa.table(table | {"actions": [9, 3, 4]}), tmp_path / "set.parquet")
    (item,) = load([tmp_path / "set.parquet"], role="expert")
    assert item.trajectory.states[:, 0].tolist() == [0.5, 1.5, 2.5]
    assert item.trajectory.terminated
    assert item.trajectory.actions is not None
    assert item.trajectory.actions.tolist() == [3, 4]


def test_records_in_parquet_are_in_order_and_say_what_is_left_out(tmp_path: Path) -> None:
    table = {"episode": [0, 0], "step": [0, 1], "state/x": [0.5, 1.5], "state/y": [1, 2], "next_x": [1.5, 2.5]}
    pq.write_table(pa.table(table), tmp_path / "set.parquet")
    assert f"{tmp_path / 'set.parquet'}: left out: next_x" in load([tmp_path / "set.parquet"], role="expert").notes
    pq.write_table(pa.table(table | {"step": [1, 0]}), tmp_path / "set.parquet")
    with pytest.raises(InputError, match="rows of episode 0 are not in the order of their steps"):
        load([tmp_path / "set.parquet"], role="expert")


def test_steps_that_begin_again_without_a_flag_are_refused(tmp_path: Path) -> None:
    (tmp_path / "set.csv").write_text("step,x,done\n0,1,0\n1,2,1\n0,3,0\n1,4,0\n0,5,0\n")
    with pytest.raises(InputError, match="step goes back from 1 to 0 in row 4, and no flag ends an episode before it"):
        states(tmp_path / "set.csv")


@pytest.mark.parametrize("name", ["done", "terminated", "truncated"])
def test_an_end_in_the_middle_of_an_episode_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "expert.csv"
    path.write_text(f"episode,x,{name}\n" + "".join(f"7,{row},{int(row == 1)}\n" for row in range(4)))
    with pytest.raises(InputError, match=rf"episode 0: column '{name}' says in row 1 of 4 that the episode ends, and"):
        load([path])
    for ends in ([0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 1, 1], [1, 1, 1, 0]):
        path.write_text(f"episode,x,{name}\n" + "".join(f"7,{row},{end}\n" for row, end in enumerate(ends)))
        (item,) = load([path])
        assert item.trajectory.terminated or item.trajectory.truncated


def test_an_end_in_the_middle_of_an_episode_of_states_is_refused(tmp_path: Path) -> None:
    table = {"episode": [0] * 4, "state": [[1.0], [2.0], [3.0], [4.0]], "terminated": [False, True, False, False]}
    pq.write_table(pa.table(table), tmp_path / "expert.parquet")
    with pytest.raises(InputError, match="episode 0: column 'terminated' says in row 1 of 4 that the episode ends"):
        load([tmp_path / "expert.parquet"])
