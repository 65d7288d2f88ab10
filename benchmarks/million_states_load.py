"""A million vector states: memory and time to load, label and score one program.

Prints the peak of proportional memory (PSS of this process and all its children, so that shared pages count
once) above what the process took before loading, over the size of the states and actions; and the time of
`load` over what pyarrow itself needs to read the same file into arrays. Each part runs in a fresh process, so
that none inherits the other's memory; times are the best of three. Exits with 1 where the memory misses its goal.

    python benchmarks/million_states_load.py [--states 1000000] [--width 17] [--length 1000]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

MIB = 1 << 20
GOAL = 1.5  # peak memory of load, label and score over the size of the states and actions
REPEATS = 3
PROGRAM = '''
class Reward:
    """The number in the middle of the state, less a price for the second one."""

    def __init__(self, extra_info=None):
        self.middle = None

    def reward_fn(self, state):
        if self.middle is None:
            self.middle = len(state) // 2
        return float(state[self.middle]) - 0.1 * float(state[1]) ** 2
'''


def write(path: Path, states: int, width: int, length: int) -> None:
    """As many expert as negative trajectories of `length` states, with actions of six numbers."""
    from grace_irl.demos.files import open_writer
    from grace_irl.demos.trajectory import Demonstration, Metadata, Trajectory

    rng = np.random.default_rng(0)
    with open_writer(path, Metadata("vector", label="all")) as writer:
        for number in range(states // length):
            role = "negative" if number % 2 else "expert"
            values = rng.normal(0.5 * (role == "expert"), 1.0, (length, width))
            actions = rng.normal(size=(length - 1, 6)).astype(np.float32)
            writer.add(Demonstration(Trajectory(values, actions), role))  # type: ignore[arg-type]


def memory() -> int:
    """Proportional memory of this process and its descendants, bytes.

    A descendant that hides its mappings from this user counts with all its resident memory, shared pages
    included.
    """
    import psutil

    total = 0
    process = psutil.Process()
    for one in [process, *process.children(recursive=True)]:
        try:
            total += one.memory_full_info().pss
        except psutil.AccessDenied:
            total += one.memory_info().rss
        except (psutil.NoSuchProcess, FileNotFoundError):
            continue
    return total


class Peak:
    """The largest `memory()` while the `with` block runs, seen every few milliseconds."""

    def __enter__(self) -> Peak:
        self.largest = memory()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self.largest = max(self.largest, memory())

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()


def measure_score(path: Path) -> dict[str, Any]:
    """Memory of load, label and score; libraries are imported, and the sandbox runs, before the baseline is taken."""
    import grace_irl.demos.parquet.source  # noqa: F401
    from grace_irl.demos import load
    from grace_irl.runs.score import score
    from grace_irl.sandbox import open_sandbox

    program = path.with_suffix(".py")
    program.write_text(PROGRAM)
    with open_sandbox() as sandbox:
        before = memory()
        with Peak() as loading:
            start = time.perf_counter()
            demonstrations = load([path])
            loaded = time.perf_counter() - start
        with Peak() as scoring:
            start = time.perf_counter()
            result = score(program, demonstrations, rule="all", sandbox=sandbox)
            scored = time.perf_counter() - start
    size = sum(d.trajectory.states.nbytes + d.trajectory.actions.nbytes for d in demonstrations)
    return {
        "data_mib": size / MIB,
        "states": sum(len(d.trajectory.states) for d in demonstrations),
        "trajectories": len(demonstrations),
        "peak_loading_over_data": (loading.largest - before) / size,
        "peak_over_data": (max(loading.largest, scoring.largest) - before) / size,
        "load_s": loaded,
        "label_and_score_s": scored,
        "auc": result.metrics.auc,
    }


def measure_load(path: Path) -> dict[str, Any]:
    """Time of `load` alone, in a process that has read the file's pages once."""
    import grace_irl.demos.parquet.source  # noqa: F401
    from grace_irl.demos import load

    path.read_bytes()
    start = time.perf_counter()
    load([path])
    return {"load_s": time.perf_counter() - start}


def measure_pyarrow(path: Path) -> dict[str, Any]:
    """Times of pyarrow alone: the whole table into memory, and batches that are thrown away one by one."""
    import pyarrow.parquet as pq

    path.read_bytes()
    start = time.perf_counter()
    table = pq.read_table(path)
    table_s = time.perf_counter() - start
    rows = table.num_rows
    del table
    start = time.perf_counter()
    assert sum(batch.num_rows for batch in pq.ParquetFile(path).iter_batches()) == rows
    return {"table_s": table_s, "batches_s": time.perf_counter() - start}


PARTS = {"score": measure_score, "load": measure_load, "pyarrow": measure_pyarrow}


def fresh(part: str, path: Path) -> dict[str, Any]:
    """One part in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--part", part, str(path)], stdout=subprocess.PIPE, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def exit_code(result: dict[str, Any]) -> int:
    """0 if the memory goal is reached, 1 if it is missed."""
    return 0 if result["peak_over_data"] <= GOAL else 1


def main() -> int:
    """Measures and prints; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=17, help="numbers in a state (HalfCheetah has 17)")
    parser.add_argument("--length", type=int, default=1000, help="states of a trajectory")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--part", nargs=2, metavar=("PART", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        print(json.dumps(PARTS[given.part[0]](Path(given.part[1]))))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.parquet"
        write(path, given.states, given.width, given.length)
        file_mib = path.stat().st_size / MIB
        result = fresh("score", path)
        load_s = min(fresh("load", path)["load_s"] for _ in range(REPEATS))
        theirs = [fresh("pyarrow", path) for _ in range(REPEATS)]
        table_s, batches_s = (min(one[name] for one in theirs) for name in ("table_s", "batches_s"))
    result |= {"load_s": load_s, "read_table_s": table_s, "batches_s": batches_s, "file_mib": file_mib}
    result |= {"load_over_read_table": load_s / table_s, "load_over_batches": load_s / batches_s}
    if given.json:
        print(json.dumps(result))
        return exit_code(result)
    print(
        f"{result['states']:,} states of {given.width} float64 in {result['trajectories']} trajectories, with actions"
    )
    print(f"data                     {result['data_mib']:8.1f} MiB (file {file_mib:.1f} MiB)")
    print(f"peak memory, load        {result['peak_loading_over_data']:8.2f} x data")
    print(f"peak memory, all         {result['peak_over_data']:8.2f} x data (goal: at most {GOAL:g})")
    print(f"load                     {load_s:8.2f} s")
    print(f"pyarrow.read_table       {table_s:8.2f} s; load takes {load_s / table_s:.2f} times that")
    print(f"pyarrow, nothing kept    {batches_s:8.2f} s; load takes {load_s / batches_s:.2f} times that")
    print(f"label and score          {result['label_and_score_s']:8.2f} s (auc {result['auc']:.4f})")
    if exit_code(result):
        print(f"goal missed: {result['peak_over_data']:.2f} x data is more than {GOAL:g}", file=sys.stderr)
    return exit_code(result)


if __name__ == "__main__":
    sys.exit(main())
