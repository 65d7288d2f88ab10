"""The `--help` of scripts, each in a fork of one process that has imported what most of them need.

python tests/frame/helps.py SCRIPT …     # JSON: exit status and output by script
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import sys
import tempfile
import traceback
from pathlib import Path

SHARED = (
    "torch",
    "stable_baselines3",
    "gymnasium",
    "minigrid",
    "mujoco",
    "scipy.stats",
    "pandas",
    "grace_irl.cli",
    "grace_irl.compare.comparison",
    "grace_irl.rl.learning",
    "grace_irl.runs.expand.expansion",
)
"""Imported once: together they take seconds, which every script would take for itself."""


def helped(script: str) -> tuple[int, str]:
    """Exit status and output of `python SCRIPT --help`."""
    with tempfile.TemporaryFile() as output:
        sys.stdout.flush()
        if (child := os.fork()) == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            os._exit(_run(script))
        _, status = os.waitpid(child, 0)
        output.seek(0)
        return os.waitstatus_to_exitcode(status), output.read().decode(errors="replace")


def _run(script: str) -> int:
    sys.argv = [script, "--help"]
    sys.path[0] = str(Path(script).parent)
    code: object = 1
    try:
        runpy.run_path(script, run_name="__main__")
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else 1


def main() -> None:
    """Prints what each script says."""
    for name in SHARED:
        with contextlib.suppress(ModuleNotFoundError):  # a script that needs it says so itself
            importlib.import_module(name)
    json.dump({script: helped(script) for script in sys.argv[1:]}, sys.stdout)


if __name__ == "__main__":
    main()
