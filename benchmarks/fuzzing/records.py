"""Files of runs and comparisons, nearly right: recordings, databases, rounds, results, curves, maps, reward files."""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing import mutations as m
from fuzzing import settings
from fuzzing.draw import Draw, change
from fuzzing.screens import written

SOURCE = '''"""A reward.

method: grace

What it looks at.
"""

import math

LIMIT = 0.37


class Reward:
    """Above a limit."""

    def __init__(self, extra_info=""):
        self.limit = LIMIT

    def reward_fn(self, state):
        return math.tanh(float(state[1]) - self.limit)


# The discriminator that was fitted: D(s) = sigmoid(SCALE * reward + OFFSET - log pi).
SCALE = 2.5
OFFSET = -0.125
# A reward above it counts as an expert's: the threshold of the best balanced accuracy on the training data.
THRESHOLD = 0.25


def discriminator_logit(reward, log_pi=0.0):
    """Logit of D."""
    return SCALE * reward + OFFSET - log_pi
'''
_PYTHON = re.compile(r"\"\"\"|[\w.]+|[^\w\s]|\n *")
_LITERALS = (
    '"\\N{nothing}"',
    'r"""',
    "b'a'",
    "f'{1}'",
    '"\\x0"',
    '"\\ud800"',
    "'''",
    '"a" "b"',
    '"\\777"',
    '"\\d"',
    "\0",
)
_NUMBERS = r"(?<=SCALE = ).*|(?<=OFFSET = ).*|(?<=THRESHOLD = ).*"
_SCALES = ("1e999", "-1e999", "1e-400", "1.2.3", "9" * 400, "0", "-1", "1e5", "--1", "1e", "2.5e+1", "9" * 5000)


def recording(rng: Draw, folder: Path) -> Path:
    """Answers of a run's proposer, as JSON lines."""
    lines: list[Any] = [json.loads(line) for line in _recording().splitlines()]
    for _ in rng.rounds():
        at = rng.randrange(len(lines)) if lines else 0
        kind = rng.randrange(8)
        if kind == 0:
            rng.changed()
            lines = lines[:at] + lines[at + 1 :]
        elif kind == 1:
            rng.changed()
            lines = [*lines[:at], m.scalar(rng), *lines[at:]]
        elif lines:
            lines[at] = _entry_changed(rng, lines[at])
    data = b"\n".join(written(rng, line) for line in lines) + b"\n"
    path = folder / "recording.jsonl"
    path.write_bytes(m.in_bytes(rng, data) if rng.may(0.08) else data)
    return path


@change
def _entry_changed(rng: Draw, entry: Any) -> Any:
    """With another value under one of its keys, or changed deeper inside."""
    if isinstance(entry, dict) and entry and rng.random() < 0.5:
        return {
            **entry,
            rng.choice(list(entry)): rng.choice((m.scalar(rng), m.scalar(rng), [], {}, [1, "a"], {"a": 1})),
        }
    return m.in_value(rng, entry)


@cache
def _recording() -> str:
    from grace_irl.config import Config
    from grace_irl.propose.goals import GoalAnswer
    from grace_irl.propose.protocol import Proposal
    from grace_irl.runs.recording import WITH_TRAININGS, write_recording
    from grace_irl.runs.store import Store
    from grace_irl.search.protocol import Request, Result

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        with closing(Store(Path(folder) / "run.db", create=True)) as store:
            store._file.write([("INSERT INTO trajectories VALUES (0, 'd', 'expert', 'a', 'train', 2, 1, 'f')", [()])])
            store.add_goals(
                [GoalAnswer("d" * 16, 0, "model", (1, 2), prompt="p"), GoalAnswer("e" * 16, 0, "model", None, "no")]
            )
            for index in range(2):
                request = Request(index, "create", ())
                store.add_request(request, 0)
                store.add_proposals({index: Proposal(SOURCE, prompt="p", raw="r", tokens_in=5, seconds=0.5)})
                store.add_told(Result(request, failure="none"), [], 0, 1.0)
            write_recording(store, Config(), path)
        header, *lines = path.read_text().splitlines()
        about = json.loads(header) | {"format": WITH_TRAININGS, "task": {"env": "0" * 16}}
        return "\n".join([json.dumps(about), *lines, *_training_lines()]) + "\n"


