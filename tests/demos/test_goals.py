"""Rule "goal": which states it marks, and the file that a person edits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from grace_irl.demos.goals import goal_rows, load_goals, save_goals
from grace_irl.demos.labels import label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.errors import InputError


def one(value: float, states: int, role: Role = "expert", marked: tuple[int, ...] | None = None) -> Demonstration:
    trajectory = Trajectory(np.full((states, 2), value), source=f"set.parquet: episode {value:.0f}")
    return Demonstration(trajectory, role, "open the door", goals=marked)


def whole(*items: Demonstration) -> Demonstrations:
    return Demonstrations(Metadata("vector"), items)


SET = whole(one(0, 4), one(1, 3), one(2, 5, "negative"))
FIRST, SECOND, NEGATIVE = (item.trajectory.digest for item in SET)


def marks(demonstrations: Demonstrations, goals: dict[str, tuple[int, ...]] | None) -> list[list[int]]:
    return [np.flatnonzero(item.positive).tolist() for item in label(demonstrations, "goal", goals=goals)]


@pytest.mark.parametrize(
    ("goals", "expected"),
    [
        ({FIRST: (1, 4), SECOND: (3,)}, [[0, 3], [2], []]),
        ({FIRST: (2,), SECOND: ()}, [[1], [], []]),  # cleaned away: all its states are negative
        ({FIRST: (2, 2), SECOND: (1,)}, [[1], [0], []]),
        ({FIRST: (2,), SECOND: (1,), NEGATIVE: (1,)}, [[1], [0], []]),  # negatives have no goal state
        ({FIRST: (2,), SECOND: (1,), "0" * 16: (99,)}, [[1], [0], []]),  # of another set
    ],
)
def test_what_is_positive(goals: dict[str, tuple[int, ...]], expected: list[list[int]]) -> None:
    assert marks(SET, goals) == expected


def test_the_datas_own_marks_count_where_the_file_is_silent() -> None:
    marked = whole(one(0, 4, marked=(0, 3)), one(1, 3, marked=(2,)), one(2, 5, "negative"))
    assert marks(marked, None) == [[0, 3], [2], []]
    assert marks(marked, {SECOND: (1,)}) == [[0, 3], [0], []]


@pytest.mark.parametrize("index", [0, -1, 5])
def test_out_of_range(index: int) -> None:
    with pytest.raises(InputError, match=rf"episode 0 .*goal state {index} of 4 states; expected numbers from 1 to 4"):
        label(SET, "goal", goals={FIRST: (2, index), SECOND: ()})


def test_marks_of_the_data_out_of_range() -> None:
    with pytest.raises(InputError, match="goal state 5 of 4 states"):
        label(whole(one(0, 4, marked=(4,))), "goal")


def test_an_expert_that_nobody_marked() -> None:
    with pytest.raises(InputError, match=rf"episode 1 \({SECOND}\): no goal states are marked"):
        label(SET, "goal", goals={FIRST: (2,)})


def test_all_experts_cleaned_away() -> None:
    with pytest.raises(InputError, match=r"^none of 2 expert trajectories has a goal state; [^\n]*$"):
        label(SET, "goal", goals={FIRST: (), SECOND: ()})


def test_goals_for_another_rule() -> None:
    with pytest.raises(InputError, match="expected --label goal"):
        label(SET, "last", goals={FIRST: (1,)})


def test_the_file_round_trips_and_says_which_is_which(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "goals.toml"
    goals = {FIRST: (3, 4), SECOND: ()}
    save_goals(path, goals, SET)
    assert load_goals(path) == goals
    text = path.read_text()
    assert f"# set.parquet: episode 0; task open the door; 4 states\n{FIRST} = [3, 4]\n" in text
    assert f"{SECOND} = []\n" in text
    assert [file.name for file in path.parent.iterdir()] == ["goals.toml"]


def test_texts_of_sources_and_tasks_stay_in_their_comment(tmp_path: Path) -> None:
    odd = replace(SET[0], task="a\nb = [1]\x00\u2028", trajectory=replace(SET[0].trajectory, source="x\r\n[y]"))
    save_goals(tmp_path / "goals.toml", {FIRST: (1,)}, [odd])
    assert load_goals(tmp_path / "goals.toml") == {FIRST: (1,)}


def test_equal_trajectories_share_an_entry(tmp_path: Path) -> None:
    twin = replace(SET[0], trajectory=replace(SET[0].trajectory, source="other.parquet: episode 7"))
    save_goals(tmp_path / "goals.toml", {FIRST: (1,)}, [SET[0], twin])
    assert load_goals(tmp_path / "goals.toml") == {FIRST: (1,)}
    assert "# other.parquet: episode 7;" in (tmp_path / "goals.toml").read_text()


def test_a_failure_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "goals.toml"
    save_goals(path, {FIRST: (1,)}, SET)
    before = path.read_bytes()
    with pytest.raises(InputError, match="goal state 9"):
        save_goals(path, {FIRST: (9,)}, SET)
    assert path.read_bytes() == before
    with pytest.raises(InputError, match=r"cannot be written"):
        save_goals(path / "below a file.toml", {FIRST: (1,)}, SET)
    assert [file.name for file in tmp_path.iterdir()] == ["goals.toml"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (f"{FIRST} = [1,", ("goals.toml", "not TOML", "one line for each trajectory")),
        (f"{FIRST} = 3", ("3", "expected a list of state numbers")),
        (f"{FIRST} = [0]", ("[0]", "from 1 on")),
        (f"{FIRST} = [1.5]", ("[1.5]", "from 1 on")),
        (f"{FIRST} = [true]", ("[True]", "from 1 on")),
        (f"{FIRST} = ['last']", ("['last']", "from 1 on")),
        ("[expert]\n0 = [1]", ("'expert'", "16 digits")),
        ("12 = [1]", ("'12'", "16 digits")),
        (f"{FIRST} = [1]\n{FIRST} = [2]", ("goals.toml", "overwrite", "one line for each trajectory")),
    ],
)
def test_files_that_cannot_be_used(content: str, words: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "goals.toml"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        load_goals(path)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_no_file_and_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing.toml: cannot be read \(No such file"):
        load_goals(tmp_path / "nothing.toml")
    (tmp_path / "goals.toml").write_bytes(b"\xff")
    with pytest.raises(InputError, match="UTF-8"):
        load_goals(tmp_path / "goals.toml")


def test_rows() -> None:
    rows = goal_rows(SET, {FIRST: (4,)})
    assert [(row.digest, row.task, row.states, row.goals) for row in rows] == [
        (FIRST, "open the door", 4, (4,)),
        (SECOND, "open the door", 3, None),
    ]
