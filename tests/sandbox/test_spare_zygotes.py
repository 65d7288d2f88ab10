"""Spare zygotes: a process goes from handle to handle, and only one that is well and at no work."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grace_irl
from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import SandboxError
from grace_irl.rewards.runner import SandboxedRunner
from grace_irl.sandbox import host
from grace_irl.sandbox.pool import ZygotePool
from grace_irl.sandbox.session import Begin
from tests.fakes.data import vector_set
from tests.fakes.scripted_proposer import ScriptedProposer
from tests.runs.test_resume import memory

PROGRAM = "class Reward:\n    def __init__(self, extra_info=None): pass\n    def reward_fn(self, state): {body}\n"
LAST = PROGRAM.format(body="return state[-1]")
ENDLESS = PROGRAM.format(body="\n        while True: pass")
STATES = Trajectory(np.array([[1.0, 2.0], [3.0, 4.0]]))


@pytest.fixture(autouse=True)
def _spare() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "MOST_SPARE", 4)
        yield
    host.end_spare()


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


def test_sessions_one_after_the_other_need_one_process() -> None:
    """That of the canaries, which say what the sandbox protects, and then of every program."""
    pids = set()
    for _ in range(3):
        with SandboxedRunner(LAST, "reward.py") as runner:
            runner.turn([], None, [], [Begin(0, STATES.states[0], "")])
            session = runner._session
            assert session is not None
            pids.add(session.pid)
    assert len(pids) == 1


def test_few_processes_wait() -> None:
    """The newest ones, since an older one may belong to another interpreter or path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "MOST_SPARE", 1)
        pids = pids_of(ZygotePool(3))
        assert [each.process.pid for each in host._spare] == [pids[-1]]
    for pid in pids[:-1]:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_changed_path_takes_a_new_process(tmp_path: Path) -> None:
    pids = pids_of(ZygotePool(1))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        assert pids_of(ZygotePool(1)) != pids
    assert pids_of(ZygotePool(1)) == pids


def test_a_resumed_run_takes_the_spare_one_and_ends_as_a_whole_run(tmp_path: Path) -> None:
    pids: list[list[int]] = []

    def run(name: str, generations: int, **more: Any) -> None:
        settings = {"population": 4, "elite": 2, "workers": 1} if not more else {}
        place = more or {"out": tmp_path / name}
        grace_irl.fit(vector_set(), proposer=ScriptedProposer(), generations=generations, **settings, **place)
        pids.append([each.process.pid for each in host._spare])

    run("parted", 1)
    run("parted", 2, resume=tmp_path / "parted")
    host.end_spare()
    run("whole", 2)
    assert pids[0] == pids[1] != pids[2]
    assert memory(tmp_path / "parted") == memory(tmp_path / "whole")


FORKS = """
import os
from tests.sandbox.test_spare_zygotes import ZygotePool, host, pids_of

host.MOST_SPARE = 1
first = pids_of(ZygotePool(1))
child = os.fork()
if child == 0:
    host.end_spare()
    os._exit(int(pids_of(ZygotePool(1)) == first))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert pids_of(ZygotePool(1)) == first
"""


def test_a_forked_process_leaves_them_to_its_parent() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", FORKS], check=True, cwd=Path(__file__).parents[2], timeout=60)
