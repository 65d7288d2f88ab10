"""Screens from every source have one spelling, so that every program can parse them."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grace_irl
from grace_irl.demos import load
from grace_irl.demos.foreign.columns import Columns
from grace_irl.demos.given import in_memory, trajectories_of
from grace_irl.demos.spelling import Spelling
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.states import kind_named
from grace_irl.states.texts import text
from grace_irl.states.ui import markup

DECLARED = "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>\n"
CANONICAL = [f'<hierarchy rotation="0"><node text="{word}"/></hierarchy>' for word in ("größer", "one", "one", "two")]
DUMPS = [DECLARED + each.replace("/>", " />\n") for each in CANONICAL]
ROWS = [{"episode": 0, "state": dump} for dump in DUMPS]


def as_csv(folder: Path) -> Path:
    path = folder / "expert.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(ROWS[0]))
        writer.writeheader()
        writer.writerows(ROWS)
    return path


def as_json_lines(folder: Path) -> Path:
    path = folder / "expert.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def as_parquet(folder: Path) -> Path:
    path = folder / "expert.parquet"
    pq.write_table(pa.table({"episode": [0] * 4, "observation": DUMPS}), path)
    return path


@pytest.mark.parametrize("write", [as_csv, as_json_lines, as_parquet])
def test_a_table_of_dumps(write: Callable[[Path], Path], tmp_path: Path) -> None:
    (found,) = load([write(tmp_path)])
    assert [text(state) for state in found.trajectory.states] == CANONICAL


@pytest.mark.parametrize(
    "value",
    [
        [DUMPS],
        [[dump.encode() for dump in DUMPS]],
        [np.array(DUMPS)],
        [Trajectory(np.array([dump.encode() for dump in DUMPS]))],
        ROWS,
    ],
    ids=["texts", "bytes", "array", "trajectory", "rows"],
)
def test_python_objects_of_dumps(value: Any) -> None:
    found = in_memory((), value, ())
    assert found is not None
    for trajectory in (found.items[0].trajectory, *trajectories_of(value, "trajectories")):
        assert [text(state) for state in trajectory.states] == CANONICAL


def test_a_set_in_memory_of_dumps_alone_and_beside_others() -> None:
    raw = Trajectory(np.array([dump.encode() for dump in DUMPS]))
    held = Demonstrations(Metadata("ui"), (Demonstration(raw, "expert"),))
    for found in (in_memory(held, (), ()), in_memory(held, (), [raw]), in_memory((), held, ())):
        assert found is not None
        for each in found:
            assert [text(state) for state in each.trajectory.states] == CANONICAL


def test_dumps_that_are_added_to_a_set_from_files(tmp_path: Path) -> None:
    raw = Trajectory(np.array([dump.encode() for dump in DUMPS]))
    read = load([as_parquet(tmp_path)])
    held = replace(read, items=(*read, Demonstration(raw, "negative")))
    for found in (in_memory(held, (), ()), in_memory((), held, ())):
        assert found is not None
        assert len(found) == 2
        for each in found:
            assert [text(state) for state in each.trajectory.states] == CANONICAL


def test_a_reward_file_takes_a_dump_as_it_is(tmp_path: Path) -> None:
    program = tmp_path / "reward.py"
    program.write_text(
        "from lxml import etree\n\n\nclass Reward:\n    def reward_fn(self, state):\n"
        "        return float(etree.fromstring(state).find('node').get('text') == 'two')\n"
    )
    (found,) = grace_irl.load_reward(program).rewards([DUMPS])
    assert found.tolist() == [0, 0, 0, 1]


def test_each_different_text_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = kind_named("ui")
    asked: list[str] = []

    def canonical(kind: object, text: str, where: str) -> str:
        asked.append(text)
        return text.strip()

    monkeypatch.setattr(type(kind), "canonical", canonical)
    spelling = Spelling(kind)
    assert spelling.texts([" a", "b", " a", "b"], "here") == ["a", "b", "a", "b"]
    assert spelling.texts(["b", "a", "a"], "here") == ["b", "a", "a"]
    assert asked == [" a", "b", "a"]  # "b" is known to be canonical


@pytest.mark.parametrize("line", ["UI hierchary dumped to: /dev/tty\n", "\nUI hierarchy dumped to: /sdcard/a.xml\r\n"])
def test_the_line_behind_a_dump_is_ignored(line: str) -> None:
    assert markup.write(markup.parse(DUMPS[0] + line)) == CANONICAL[0]
    with pytest.raises(InputError, match="not well-formed"):
        markup.parse(DUMPS[0] + line + "<a/>")


def test_words_of_actions_in_tables_are_read_as_in_parquet(tmp_path: Path) -> None:
    words = ["open", "", None, "in the last state"]
    rows = [
        {**row, "action_text": word, "step_instruction": f"step {n}"}
        for n, (row, word) in enumerate(zip(ROWS, words, strict=True))
    ]
    path = tmp_path / "expert.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match="episode 0, step 2: no action_text, though other steps have one"):
        load([path])
    rows[2]["action_text"] = "close"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (found,) = load([path])
    assert found.trajectory.actions is None
    assert found.trajectory.action_texts == ("open", "", "close")
    assert found.trajectory.step_instructions == ("step 0", "step 1", "step 2")
    again = in_memory((), [found.trajectory], ())
    assert again is not None
    assert again.items[0].trajectory.action_texts == found.trajectory.action_texts


def test_numbers_called_action_text_are_actions(tmp_path: Path) -> None:
    (tmp_path / "expert.csv").write_text("episode,x,action_text\n0,1,5\n0,2,6\n")
    (found,) = load([tmp_path / "expert.csv"])
    assert found.trajectory.actions is not None
    assert found.trajectory.actions.tolist() == [5]


def test_a_column_of_xml_by_another_name_is_named(tmp_path: Path) -> None:
    path = tmp_path / "expert.jsonl"
    path.write_text("".join(json.dumps({"episode": 0, "xml": dump}) + "\n" for dump in DUMPS))
    with pytest.raises(InputError, match=r"column 'xml' holds XML.*a column of texts 'state'.*--state-columns xml"):
        load([path])
    (found,) = load([path], columns=Columns(("xml",)))
    assert [text(state) for state in found.trajectory.states] == CANONICAL


def test_a_null_state_is_named(tmp_path: Path) -> None:
    path = tmp_path / "expert.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*ROWS, {"episode": 0, "state": None}]))
    with pytest.raises(InputError, match="episode 0, column 'state': null in row 4; expected a value in each row"):
        load([path])


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InputError, match="episode 0: a text that is not UTF-8"):
        in_memory((), [[DUMPS[0].encode("latin-1")]], ())