def _training_lines() -> list[str]:
    """A finished training and a failure, as in the recording of a run whose programs are judged by policies."""
    from dataclasses import asdict

    from grace_irl.rl.curve import Point
    from grace_irl.tasks.recorded import RecordedFailure, RecordedTraining

    curve = (Point(64, 2, 9.5, 0.5, None, 9.5, {"forward": 1.0}, 3.0, 0.5, 9.5, {"up": 0.9}),)
    training = RecordedTraining("a" * 16, "full-0", 5, 64, curve)
    failure = RecordedFailure("b" * 16, "timeout", "its training took too long")
    return [json.dumps({"training": asdict(training)}), json.dumps({"failed": asdict(failure)})]


def round_(rng: Draw, folder: Path) -> Path:
    """A round of an expansion."""
    from dataclasses import asdict

    from grace_irl.runs.expand.round import Round

    done = Round(
        1, "rounds/1/run", "p", -0.5, 0.9, 0.8, reward="a.py", policy="p.pt", steps=9, rollouts=3, alike=1, mean=0.5
    )
    about: Any = {**asdict(done), "components": {"forward": 1.5}}
    for _ in rng.rounds():
        about = _entry_changed(rng, about)
    path = folder / "rounds" / "1" / "round.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(written(rng, about))
    return path


def scramble(rng: Draw, folder: Path) -> Path:
    """The map of a scrambled set."""
    kind = rng.choice(("vector", "grid", "ui"))
    about: Any = {
        "seed": 1, "kind": kind, "width": 2, "transpose": True, "flip": [True, False], "order": [1, 0],
        "scale": [1.0, -2.0], "codes": [{"0": 1, "1": 0}, {"2": 3}, {}], "words": {"red": "dax"},
    }  # fmt: skip
    for _ in rng.rounds():
        about = _entry_changed(rng, about)
    path = folder / "map.json"
    path.write_bytes(written(rng, about))
    return path


def reward(rng: Draw, folder: Path) -> Path:
    """A reward file with its calibration."""
    text = SOURCE
    for _ in rng.rounds():
        kind = rng.randrange(5)
        if kind == 0:
            rng.changed()
            text = re.sub(_NUMBERS, rng.choice(_SCALES), text, count=rng.choice((1, 2)))
        elif kind == 1:
            rng.changed()
            text = text.replace('"""A reward.', rng.choice(_LITERALS) + rng.choice(("", '"""')) + "A reward.", 1)
        elif kind == 2:
            rng.changed()
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(_LITERALS) + text[at:]
        else:
            text = m.in_text(rng, text, _PYTHON)
    data = text.encode("utf-8", "surrogatepass")
    path = folder / "reward.py"
    path.write_bytes(m.in_bytes(rng, data) if rng.may(0.15) else data)
    return path


def comparison(rng: Draw, folder: Path) -> Path:
    """The folder of a comparison with two jobs: settings, results and curves."""
    own, fit = settings.comparison(rng) if rng.random() < 0.5 else settings.comparison(Draw(0))
    (folder / "compare.toml").write_bytes(own)
    (folder / "fit.toml").write_bytes(fit)
    for method in ("grace", "ppo-true"):
        job = folder / "jobs" / f"{method}-0"
        job.mkdir(parents=True)
        outcome = {
            "environment": "A-v0", "transfer": False, "episodes": 10, "mean": 1.5, "deviation": 0.5, "success": 0.5,
            "length": 9.5, "components": {"forward": 1.0}, "steps": 100, "seconds": 2.5, "epic": 0.25,
            "favourite": {
                "trained": 50, "paid": [1.0, 0.5], "choosing": 40, "mean": 1.0, "deviation": 0.5, "success": 0.25,
                "length": 9.0, "components": {},
            },
        }  # fmt: skip
        result: Any = {
            "method": method,
            "seed": 0,
            "outcomes": [outcome],
            "notes": ["a"],
            "failure": "",
            "carried": ["A-v0"],
            "data": "0123456789abcdef",
        }
        curve: Any = [
            {
                "steps": steps,
                "episodes": 2,
                "mean": 0.5,
                "deviation": 0.1,
                "success": 0.5,
                "length": 9.0,
                "components": {},
            }
            for steps in (50, 100)
        ]
        if rng.random() < 0.5:
            for _ in rng.rounds():
                if rng.random() < 0.6:
                    result = _entry_changed(rng, result)
                else:
                    curve = _entry_changed(rng, curve)
        (job / "result.json").write_bytes(written(rng, result))
        (job / "curve-A-v0.json").write_bytes(written(rng, curve))
    return folder


