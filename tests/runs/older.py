"""Databases of runs as older versions left them."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from grace_irl.runs.schema import _BEFORE_3, SCHEMA

KEPT = {
    "requests": "idx, generation, operator, parents, seed, context, sample, samples",
    "proposals": "idx, attempt, source, failure, reasoning, prompt, raw, sketch, tokens_in, tokens_out, seconds, prior",
    "results": "idx, program, failure, seconds, drafts ->> '$[0]'",
}
"""What was kept of these tables before format 3."""


def made_older(path: Path, version: int = 2) -> None:
    """Rewrites a run's database in an older format.

    Args:
        path: of the database.
        version: 2, or 1, which knew no thresholds.
    """
    schema = SCHEMA
    for now, before in _BEFORE_3:
        assert now in schema
        schema = schema.replace(now, before)
    with closing(sqlite3.connect(path)) as database:
        for table, columns in KEPT.items():
            rows = database.execute(f"SELECT {columns} FROM {table}").fetchall()
            database.execute(f"DROP TABLE {table}")
            made = re.search(rf"CREATE TABLE {table} .*?\n\);", schema, re.DOTALL)
            assert made is not None
            database.execute(made[0])
            database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * (columns.count(',') + 1))})", rows)
        for name, text in database.execute("SELECT id, evaluation FROM programs").fetchall():
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
