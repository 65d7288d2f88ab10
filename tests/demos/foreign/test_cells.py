"""Columns and cells of tables: CSV, lines of JSON and wide Parquet."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grace_irl.demos import load
from grace_irl.demos.foreign.columns import Columns
from grace_irl.demos.formats import open_source
from grace_irl.errors import InputError
from tests.demos.foreign.reading import WHOLE, numbers, read
from tests.demos.foreign.writing import (
    table,
    to_csv,
    to_json_lines,
    to_parquet,
)


def test_a_csv_of_a_country_with_decimal_commas_is_read(tmp_path: Path) -> None:
    (tmp_path / "set.csv").write_text("episode;x\n0;0,5\n0;1,5\n1;2,5\n1;3,5\n")
    assert numbers(read(tmp_path / "set.csv")) == WHOLE


def test_cells_of_a_csv_longer_than_a_block_may_hold_line_breaks(tmp_path: Path) -> None:
    text = "go to\nthe door, and wait there\n" * 100
    to_csv([{"episode": n // 2, "x": float(n), "instruction": text} for n in range(600)], tmp_path / "expert.csv")
    assert (tmp_path / "expert.csv").stat().st_size > 1 << 20  # pyarrow reads CSV in blocks of this size
    found = load([tmp_path / "expert.csv"])
    assert len(found) == 300
    assert {each.trajectory.extra_info for each in found} == {text}


def test_quotes_that_nothing_closes_do_not_swallow_the_rows_between_them(tmp_path: Path) -> None:
    lines = [f"{row // 30},{row},0.25,fine\n" for row in range(60_000)]
    for row in (1_000, 59_000):
        lines[row] = lines[row].replace("fine", '"oops')
    (tmp_path / "expert.csv").write_text("".join(["episode,x,y,note\n", *lines]))
    with pytest.raises(InputError, match="not readable as CSV"):
        load([tmp_path / "expert.csv"])


def test_names_of_columns_count_whatever_their_capitals_and_the_mark_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "set.csv").write_bytes("\ufeffEpisode,x\n0,0.5\n0,1.5\n1,2.5\n1,3.5\n".encode())
    assert numbers(read(tmp_path / "set.csv")) == WHOLE


def test_rows_are_put_in_the_order_of_their_steps(tmp_path: Path) -> None:
    to_csv(table(step=[1, 0, 0, 1]), tmp_path / "set.csv")
    assert numbers(read(tmp_path / "set.csv")) == [[[1.5], [0.5]], [[2.5], [3.5]]]


def test_without_a_column_of_episodes_flags_end_them(tmp_path: Path) -> None:
    lines = [{**row, "done": place == 1} for place, row in enumerate(table())]
    to_csv([{name: value for name, value in row.items() if name != "episode"} for row in lines], tmp_path / "set.csv")
    found = read(tmp_path / "set.csv")
    assert numbers(found) == WHOLE
    assert [each.trajectory.terminated for each in found] == [True, False]


def test_lines_of_whole_episodes_are_read(tmp_path: Path) -> None:
    lines = [{"observations": [[0.5], [1.5]], "instruction": "go"}, {"observations": [[2.5], [3.5]]}]
    to_json_lines(lines, tmp_path / "set.jsonl")
    found = read(tmp_path / "set.jsonl")
    assert numbers(found) == WHOLE
    assert found[0].trajectory.extra_info == "go"


def test_lines_of_whole_episodes_say_roles_splits_instructions_and_goals_as_tables_do(tmp_path: Path) -> None:
    path = tmp_path / "expert.jsonl"
    first = {"observations": [[1.0], [2.0]], "label": 0, "split": "held_out", "language_instruction": "go"}
    second = {"observations": [[1.0], [2.0]], "instruction": None, "is_expert": True, "task": None}
    second["goal"] = [False, True]
    path.write_text("".join(json.dumps(each) + "\n" for each in (first, second)))
    one, two = load([path])
    assert (one.role, one.split, one.trajectory.extra_info, one.task) == ("negative", "held_out", "go", "default")
    assert (two.role, two.split, two.trajectory.extra_info, two.task) == ("expert", None, "", "default")
    assert (one.goals, two.goals) == (None, (1,))


def test_a_column_of_lists_holds_whole_states(tmp_path: Path) -> None:
    lines = [{"episode": 0, "obs": [1.0, 2.0]}, {"episode": 0, "obs": [3.0, 4.0]}]
    to_json_lines(lines, tmp_path / "set.jsonl")
    assert numbers(read(tmp_path / "set.jsonl")) == [[[1, 2], [3, 4]]]
    to_parquet(lines, tmp_path / "set.parquet")
    assert numbers(read(tmp_path / "set.parquet")) == [[[1, 2], [3, 4]]]


@pytest.mark.parametrize("labels", [["expert", "negative"], [1, 0], [True, False], ["1", "0"]])
def test_a_label_column_gives_the_roles(labels: list[Any], tmp_path: Path) -> None:
    column = [labels[0], labels[0], labels[1], labels[1]]
    states = [[0.5], [1.5], [2.5], [3.5]]
    pq.write_table(pa.table({"episode": [0, 0, 1, 1], "state": states, "label": column}), tmp_path / "set.parquet")
    to_csv(table(label=column), tmp_path / "set.csv")
    for name in ("set.parquet", "set.csv"):
        assert [each.role for each in load([tmp_path / name])] == ["expert", "negative"]


HEAD, ROWS = "episode,step,x,y", "0,0,1,2\n0,1,2,3\n1,0,3,4\n1,1,4,5\n"


@pytest.mark.parametrize(
    ("head", "more"),
    [
        ("terminated,done", ("0,0", "1,1", "0,0", "1,1")),
        ("role,is_expert", ("expert,1", "expert,1", "expert,1", "expert,1")),
        ("t,__index_level_0__", ("0,7", "1,8", "0,9", "1,11")),
        ("ep,frame", ("0,0", "0,1", "1,0", "1,1")),
        ("goal", ("0.0", "1.0", "0.0", "1.0")),
    ],
)
def test_a_second_column_of_a_known_use_is_no_state(head: str, more: tuple[str, ...], tmp_path: Path) -> None:
    lines = [f"{line},{end}" for line, end in zip(ROWS.splitlines(), more, strict=True)]
    path = tmp_path / "expert.csv"
    path.write_text("\n".join([f"{HEAD},{head}", *lines]) + "\n")
    assert load([path]).metadata.fields == ("x", "y")


def test_names_may_have_spaces_around_them(tmp_path: Path) -> None:
    path = tmp_path / "expert.csv"
    path.write_text("episode, step, x, reward, is_expert\n0, 0, 1, 0, 0\n0, 1, 2, 1, 0\n")
    (found,) = load([path])
    assert (found.role, found.trajectory.states.tolist()) == ("negative", [[1.0], [2.0]])
    assert found.trajectory.rewards is not None
    chosen = load([path], columns=Columns(("reward", "x"), "episode"))
    assert chosen.metadata.fields == ("reward", "x")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("done,x\nf,1\nmaybe,2\n", "column 'done' holds 'maybe'; expected true or false"),
        ("episode,x\n0,1\n,2\n1,3\n", "no episode in 1 of 3 rows; expected a number or a name in each row"),
        ("episode,x\na,1\n,2\nb,3\n", "no episode in 1 of 3 rows; expected a number or a name in each row"),
        ("episode,step,x\n0,0,1\n0,1,2\n0,0,3\n0,1,4\n", "episode 0 has step 0 twice, and its rows are not in order"),
    ],
)
def test_episodes_that_cannot_be_told_apart_are_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "expert.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        load([path])


@pytest.mark.parametrize(
    ("write", "name"), [(to_csv, "expert.csv"), (to_json_lines, "expert.jsonl"), (to_parquet, "expert.parquet")]
)
def test_an_episode_without_goal_flags_is_one_that_nobody_marked(
    write: Callable[[Any, Path], None], name: str, tmp_path: Path
) -> None:
    flags = ([False, False, True], [False, False, False], [None, None, None])
    states = [
        {"episode": episode, "x": float(step), "y": 1.0, "goal": flag}
        for episode, own in enumerate(flags)
        for step, flag in enumerate(own)
    ]
    write(states, tmp_path / name)
    assert [each.goals for each in load([tmp_path / name])] == [(2,), (), None]


@pytest.mark.parametrize(
    ("write", "name"), [(to_csv, "expert.csv"), (to_json_lines, "expert.jsonl"), (to_parquet, "expert.parquet")]
)
def test_blank_cells_beside_goals_that_alone_are_marked_mean_no_goal(
    write: Callable[[Any, Path], None], name: str, tmp_path: Path
) -> None:
    flags = ([None, None, 1], [None, None, None], [None, 1, None])
    states = [
        {"episode": episode, "x": float(step), "y": 1.0, "goal": flag}
        for episode, own in enumerate(flags)
        for step, flag in enumerate(own)
    ]
    write(states, tmp_path / name)
    assert [each.goals for each in load([tmp_path / name])] == [(2,), (), (1,)]


def test_numbers_are_numbers_whatever_the_first_cell_is(tmp_path: Path) -> None:
    commas = tmp_path / "expert.csv"
    commas.write_text("episode;x;y\n0;0;1,5E-05\n0;0,5;2\n")
    assert [each.trajectory.states.tolist() for each in load([commas])] == [[[0.0, 1.5e-05], [0.5, 2.0]]]
    lines = tmp_path / "expert.jsonl"
    lines.write_text('{"episode": 0, "x": 1, "reward": 0}\n{"episode": 0, "x": 2, "reward": null}\n')
    (found,) = load([lines])
    assert found.trajectory.rewards is not None
    assert found.trajectory.rewards.tolist() == [0.0]


@pytest.mark.parametrize(
    ("columns", "told"), [("success", True), ("Is_Success", True), ("success,label", False), ("reward", False)]
)
def test_a_column_of_outcomes_is_named_where_roles_are_missing(columns: str, told: bool, tmp_path: Path) -> None:
    names = columns.split(",")
    file = tmp_path / "expert.csv"
    file.write_text("\n".join([f"episode,height,{columns}", *(f"{n // 2},{n}" + ",1" * len(names) for n in range(4))]))
    (note,) = open_source(file).header.notes
    assert (f"if {names[0]!r} says them (1 expert, 0 negative), rename it to 'label'" in note) is told