@cache
def _database() -> tuple[bytes, tuple[tuple[str, str], ...]]:
    """A database with rows in every table, and every table with each of its columns."""
    from grace_irl.demos.labels import label
    from grace_irl.evaluate.separation import Metrics, Separation
    from grace_irl.programs.program import Definition, Program
    from grace_irl.propose.goals import GoalAnswer
    from grace_irl.propose.protocol import Proposal
    from grace_irl.runs.store import Store
    from grace_irl.search.protocol import Fate, Request, Result

    metrics = Metrics(-0.1, 0.9, 0.8, False, 3, 4)
    tasks: dict[str, tuple[Metrics, Metrics | None]] = {"a": (metrics, None)}
    score = Separation(metrics, metrics, 2.0, -1.0, 0.5, tasks, 0.25).evaluation(0.1)
    functions = (Definition("Reward", "f" * 16, "module", 0, 14, 21),)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        with closing(Store(path, create=True)) as store:
            store.set_problem(label(settings.known(), "all"))
            store.set_meta("best", "p0")
            store.set_meta("label", "all")
            store.add_goals([GoalAnswer("d", 0, "file", (1,))])
            for index in range(2):
                request = Request(index, "mutate", ("a",), 1)
                program = Program(f"p{index}", SOURCE, 7, "mutate", ("a",), 0.0, functions)
                store.add_request(request, index)
                store.add_proposals({index: Proposal(SOURCE, tokens_in=5)})
                store.add_told(Result(request, program, score), [Fate(f"p{index}", "kept", "")], index, 1.0)
                store.put(f"p{index}", {"d": np.arange(3.0)})
            store.add_event("started", "")
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA journal_mode=DELETE")
            tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            columns = [(t, row[1]) for t in tables for row in database.execute(f"PRAGMA table_info({t})")]
        return path.read_bytes(), tuple(columns)


def database(rng: Draw, folder: Path) -> Path:
    """A run's folder whose database has other rows, other tables, or other bytes."""
    data, columns = _database()
    path = folder / "run.db"
    path.write_bytes(data)
    (folder / "config.toml").write_text("seed = 0\n")
    with closing(sqlite3.connect(path, isolation_level=None)) as found:
        found.execute("PRAGMA journal_mode=OFF")
        found.execute("PRAGMA synchronous=OFF")
        for _ in rng.rounds():
            _change_row(rng, found, *rng.choice(columns))
    if rng.random() < 0.1:
        path.write_bytes(m.in_bytes(rng, path.read_bytes()))
    return folder


@change
def _change_row(rng: Draw, found: sqlite3.Connection, table: str, column: str) -> None:
    """Another value, type or text in a row; a row or a table less."""
    kind = rng.randrange(12)
    value: Any = rng.choice(
        (
            None,
            0,
            -1,
            2**62,
            1.5,
            "a",
            b"a",
            "",
            "[" * 9000,
            "null",
            "[]",
            "{}",
            "[1, 2]",
            '["a", 1]',
            float("inf"),
            "\x1b",
        )
    )
    where = f"rowid = (SELECT rowid FROM {table} LIMIT 1)"
    try:
        if kind < 5:
            found.execute(f"UPDATE {table} SET {column} = ?", (value,))
        elif kind < 8:  # JSON in a text
            text = found.execute(f"SELECT {column} FROM {table} LIMIT 1").fetchone()[0]
            changed = written(rng, _entry_changed(rng, json.loads(text))).decode("utf-8", "replace")
            found.execute(f"UPDATE {table} SET {column} = ?", (changed,))
        elif kind == 8:
            found.execute(f"DELETE FROM {table} WHERE {where}" if rng.random() < 0.5 else f"DELETE FROM {table}")
        elif kind == 9:
            found.execute(f"DROP TABLE {table}")
        elif kind == 10:
            found.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
        else:
            found.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value,))
    except (sqlite3.Error, ValueError, TypeError, RecursionError, OverflowError):  # what this column cannot be
        return
