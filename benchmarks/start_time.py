"""CPU time of `grace-irl --help` beside that of importing Typer and Rich.

    python benchmarks/start_time.py               # exits with 1 if help takes more than 3 times the CPU time
    python benchmarks/start_time.py --repeats 20

Each row is a process of its own. The rows take turns, so that other work on the machine meets all of them, and the
least CPU time (user and system) of each counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST = 3.0
ROWS = {
    "import typer, rich": ("-c", "import typer, rich"),
    "grace-irl --help": ("-m", "grace_irl", "--help"),
    "grace-irl fit --help": ("-m", "grace_irl", "fit", "--help"),
    "grace-irl compare --help": ("-m", "grace_irl", "compare", "--help"),
    "import grace_irl": ("-c", "import grace_irl"),
}


def cpu_seconds(arguments: tuple[str, ...]) -> float:
    """User and system time of one process."""
    process = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed with {process.returncode}")
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Print the table; 1 if help is too slow."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=7, help="processes per row")
    repeats = max(1, parser.parse_args().repeats)
    seconds: dict[str, list[float]] = {name: [] for name in ROWS}
    for _ in range(repeats + 1):
        for name, arguments in ROWS.items():
            seconds[name].append(cpu_seconds(arguments))
    least = {name: min(values[1:]) for name, values in seconds.items()}  # the first round fills caches
    for name, value in least.items():
        print(f"{name:26} {value:6.3f} s {value / least['import typer, rich']:6.2f} times")
    ratio = least["grace-irl --help"] / least["import typer, rich"]
    print(f"required: grace-irl --help at most {MOST} times: {'met' if ratio <= MOST else 'missed'}")
    return int(ratio > MOST)


if __name__ == "__main__":
    sys.exit(main())
