"""Columns that the user chooses, in all commands; rows in JSON; texts among numbers."""

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grace_irl.cli import main
from grace_irl.demos import load
from grace_irl.demos.foreign.columns import Columns
from grace_irl.errors import InputError

ROWS = [{"which": row // 2, "x": row + 0.5, "noise": 3.0} for row in range(8)]


def csv_file(folder: Path) -> Path:
    lines = ["which,x,noise", *(",".join(map(str, row.values())) for row in ROWS)]
    (folder / "set.csv").write_text("\n".join(lines) + "\n")
    return folder / "set.csv"


@pytest.mark.parametrize(
    ("command", "target"),
    [(["select", "--from"], ["--role", "expert", "--out"]), (["scramble"], []), (["convert"], [])],
)
def test_all_commands_that_copy_a_table_take_the_same_columns(
    command: list[str], target: list[str], tmp_path: Path
) -> None:
    copy, role = tmp_path / "copy.parquet", ["--role", "expert"] if command == ["convert"] else []
    path = csv_file(tmp_path)
    if command == ["scramble"]:
        path = path.rename(tmp_path / "expert.csv")
    chosen = ["--state-columns", "x", "--episode-column", "which"]
    assert main(["demos", *command, str(path), *target, str(copy), *chosen, *role]) == 0
    found = load([copy], role="expert")
    assert [each.trajectory.states.shape for each in found] == [(2, 1)] * 4


def test_rows_in_json_have_any_column_of_episodes_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "expert.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    found = load([path], columns=Columns(("x",), "which"))
    assert [each.trajectory.states.tolist() for each in found] == [[[n + 0.5], [n + 1.5]] for n in range(0, 8, 2)]
    with pytest.raises(InputError, match="no column of episodes among 'which', 'x', 'noise'"):
        load([path])


def test_rows_in_json_may_end_with_flags(tmp_path: Path) -> None:
    path = tmp_path / "expert.jsonl"
    path.write_text("".join(json.dumps({"x": n, "done": n % 2 == 1}) + "\n" for n in range(4)))
    assert [each.trajectory.states.tolist() for each in load([path])] == [[[0], [1]], [[2], [3]]]


@pytest.mark.parametrize("cells", [["1", "2.5", "none", "4"], ["1", "2", "3", "-"], ["1", "2", "x", ""]])
def test_a_text_among_numbers_does_not_drop_the_column(cells: list[str], tmp_path: Path) -> None:
    path = tmp_path / "expert.csv"
    path.write_text("episode,x,speed\n" + "".join(f"0,{n},{cell}\n" for n, cell in enumerate(cells)))
    with pytest.raises(InputError, match=r"column 'speed' holds numbers, and '.*' among them; expected a number"):
        load([path])
    assert load([path], columns=Columns(("x",))).metadata.fields == ("x",)


def test_a_missing_number_does_not_drop_the_column(tmp_path: Path) -> None:
    path = tmp_path / "expert.csv"
    path.write_text("episode,x,speed\n0,1,2\n0,2,n/a\n")
    with pytest.raises(InputError, match=r"step 1, field 'speed' .*found nan; expected finite numbers"):
        load([path])


@pytest.mark.parametrize("cells", [["a", "b", "7", "d"], ["left", "right", "left", "1"]])
def test_texts_are_left_out(cells: list[str], tmp_path: Path) -> None:
    path = tmp_path / "expert.csv"
    path.write_text("episode,x,note\n" + "".join(f"0,{n},{cell}\n" for n, cell in enumerate(cells)))
    assert load([path]).metadata.fields == ("x",)


def test_numbers_that_are_written_as_texts_throughout_are_names(tmp_path: Path) -> None:
    path = tmp_path / "expert.jsonl"
    path.write_text("".join(json.dumps({"episode": 0, "x": n, "robot": f"00{n}"}) + "\n" for n in range(4)))
    assert load([path]).metadata.fields == ("x",)


def test_a_column_that_is_no_state_may_hold_anything(tmp_path: Path) -> None:
    path = tmp_path / "expert.csv"
    path.write_text("episode,x,return\n0,1,\n0,2,3\n0,3,4\n0,4,none\n")
    assert load([path]).metadata.fields == ("x",)


def test_columns_of_the_next_state_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "expert.csv"
    path.write_text("episode,x,next_x,next_turn\n0,1,2,5\n0,2,3,5\n")
    found = load([path])
    assert found.metadata.fields == ("x", "next_turn")
    assert "left out: 'next_x'" in found.notes[0]


def test_a_number_that_is_written_as_text_among_others_is_one(tmp_path: Path) -> None:
    path = tmp_path / "expert.jsonl"
    path.write_text("".join(json.dumps({"episode": 0, "x": "2.5" if n == 2 else n}) + "\n" for n in range(4)))
    (item,) = load([path])
    assert item.trajectory.states.tolist() == [[0.0], [1.0], [2.5], [3.0]]


def test_decimals_of_parquet_are_numbers(tmp_path: Path) -> None:
    column = pa.array([Decimal("0.50"), Decimal("1.25")], pa.decimal128(6, 2))
    pq.write_table(pa.table({"episode": [0, 0], "x": column}), tmp_path / "expert.parquet")
    assert load([tmp_path / "expert.parquet"]).items[0].trajectory.states.tolist() == [[0.5], [1.25]]


def test_marks_between_thousands_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "expert.csv"
    path.write_text('episode,x,speed\n0,1,900\n0,2,"1,200"\n0,3,"1,300"\n')
    with pytest.raises(InputError, match=r"column 'speed' holds numbers, and '1,200' among them; .*: correct row 1,"):
        load([path])


def test_one_text_with_a_comma_does_not_make_all_decimals_commas(tmp_path: Path) -> None:
    path = tmp_path / "expert.csv"
    path.write_text("episode;x;note\n0;0.5;a\n0;1.5;1,5\n0;2.5;c\n")
    (item,) = load([path])
    assert item.trajectory.states.tolist() == [[0.5], [1.5], [2.5]]


@pytest.mark.parametrize("name", ["state", "observation"])
@pytest.mark.parametrize("step", [[], ["step"]])
def test_a_column_of_numbers_named_state_is_one_of_them(name: str, step: list[str], tmp_path: Path) -> None:
    columns = {"episode": [0, 0, 0], **{each: [0, 1, 2] for each in step}, name: [1.0, 2.0, 3.0], "x": [4, 5, 6]}
    pq.write_table(pa.table(columns), tmp_path / "expert.parquet")
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (tmp_path / "expert.csv").write_text("\n".join(lines) + "\n")
    for path in (tmp_path / "expert.parquet", tmp_path / "expert.csv"):
        found = load([path])
        assert found.metadata.fields == (name, "x")
        assert found.items[0].trajectory.states.tolist() == [[1, 4], [2, 5], [3, 6]]


def test_lists_beside_numbers_make_records(tmp_path: Path) -> None:
    path = tmp_path / "expert.parquet"
    pq.write_table(pa.table({"episode": [0, 0], "x": [1, 2], "joints": [[1.0, 2.0], [3.0, 4.0]]}), path)
    found = load([path])
    assert found.metadata.kind == "record"
    assert found.items[0].trajectory.states[1]["joints"].tolist() == [3, 4]
    assert found.items[0].trajectory.states[1]["x"] == 2
    assert load([path], columns=Columns(("x",))).metadata.fields == ("x",)
    pq.write_table(pa.table({"episode": [0, 0], "joints": [[1.0, 2.0], [3.0, 4.0]]}), path)
    assert load([path]).items[0].trajectory.states.tolist() == [[1, 2], [3, 4]]


def test_lists_of_different_lengths_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "expert.jsonl"
    rows = [{"episode": 0, "x": n, "seen": list(range(n))} for n in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"column 'seen': rows of different lengths .*; or choose other columns"):
        load([path])
    assert load([path], columns=Columns(("x",))).metadata.fields == ("x",)


@pytest.mark.parametrize("beside", [[0.5, 1.5], [1, 2]])
def test_whole_numbers_that_programs_would_get_rounded_are_refused(beside: list[float], tmp_path: Path) -> None:
    path = tmp_path / "expert.parquet"
    pq.write_table(pa.table({"episode": [0, 0], "x": beside, "id": [3, 2**53 + 1]}), path)
    with pytest.raises(
        InputError, match=r"column 'id': 9007199254740993, which float64 rounds; expected whole numbers"
    ):
        load([path])
    assert load([path], columns=Columns(("x",))).metadata.fields == ("x",)
    pq.write_table(pa.table({"episode": [0, 0], "x": beside, "id": [3, -(2**53)]}), path)
    assert load([path]).items[0].trajectory.states[1].tolist() == [beside[1], -(2**53)]
    pq.write_table(pa.table({"episode": [0, 0], "state": [[1, 2], [3, -(2**53) - 1]]}), path)
    with pytest.raises(InputError, match=r"episode 0: -9007199254740993, which float64 rounds"):
        load([path])
