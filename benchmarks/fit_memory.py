"""Memory of a whole fit: its peak at two sizes of a set, and what one more byte of states costs.

A set of vectors is written, and `fit` runs on it with the built-in synthesiser for a fixed time, in a fresh process for
each size. The peak is of proportional memory (PSS of the process and all its children, so that shared pages count once)
above what the process took before loading. A part of it is the same for all sets: the synthesiser's table of terms has
a sample of at most 20,000 states of each class. The rest grows with the set, and its slope is the difference of the two
peaks over the difference of the two sizes.

    python benchmarks/fit_memory.py [--states 100000] [--width 32] [--seconds 60]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from million_states_load import MIB, Peak, memory, write

LENGTH = 1000  # states of a trajectory


def measure(path: Path, seconds: float) -> dict[str, Any]:
    """Peak memory of a fit in this process."""
    import grace_irl
    import grace_irl.demos.parquet.source
    from grace_irl.demos import load

    before = memory()
    with Peak() as peak, tempfile.TemporaryDirectory() as folder:
        run = grace_irl.fit([path], out=Path(folder) / "run", max_seconds=seconds)
        programs = len(run.candidates)
    size = sum(d.trajectory.states.nbytes + d.trajectory.actions.nbytes for d in load([path]))
    return {"data_mib": size / MIB, "peak_mib": (peak.largest - before) / MIB, "programs": programs}


def fresh(path: Path, seconds: float) -> dict[str, Any]:
    """`measure` in a process of its own."""
    command = [sys.executable, __file__, "--part", str(path), "--seconds", str(seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=100_000, help="of the smaller set; the larger has three times")
    parser.add_argument("--width", type=int, default=32, help="numbers in a state")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each fit")
    parser.add_argument("--part", metavar="FILE", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        print(json.dumps(measure(Path(given.part), given.seconds)))
        return
    found = []
    for states in (given.states, 3 * given.states):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "states.parquet"
            write(path, states, given.width, LENGTH)
            found.append(fresh(path, given.seconds))
        one = found[-1]
        print(
            f"{states:9,} states of {given.width}: data {one['data_mib']:7.1f} MiB, peak {one['peak_mib']:7.1f} MiB "
            f"({one['peak_mib'] / one['data_mib']:.2f} x data), {one['programs']} programs",
            flush=True,
        )
    small, large = found
    slope = (large["peak_mib"] - small["peak_mib"]) / (large["data_mib"] - small["data_mib"])
    constant = small["peak_mib"] - slope * small["data_mib"]
    print(f"one more byte of data costs {slope:.2f} bytes; {constant:.0f} MiB do not grow")


if __name__ == "__main__":
    main()
