"""Duties of the pool alone: zygotes that die, memory, long runs. `test_suite.py` has what every sandbox must do."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grace_irl.demos.memory import Region
from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError, SandboxError
from grace_irl.sandbox import Limits
from grace_irl.sandbox.host import ZygoteHandle
from grace_irl.sandbox.packing import Package
from grace_irl.sandbox.pool import ZygotePool
from grace_irl.sandbox.protocol import DebugRequest, Mode
from tests.sandbox.samples import BOTH, COUNTER, one, vectors


@pytest.fixture
def pool() -> Iterator[ZygotePool]:
    with ZygotePool(1) as pool:
        yield pool


def test_a_dead_zygote_is_replaced(pool: ZygotePool) -> None:
    handle = pool.put(vectors())
    assert pool.run(COUNTER, handle, [0]).status == "ok"
    first = pool.pids[0]
    os.kill(first, signal.SIGKILL)
    assert pool.run(COUNTER, handle, [0]).status == "ok"
    assert pool.pids[0] != first


def test_a_zygote_that_dies_in_mid_run_is_replaced_and_the_run_repeated(pool: ZygotePool) -> None:
    handle = pool.put(vectors())
    pool.run(COUNTER, handle, [0])
    victim = pool.pids[0]
    threading.Timer(0.2, os.kill, (victim, signal.SIGKILL)).start()
    outcome = pool.run(one("import math\nfor _ in range(4_000_000): math.sin(1)\nreturn 1"), handle, [0])
    assert outcome.status == "ok"
    assert pool.pids[0] != victim


def test_a_zygote_that_dies_twice_is_a_failure_of_the_sandbox(
    pool: ZygotePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = pool.put(vectors())
    zygote = pool._zygotes[0]
    ask = zygote.ask

    def fatal(*arguments: object) -> object:
        zygote.wait_until_ready()
        os.kill(zygote.pid, signal.SIGKILL)
        return ask(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(zygote, "ask", fatal)
    with pytest.raises(SandboxError, match="died twice"):
        pool.run(COUNTER, handle, [0])


def test_a_zygote_that_starts_slowly_is_said_to_be_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grace_irl.sandbox.host._START_S", 1e-6)
    with pytest.raises(SandboxError, match="was not ready after 1e-06 s; expected a machine with less to do"):
        ZygoteHandle().wait_until_ready()


def test_no_child_outlives_the_pool() -> None:
    pool = ZygotePool(2)
    pids = pool.pids
    handle = pool.put(vectors())
    run = threading.Thread(target=lambda: _quietly(pool, handle))
    run.start()
    time.sleep(0.6)
    pool.close()
    run.join(10)
    assert not run.is_alive()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    with pytest.raises(SandboxError, match="closed"):
        pool.run(COUNTER, handle, [0])


def _quietly(pool: ZygotePool, handle: int) -> None:
    try:
        pool.run(one("while True: pass"), handle, [0], limits=Limits(wall_s=60))
    except (SandboxError, ValueError, OSError):
        return


def test_a_dead_host_takes_everything_along(tmp_path: Path) -> None:
    import subprocess
    import sys

    script = tmp_path / "host.py"
    script.write_text(
        "import numpy as np, sys, threading, time\n"
        "from grace_irl.demos.trajectory import Trajectory\n"
        "from grace_irl.sandbox import Limits\n"
        "from grace_irl.sandbox.pool import ZygotePool\n"
        "pool = ZygotePool(1)\n"
        "handle = pool.put([Trajectory(np.zeros((2, 2)))])\n"
        "source = 'class Reward:\\n    def reward_fn(self, s):\\n        while True: pass\\n'\n"
        "run = lambda: pool.run(source, handle, [0], limits=Limits(wall_s=60, cpu_s=60))\n"
        "threading.Thread(target=run, daemon=True).start()\n"
        "print(pool.pids[0], flush=True)\n"
        "time.sleep(60)\n"
    )
    host = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    zygote = int(host.stdout.readline())
    listed, give_up = Path(f"/proc/{zygote}/task/{zygote}/children"), time.monotonic() + 20
    while not (children := listed.read_text().split()) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert children
    host.kill()
    host.wait()
    host.stdout.close()
    deadline = time.monotonic() + 10
    left = [zygote, *map(int, children)]
    while (left := [pid for pid in left if _runs(pid)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_states_of_a_region_are_referred_to(pool: ZygotePool) -> None:
    region = Region()
    random = np.random.default_rng(0)
    block = region.allocate((10, 3), np.float64)
    block[:] = random.normal(size=(10, 3))
    block.flags.writeable = False
    trajectories = [Trajectory(block[:4]), Trajectory(block[4:]), Trajectory(random.normal(size=(5, 3)))]
    handle = pool.put(trajectories)
    for trajectory, content in zip(trajectories, pool._packages[handle].contents, strict=True):
        assert content.parts[0] is trajectory.states
    outcome = pool.run(one("return state.sum()"), handle, [1, 2, 0])
    for index, rewards in zip([1, 2, 0], outcome.rewards, strict=True):
        np.testing.assert_array_equal(rewards, [float(state.sum()) for state in trajectories[index].states])


def inside(pid: int, name: str) -> bytes:
    """What the kernel tells of a process's memory. Of a zygote it tells root only, not even the user that runs it."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except PermissionError:
        pytest.skip("only root may look into a zygote")


