"""Databases of runs as older versions left them."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from grace_irl.runs.schema import OLDER, SCHEMA

PROPOSALS = "source, failure, reasoning, prompt, raw, sketch, tokens_in, tokens_out, seconds, prior"
KEPT = {
    4: {"programs": "id, idx, source, size, operator, parents, prior, evaluation, takes_action"},
    3: {
        "proposals": f"idx, attempt, step, {PROPOSALS}",
        "programs": "id, idx, source, size, operator, parents, prior, evaluation",
    },
    2: {
        "requests": "idx, generation, operator, parents, seed, context, sample, samples",
        "proposals": f"idx, attempt, {PROPOSALS}",
        "results": "idx, program, failure, seconds, drafts ->> '$[0]'",
    },
}
"""What a format kept of the tables that changed after it."""


def made_older(path: Path, version: int = 3) -> None:
    """Rewrites a run's database in an older format.

    Args:
        path: of the database.
        version: 4, which counted syntax nodes; 3, which knew no `exhausted`; 2, no further calls and several parents;
            1, no thresholds either.
    """
    schema = SCHEMA
    for since, changes in OLDER.items():
        for now, before in changes if version < since else ():
            assert now in schema
            schema = schema.replace(now, before)
    kept = KEPT[4] | (KEPT[3] if version < 4 else {}) | (KEPT[2] if version < 3 else {})
    with closing(sqlite3.connect(path)) as database:
        for table, columns in kept.items():
            rows = database.execute(f"SELECT {columns} FROM {table}").fetchall()
            database.execute(f"DROP TABLE {table}")
            made = re.search(rf"CREATE TABLE {table} .*?\n\)[^;\n]*;", schema, re.DOTALL)
            assert made is not None
            database.execute(made[0])
            database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * (columns.count(',') + 1))})", rows)
        for name, text in database.execute("SELECT id, evaluation FROM programs").fetchall() if version < 3 else ():
            database.execute(
                "UPDATE programs SET evaluation = ? WHERE id = ?", (json.dumps(_older(text, version)), name)
            )
        database.execute("UPDATE meta SET value = ? WHERE key = 'format'", (str(version),))
        database.commit()


def _older(text: str, version: int) -> dict[str, Any]:
    """An evaluation of before format 3."""
    now = json.loads(text)
    found = now["evidence"].get("separation") or dict.fromkeys(("train", "held_out", "monotonicity", "threshold"))
    old = {"scale": 1.0, "offset": 0.0, "tasks": {}} | found
    if version == 1:
        old.pop("threshold", None)
    fitness = now["score"] if now["bound"] is None else now["bound"]
    kept = {name: now[name] for name in ("status", "message", "traceback", "seconds")}
    return kept | old | {"fitness": fitness, "complete": now["bound"] is None}
