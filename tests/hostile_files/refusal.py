"""A command that reads a hostile file, in this process or in one of its own with little memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from grace_irl.cli import main

GIGABYTE = 1 << 30

CHILD = """
import json, sys, time
from grace_irl.cli import main
started = time.monotonic()
code = main(sys.argv[2:])
# Not ru_maxrss, which a process has from the one that started it.
(peak,) = (int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
open(sys.argv[1], "w").write(json.dumps([code, peak, time.monotonic() - started]))
"""


@dataclass(frozen=True)
class Ended:
    """A command that ran in a process of its own.

    Attributes:
        code: its exit code.
        peak: bytes of memory, at most.
        seconds: that it took.
        said: on standard error.
    """

    code: int
    peak: int
    seconds: float
    said: str


def refused(capsys: pytest.CaptureFixture[str], arguments: list[str], *words: str) -> str:
    """The one line that a command refuses its input with; it holds the words."""
    capsys.readouterr()
    code = main(arguments)
    out, err = capsys.readouterr()
    assert code == 2, (code, out, err)
    assert err.count("\n") == 1, err
    for word in words:
        assert word in err, err
    return err


def run(
    folder: Path,
    arguments: list[str],
    *,
    limit: int = 8 * GIGABYTE,
    max_memory: str | None = None,
    timeout: float = 120.0,
) -> Ended:
    """Runs a command in a process that gets no more than `limit` bytes of address space.

    Args:
        folder: for what the process tells.
        arguments: of the command.
        limit: in bytes.
        max_memory: of demonstrations and policies, by the variable; None: the default.
        timeout: in seconds.

    Returns:
        How it ended.
    """
    told = folder / "told.json"
    told.unlink(missing_ok=True)
    prelude = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))\n"
    done = subprocess.run(
        [sys.executable, "-c", prelude + CHILD, str(told), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            **({} if max_memory is None else {"GRACE_IRL_MAX_MEMORY": max_memory}),
        },
    )
    assert told.is_file(), (done.returncode, done.stderr[-2000:])
    code, peak, seconds = json.loads(told.read_text())
    return Ended(code, peak, seconds, done.stderr)