@BOTH
def test_a_worker_keeps_nothing_of_a_run(pool: ZygotePool, mode: Mode) -> None:
    def held() -> tuple[int, int]:
        maps = inside(pool.pids[0], "maps").decode()
        return len(os.listdir(f"/proc/{pool.pids[0]}/fd")), maps.count("memfd")

    pool.inspect("x = 1")
    before = held()
    handle = pool.put(vectors())
    pool.run(COUNTER, handle, [0, 1], mode=mode)
    assert held() == before


@BOTH
def test_a_long_run_takes_several_children(pool: ZygotePool, mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    trajectories = vectors(5, actions=True)
    handle = pool.put(trajectories)
    order, wanted = [4, 0, 3, 1], [DebugRequest(3, 1), DebugRequest(0, 2), DebugRequest(3, 0)]
    whole = pool.run(COUNTER, handle, order, mode=mode, debug=wanted)
    monkeypatch.setattr(Package.portions, "__defaults__", (170,))
    assert len(list(pool._packages[handle].portions(np.array(order)))) == 3
    cut = pool.run(COUNTER, handle, order, mode=mode, debug=wanted)
    assert (cut.status, cut.debug) == (whole.status, whole.debug) == ("ok", ("2: 1002", "3: 4004", "1: 1000"))
    assert len(cut.rewards) == 4
    assert all(map(np.array_equal, cut.rewards, whole.rewards))
    late = pool.run(one("return 1 / int(1002 - state[0])"), handle, order, mode=mode)
    assert (late.status, late.rewards) == ("runtime", ())
    assert "state 1 of trajectory 3" in late.message
    huge = pool.run(one("return 1e12 if state[0] == 1002 else 0"), handle, order, mode=mode)
    assert "state 1 of trajectory 3" in huge.message


def test_the_environment_of_a_zygote_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRACE_SECRET", "TREASURE")
    with ZygotePool(1) as fresh:
        fresh.inspect("x = 1")
        environment = inside(fresh.pids[0], "environ")
        source = "import os\n" + one("return float(len(os.environ))")
        handle = fresh.put(vectors())
        assert not fresh.run(source, handle, [0], checks=False).rewards[0].any()
    assert b"TREASURE" not in environment


def test_workers() -> None:
    with pytest.raises(InputError, match="at least 1"):
        ZygotePool(0)
    with ZygotePool() as pool:
        assert pool.workers == len(os.sched_getaffinity(0))


def test_many_threads_use_all_zygotes(monkeypatch: pytest.MonkeyPatch) -> None:
    with ZygotePool(2) as pool:
        handle = pool.put(vectors())
        running, seen, asked = threading.Barrier(2, timeout=20), [], []
        for zygote in pool._zygotes:
            monkeypatch.setattr(zygote, "ask", _noting(zygote, asked))

        def work() -> None:
            running.wait()
            outcome = pool.run(one("import math\nfor _ in range(500_000): math.sin(1)\nreturn 1"), handle, [0])
            seen.append(outcome.status)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == ["ok", "ok"]
        assert sorted(set(asked)) == [0, 1]


def _noting(zygote: ZygoteHandle, asked: list[int]) -> Callable[..., object]:
    ask = zygote.ask

    def noting(*arguments: Any) -> object:
        asked.append(zygote.number)
        return ask(*arguments)

    return noting
