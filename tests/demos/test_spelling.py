"""Screens from every source have one spelling, so that every program can parse them."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grace_irl
from grace_irl.demos import load
from grace_irl.demos.given import in_memory, trajectories_of
from grace_irl.demos.spelling import Spelling
from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.states import kind_named
from grace_irl.states.texts import text

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


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InputError, match="episode 0: a text that is not UTF-8"):
        in_memory((), [[DUMPS[0].encode("latin-1")]], ())
