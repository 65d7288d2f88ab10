"""Zygotes of tests: a process goes from pool to pool, and only one that is well and at no work."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import SandboxError
from grace_irl.rewards.runner import SandboxedRunner
from grace_irl.sandbox.pool import ZygotePool
from grace_irl.sandbox.session import Begin

PROGRAM = "class Reward:\n    def __init__(self, extra_info=None): pass\n    def reward_fn(self, state): {body}\n"
LAST = PROGRAM.format(body="return state[-1]")
ENDLESS = PROGRAM.format(body="\n        while True: pass")
STATES = Trajectory(np.array([[1.0, 2.0], [3.0, 4.0]]))


def rewards(pool: ZygotePool) -> list[float]:
    outcome = pool.run(LAST, pool.put([STATES]), [0])
    assert outcome.status == "ok", outcome.message
    found: list[float] = outcome.rewards[0].tolist()
    return found


def pids_of(pool: ZygotePool) -> tuple[int, ...]:
    with pool:
        assert rewards(pool) == [2.0, 4.0]
        return pool.pids


def test_a_pool_takes_the_process_of_one_that_was_closed() -> None:
    assert pids_of(ZygotePool(1)) == pids_of(ZygotePool(1))


def test_two_open_pools_have_nothing_in_common() -> None:
    with ZygotePool(2) as first, ZygotePool(2) as second:
        assert len({*first.pids, *second.pids}) == 4
        assert rewards(first) == rewards(second)


def test_a_closed_pool_does_no_more_work() -> None:
    pool = ZygotePool(1)
    handle = pool.put([STATES])
    zygote = pool._zygotes[0]
    pool.close()
    with pytest.raises(SandboxError, match="closed"):
        pool.run(LAST, handle, [0])
    with ZygotePool(1) as second:
        assert zygote.pid == second.pids[0]
        zygote.close()  # once more; the process is another's
        assert rewards(second) == [2.0, 4.0]


def test_one_that_died_is_not_taken() -> None:
    (pid,) = pids_of(ZygotePool(1))
    os.kill(pid, signal.SIGKILL)
    assert pid not in pids_of(ZygotePool(1))


def test_one_that_is_at_work_is_not_taken() -> None:
    pool = ZygotePool(1)
    handle = pool.put([STATES])
    rewards(pool)
    (pid,) = pool.pids

    def work() -> None:
        with contextlib.suppress(SandboxError, OSError):  # it is closed meanwhile
            pool.run(ENDLESS, handle, [0])

    thread = threading.Thread(target=work)
    thread.start()
    children, give_up = Path(f"/proc/{pid}/task/{pid}/children"), time.monotonic() + 20
    while not children.read_text() and time.monotonic() < give_up:
        time.sleep(0.01)
    pool.close()
    thread.join()
    assert pid not in pids_of(ZygotePool(1))


def test_a_session_leaves_its_process() -> None:
    """Its child has ended by then."""
    runner = SandboxedRunner(LAST, "reward.py")
    runner.turn([], None, [], [Begin(0, STATES.states[0], "")])
    assert runner.turn([0], None, [STATES.states[1]]).rewards.tolist() == [4.0]
    session = runner._session
    assert session is not None
    runner.close()
    with ZygotePool(4) as pool:
        assert session.pid in pool.pids
        assert rewards(pool) == [2.0, 4.0]
