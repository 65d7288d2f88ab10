"""Words about a child that ended: by a limit, by itself, or with no memory left to say anything."""

from __future__ import annotations

import errno
import signal
from collections.abc import Iterator

import numpy as np
import pytest

from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox.ending import Ended
from grace_irl.sandbox.lockdown import CHILD_FAILED, OUT_OF_MEMORY, exit_status
from grace_irl.sandbox.pool import ZygotePool
from grace_irl.sandbox.protocol import Limits, Mode
from tests.sandbox.samples import BOTH

SILENT = """
import xml.etree.ElementTree as ET
class Reward:
    def reward_fn(self, state):
        ET.fromstring("<a>" + "<b/>" * 12_500_000 + "</a>")
        return 0.0
"""
"""A program whose error holds all the memory that there is: none is left to put it into words."""


@pytest.fixture(scope="module")
def pool() -> Iterator[ZygotePool]:
    with ZygotePool(1) as pool:
        yield pool


@BOTH
def test_no_memory_left_for_a_word_is_the_memory_limit(pool: ZygotePool, mode: Mode) -> None:
    handle = pool.put([Trajectory(np.zeros((2, 1)))])
    outcome = pool.run(SILENT, handle, [0], mode=mode, limits=Limits(wall_s=60, cpu_s=60, memory_mb=128))
    pool.drop(handle)
    assert outcome.status == "memory", outcome
    assert "memory" in outcome.message.lower()
    assert "exit code" not in outcome.message


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, None),
        ({"exit_code": OUT_OF_MEMORY}, ("memory", "out of memory at 256 MiB: the memory limit")),
        ({"exit_code": CHILD_FAILED}, ("killed", "left with exit code 99")),
        ({"exit_code": 3}, ("killed", "left with exit code 3")),
        ({"signal": signal.SIGSEGV}, ("killed", "died by signal SIGSEGV")),
        ({"timeout": "memory", "signal": signal.SIGKILL}, ("memory", "killed at 256 MiB: the memory limit")),
        ({"timeout": "wall", "signal": signal.SIGKILL}, ("timeout", "killed after 2.0 s: the time limit")),
        ({"signal": signal.SIGXCPU}, ("timeout", "killed after 1.0 s of CPU: the limit")),
    ],
)
def test_verdicts(parts: dict[str, object], expected: tuple[str, str] | None) -> None:
    about: dict[str, object] = {
        "exit_code": 0,
        "signal": 0,
        "timeout": "",
        "cpu_s": 1.0,
        "wall_s": 2.0,
        "peak_mb": 256.0,
    }
    assert Ended(**{**about, **parts}).verdict(5.0) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (MemoryError(), OUT_OF_MEMORY),
        (OSError(errno.ENOMEM, "no memory"), OUT_OF_MEMORY),
        (OSError(errno.EIO, "broken"), CHILD_FAILED),
        (RuntimeError(), CHILD_FAILED),
        (SystemExit(0), CHILD_FAILED),
    ],
)
def test_exit_statuses(error: BaseException, status: int) -> None:
    assert exit_status(error) == status
