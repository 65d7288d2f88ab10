"""The two commands of the README in a fresh clone: seconds with all the set-up, and what `make fit` recovers.

Clones the last commit into a temporary folder, takes away whatever this shell has activated, gives it an empty
home folder, and runs `make fit` there; with --test `make test`, too.

    python benchmarks/fresh_clone.py [--test] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOAL_S = 180.0
SEARCH_GOAL_S = 20.0


def outside() -> dict[str, str]:
    """This environment without the virtual environment that may be active in it."""
    environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    folders = environment.get("PATH", "").split(os.pathsep)
    environment["PATH"] = os.pathsep.join(each for each in folders if each != str(Path(sys.prefix) / "bin"))
    return environment


def timed(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[float, list[str]]:
    """Wall seconds, and the lines on stdout; what goes wrong is shown and ends the benchmark."""
    started = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\n{done.stderr}\n{' '.join(command)}: exit code {done.returncode}")
    return time.perf_counter() - started, done.stdout.strip().splitlines()


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--test", action="store_true", help="run `make test`, too (minutes)")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home, clone = Path(folder) / "home", Path(folder) / "clone"
        home.mkdir()
        environment = outside() | {"HOME": str(home)}
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        fit_s, lines = timed(["make", "fit", "ARGS=--json"], clone, environment)
        fitted = json.loads(lines[-1])
        again_s, _ = timed(["make", "fit", "ARGS=--json"], clone, environment)
        result = {
            "fit_s": fit_s,
            "again_s": again_s,
            "search_s": fitted["seconds"],
            "programs": fitted["programs"],
            "train_accuracy": fitted["train"]["accuracy"],
            "held_out_accuracy": fitted["held_out"]["accuracy"],
        }
        if given.test:
            result["test_s"], lines = timed(["make", "test"], clone, environment)
            result["tests"] = lines[-1].strip("= ")
    if given.json:
        print(json.dumps(result))
        return
    print(f"make fit, with its set-up    {result['fit_s']:7.1f} s (goal: under {GOAL_S:.0f})")
    print(f"make fit, again              {result['again_s']:7.1f} s")
    print(f"the search itself            {result['search_s']:7.1f} s (goal: under {SEARCH_GOAL_S:.0f})")
    print(f"accuracy, train              {result['train_accuracy']:9.3f}")
    print(f"accuracy, held out           {result['held_out_accuracy']:9.3f} (goal: 1)")
    if given.test:
        print(f"make test, with its set-up   {result['test_s']:7.1f} s: {result['tests']}")


if __name__ == "__main__":
    main()
