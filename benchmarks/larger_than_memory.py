"""A fit, or a score, of a set that is larger than its memory limit: peak memory over the limit, and the times.

A set of vectors is written, ten times as large as `--max-memory`, and `fit` runs on it in a fresh process for a fixed
time. The peak is of proportional memory (PSS of the process and all its children, so that shared pages count once), of
the whole process with Python and its libraries. Beside it: the result on the trajectories outside the sample, and the
times of reading the set and of testing the result on the rest. Exits with 1 where the peak is over the limit plus 20 %,
the goal.

    python benchmarks/larger_than_memory.py [--limit 2G] [--times 10] [--width 64] [--seconds 120] [--wide] [--score]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from million_states_load import MIB, Peak, memory, write

GOAL = 1.2  # peak memory over the limit
LENGTH = 1000  # states of a trajectory
ACTIONS = 24  # bytes of an action


def write_wide(path: Path, states: int, width: int, length: int) -> None:
    """A column for each number, as many expert as negative episodes of `length` states."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    for number in range(states // length):
        expert = number % 2 == 0
        values = rng.normal(0.5 * expert, 1.0, (length, width))
        columns = {"episode": np.full(length, number), "label": np.full(length, int(expert))}
        table = pa.table(columns | {f"s{place}": values[:, place] for place in range(width)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def measure(path: Path, limit: str, seconds: float) -> dict[str, Any]:
    """Peak memory of a fit in this process, and its result."""
    import grace_irl

    notes: list[tuple[float, str]] = []
    begun = time.monotonic()
    with Peak() as peak, tempfile.TemporaryDirectory() as folder:
        run = grace_irl.fit(
            [path],
            out=Path(folder) / "run",
            max_seconds=seconds,
            max_memory=limit,
            note=lambda line: notes.append((time.monotonic() - begun, line)),
        )
    ended = time.monotonic() - begun
    tested = next(when for when, line in notes if line.startswith("testing"))
    return {
        "peak": max(peak.largest, memory()),
        "programs": run.programs,
        "read": notes[0][0],
        "test": ended - tested,
        "sample": next(line for _, line in notes if line.startswith("a sample")),
        "held_out": run.best.metrics["held_out_accuracy"],
        "rest": run.rest.line if run.rest else "",
    }


def measure_score(path: Path, limit: str) -> dict[str, Any]:
    """Peak memory of the score of a reward file in this process, and the score."""
    import grace_irl

    begun = time.monotonic()
    with Peak() as peak, tempfile.TemporaryDirectory() as folder:
        reward = Path(folder) / "reward.py"
        reward.write_text("class Reward:\n    def reward_fn(self, state):\n        return float(state.sum())\n")
        found = grace_irl.score(reward, [path], label="all", max_memory=limit)
    return {
        "peak": max(peak.largest, memory()),
        "seconds": time.monotonic() - begun,
        "trajectories": found.trajectories,
        "auc": found.metrics.auc,
    }


def main() -> int:
    """Measures and prints."""
    from grace_irl.demos.memory import size_of, spelled

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", default="2G", help="--max-memory of the fit")
    parser.add_argument("--times", type=float, default=10.0, help="size of the set over the limit")
    parser.add_argument("--width", type=int, default=64, help="numbers in a state")
    parser.add_argument("--seconds", type=float, default=120.0, help="of search")
    parser.add_argument("--wide", action="store_true", help="a table with a column for each number")
    parser.add_argument("--score", action="store_true", help="the sum of all numbers, scored on the set; no fit")
    parser.add_argument("--file", type=Path, help="a file to keep the set in, or to take it from")
    parser.add_argument("--part", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        about = (given.file, given.limit)
        print(json.dumps(measure_score(*about) if given.score else measure(*about, given.seconds)))
        return 0
    limit = size_of(given.limit, "--limit")
    states = int(given.times * limit / (8 * given.width + ACTIONS) / LENGTH) * LENGTH
    with tempfile.TemporaryDirectory() as folder:
        path = given.file or Path(folder) / "states.parquet"
        if not path.exists():
            begun = time.monotonic()
            (write_wide if given.wide else write)(path, states, given.width, LENGTH)
            print(f"written in {time.monotonic() - begun:.0f} s", flush=True)
        size = path.stat().st_size
        command = [sys.executable, __file__, "--part", "--file", str(path), "--limit", given.limit]
        command += ["--seconds", str(given.seconds), *(["--score"] if given.score else [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    ratio = found["peak"] / limit
    print(f"{states:,} states of {given.width} numbers, a file of {spelled(size)}; --max-memory {given.limit}")
    if given.score:
        print(f"scored {found['trajectories']:,} trajectories in {found['seconds']:.0f} s: AUC {found['auc']:.4f}")
    else:
        print(found["sample"])
        print(
            f"read in {found['read']:.0f} s; {found['programs']} programs; tested on the rest in {found['test']:.0f} s"
        )
        print(f"held out: accuracy {found['held_out']:.4f}; {found['rest']}")
    print(f"peak memory {found['peak'] / MIB:,.0f} MiB: {ratio:.2f} of the limit (goal: at most {GOAL:.2f})")
    return int(ratio > GOAL)


if __name__ == "__main__":
    sys.exit(main())
