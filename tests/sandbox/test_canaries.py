"""Traces of canaries, whenever they end: none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grace_irl.sandbox.kernel import architecture
from grace_irl.sandbox.pool import ZygotePool
from grace_irl.sandbox.tiers import release


def doctor(folder: Path) -> subprocess.Popen[bytes]:
    """`grace-irl doctor`, which runs all canaries, with a folder for temporary files that anyone may use."""
    folder.chmod(0o777)
    command = [sys.executable, "-c", "import sys; from grace_irl.cli import main; sys.exit(main(['doctor']))"]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, env={**os.environ, "TMPDIR": str(folder)}, stdout=quiet, stderr=quiet)


def names(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir() if each.name.startswith("grace-irl")]


def test_a_host_that_is_killed_as_soon_as_anything_appears_leaves_nothing(tmp_path: Path) -> None:
    process = doctor(tmp_path)
    while process.poll() is None and not names(tmp_path):
        time.sleep(0.0005)
    process.kill()
    process.wait(60)
    assert names(tmp_path) == []


def test_a_host_that_is_killed_at_any_moment_leaves_nothing(tmp_path: Path) -> None:
    start = time.monotonic()
    assert doctor(tmp_path).wait(60) == 0
    whole_s = time.monotonic() - start
    for part in (0.3, 0.5, 0.7, 0.8, 0.9):
        process = doctor(tmp_path)
        time.sleep(part * whole_s)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        assert names(tmp_path) == []


@pytest.mark.skipif(architecture() is None, reason="no table of system calls for this machine")
def test_a_canary_that_gets_out_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Path("/etc/passwd").stat()
    with ZygotePool(1) as pool:
        assert "rename a file" in release(pool, ()).escaped
    assert Path("/etc/passwd").stat() == before
