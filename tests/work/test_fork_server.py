"""Processes of jobs that a fork server starts: they do what new ones do, and hold slow modules from the start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grace_irl.testing.executors import TASKS, ExecutorSuite, there, until
from grace_irl.work import Executor, Job, LocalExecutor, fork_server
from grace_irl.work.executor import Tell
from grace_irl.work.process import JobProcess, descendants

pytestmark = pytest.mark.skipif(not fork_server.possible(), reason="processes are forked on Linux only")

SLOW = ("wave", "not_a_module")  # a module of the standard library that nothing else imports
HERE = __name__
BEGIN = """
import sys
from grace_irl.work import Job, LocalExecutor

executor = LocalExecutor(1)
executor.submit(Job(sys.argv[1], {"out": sys.argv[2]}, imports=("wave",))).result()
"""


def look(tell: Tell) -> dict[str, Any]:
    """What a job finds in its process."""
    import numpy as np

    return {
        "held": "wave" in sys.modules,
        "parent": os.getppid(),
        "path": os.environ.get("PYTHONPATH", ""),
        "folder": os.getcwd(),
        "drawn": int(np.random.randint(1 << 30)),
    }


def threads(tell: Tell) -> int:
    """The number of threads of torch in a job's process."""
    import torch

    return torch.get_num_threads()


def forked(job: Job) -> JobProcess:
    return JobProcess(replace(job, imports=SLOW))


def looked(**more: Any) -> dict[str, Any]:
    with LocalExecutor(1) as executor:
        found: dict[str, Any] = executor.submit(Job(f"{HERE}:look", imports=SLOW, **more)).result(60)
    return found


@pytest.fixture(autouse=True)
def _reachable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Jobs import this file; no server outlives its test."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    fork_server._end()
    yield
    fork_server._end()


class TestForkedProcesses(ExecutorSuite):
    def make(self, workers: int, services: Mapping[str, Callable[..., Any]]) -> Executor:
        return LocalExecutor(workers, services, start=forked)


def test_jobs_share_a_server_that_holds_their_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = looked()
    monkeypatch.chdir(tmp_path)
    other = looked()
    assert one["held"]
    assert other["held"]
    assert one["parent"] == other["parent"] != os.getpid()
    assert other["folder"] == str(tmp_path)
    assert one["drawn"] != other["drawn"]
    with LocalExecutor(1) as executor:
        new = executor.submit(Job(f"{HERE}:look")).result(60)
    assert not new["held"]
    assert new["parent"] == os.getpid()


def test_variables_that_count_at_the_start_of_python_need_another_server() -> None:
    one = looked()
    changed = os.pathsep.join([os.environ["PYTHONPATH"], "/nowhere"])
    other = looked(environment={"PYTHONPATH": changed})
    assert other["path"] == changed
    assert other["parent"] != one["parent"]
    until(lambda: not there(one["parent"]))  # nobody needs it


@pytest.mark.slow
def test_torch_has_the_threads_of_the_outermost_level() -> None:
    """OpenMP takes a number for each level of nesting, and ignores a setting that it does not understand."""
    wanted = {"3": 3, "4,2": 4} | dict.fromkeys(("", "0", "many"), len(os.sched_getaffinity(0)))
    found = {}
    with LocalExecutor(1) as executor:
        for each in wanted:
            job = Job(f"{HERE}:threads", environment={"OMP_NUM_THREADS": each}, imports=("torch",))
            found[each] = executor.submit(job).result(60)
    assert found == wanted


def test_a_job_that_ends_at_once_is_no_trouble() -> None:
    """Not even before it has a session of its own."""
    for _ in range(30):
        assert JobProcess(Job(f"{TASKS}:wait_for", {"path": "never"}, imports=SLOW)).end() == -9


def test_a_killed_server_is_replaced() -> None:
    one = looked()
    os.kill(one["parent"], signal.SIGKILL)
    assert looked()["parent"] != one["parent"]


def test_a_server_without_jobs_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "IDLE_S", 0.1)
    one = looked()
    assert fork_server._running is not None
    assert fork_server._running._process.wait(60) == 0
    assert looked()["parent"] != one["parent"]


def test_a_job_of_a_killed_server_ends_as_it_should() -> None:
    """Its result counts, although nobody knows its exit code."""
    told: list[Any] = []
    process = JobProcess(Job(f"{TASKS}:count", {"upto": 3}, imports=SLOW))
    assert fork_server._running is not None
    os.kill(fork_server._running._process.pid, signal.SIGKILL)
    assert process.result(told.append) == 3
    assert process.end() == -9


def test_a_server_and_its_jobs_end_with_the_process_that_submitted_them(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    process = subprocess.Popen([sys.executable, "-c", BEGIN, f"{TASKS}:begin_and_stay", str(pids)])
    until(pids.exists)
    every = descendants(process.pid)
    assert {int(pid) for pid in pids.read_text().split()} < set(every)  # the server beside the job and its child
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: not any(map(there, every)))


@pytest.mark.slow
def test_a_training_is_the_same_in_a_forked_process(tmp_path: Path) -> None:
    from grace_irl.tasks.task import read_task
    from grace_irl.tasks.training import job, result_of

    task = read_task("snake")
    source = "class Reward:\n    def reward_fn(self, state):\n        return float(state[4])\n"
    with LocalExecutor(1) as executor:
        for name, imports in (("new", ()), ("forked", ("grace_irl.rl.ppo",))):
            training = job(task, tmp_path / name, source, 3, 4096, 2)
            executor.submit(replace(training, imports=imports)).result(300)
    new, other = (
        [replace(point, seconds=0.0) for point in result_of(tmp_path / name) or ()] for name in ("new", "forked")
    )
    assert len(new) == 2
    assert new == other
    assert (tmp_path / "new" / "policy.pt").read_bytes() == (tmp_path / "forked" / "policy.pt").read_bytes()
