"""Executors side by side: makespan of equal jobs over the ideal one, and the same fit here and on a Ray cluster.

    python benchmarks/cluster.py jobs [--jobs 100] [--seconds 2]
    python benchmarks/cluster.py fit [--demos datasets/babyai-go-to-obj] [--repeats 3]

`jobs` runs jobs of some CPU seconds on two workers: of this process, of `grace-irl work`, and of a Ray cluster of one
head without cores and two nodes with one core each, all on this machine. The ideal makespan is the CPU time over two.
It needs two idle cores. `fit` runs the same fit with two sandbox workers here and on the cluster, in
turn, and compares rewards.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from grace_irl.testing.executors import TASKS  # noqa: E402
from grace_irl.work import Executor, Job, Workplace  # noqa: E402
from grace_irl.work.workplace import Kind  # noqa: E402
from tests.work.cluster import started  # noqa: E402

CORES = 2
KINDS: tuple[Kind, ...] = ("local", "folder", "ray")


@contextmanager
def worker(folder: Path) -> Iterator[None]:
    """The command `grace-irl work` with two jobs at a time."""
    folder.mkdir()
    command = [sys.executable, str(ROOT / "cli.py"), "work", str(folder), "--workers", str(CORES), "--wait", "3600"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def makespan(executor: Executor, jobs: int, seconds: float) -> tuple[float, float]:
    """Wall seconds from the first submission to the last result, and the CPU seconds that the jobs used."""
    executor.submit(Job(f"{TASKS}:burn", {"seconds": 0.0})).result()  # the first job of a cluster starts its workers
    begun = time.monotonic()
    futures = [executor.submit(Job(f"{TASKS}:burn", {"seconds": seconds})) for _ in range(jobs)]
    used = sum(future.result() for future in futures)
    return time.monotonic() - begun, used


def run_jobs(count: int, seconds: float) -> None:
    """Print the makespan of each executor."""
    print("| executor | makespan, s | over the ideal | overhead of a job, ms |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        for kind in KINDS:
            address, folder = "auto", Path(name) / "jobs"
            if kind == "folder":
                stack.enter_context(worker(folder))
            if kind == "ray":
                address = stack.enter_context(started()).address
            shared = folder if kind == "folder" else None
            with Workplace(kind, shared, address).executor(CORES) as executor:
                wall, used = makespan(executor, count, seconds)
            ideal = used / CORES
            print(
                f"| {kind} | {wall:.1f} | {wall / ideal:.3f} | {1000 * (wall - ideal) * CORES / count:.0f} |",
                flush=True,
            )


def run_fit(demos: str, repeats: int) -> None:
    """Print the seconds of a fit here and on the cluster, and whether the rewards are equal."""
    import grace_irl

    def fitted(out: Path, **more: Any) -> tuple[float, str]:
        begun = time.monotonic()
        run = grace_irl.fit(demos, out=out, lag=4, workers=CORES, **more)
        return time.monotonic() - begun, run.reward_path.read_text()

    print("| repeat | here, s | cluster, s | ratio | same reward |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name, started() as cluster:
        for repeat in range(repeats):
            here, ours = fitted(Path(name) / f"here-{repeat}")
            there, theirs = fitted(Path(name) / f"there-{repeat}", executor="ray", ray_address=cluster.address)
            same = "yes" if ours == theirs else "NO"
            print(f"| {repeat} | {here:.2f} | {there:.2f} | {there / here:.2f} | {same} |", flush=True)


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("jobs", "fit"))
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds of a job")
    parser.add_argument("--demos", default=str(ROOT / "datasets" / "babyai-go-to-obj"))
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    if asked.what == "jobs":
        run_jobs(asked.jobs, asked.seconds)
    else:
        run_fit(asked.demos, asked.repeats)


if __name__ == "__main__":
    main()
