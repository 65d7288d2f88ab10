"""The executor of this machine, by the suite of executors, and what is its own."""

from __future__ import annotations

import _thread
import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from grace_irl.errors import GraceError, InputError
from grace_irl.testing.executors import TASKS, ExecutorSuite, there, until
from grace_irl.work import Executor, Job, JobError, LocalExecutor
from grace_irl.work.local import Running
from grace_irl.work.process import JobProcess, as_answer, as_error, descendants

BEGIN = """
import sys
from grace_irl.work import Job, LocalExecutor

if __name__ == "__main__":
    executor = LocalExecutor(1)
    executor.submit(Job(sys.argv[1], {"out": sys.argv[2]})).result()
"""


class TestLocalExecutor(ExecutorSuite):
    def make(self, workers: int, services: Mapping[str, Callable[..., Any]]) -> Executor:
        return LocalExecutor(workers, services)


def test_a_job_ends_with_the_process_that_submitted_it(tmp_path: Path) -> None:
    """However that ends; and its children, too."""
    pids = tmp_path / "pids"
    process = subprocess.Popen([sys.executable, "-c", BEGIN, f"{TASKS}:begin_and_stay", str(pids)])
    until(pids.exists)
    process.send_signal(signal.SIGKILL)
    process.wait()
    numbers = [int(pid) for pid in pids.read_text().split()]
    until(lambda: not any(map(there, numbers)))


def test_ctrl_c_ends_the_job_by_way_of_the_one_who_waits(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN, f"{TASKS}:begin_and_stay", str(pids)], stderr=subprocess.DEVNULL
    )
    until(pids.exists)
    os.kill(process.pid, signal.SIGINT)
    process.wait()
    numbers = [int(pid) for pid in pids.read_text().split()]
    until(lambda: not any(map(there, numbers)))


def test_a_further_ctrl_c_leaves_no_stopped_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes after the process of the job was stopped, and before it was killed."""
    pids = tmp_path / "pids"
    process = JobProcess(Job(f"{TASKS}:begin_and_stay", {"out": str(pids)}))
    until(pids.exists)
    numbers = [int(pid) for pid in pids.read_text().split()]

    def interrupted(pid: int) -> list[int]:
        monkeypatch.setattr("grace_irl.work.process.descendants", descendants)
        _thread.interrupt_main()
        time.sleep(0.2)
        return descendants(pid)

    monkeypatch.setattr("grace_irl.work.process.descendants", interrupted)
    with pytest.raises(KeyboardInterrupt):
        process.end()
    until(lambda: not any(map(there, numbers)))


def test_a_process_ends_even_if_its_descendants_cannot_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    process = JobProcess(Job(f"{TASKS}:begin_and_stay", {"out": str(pids)}))
    until(pids.exists)

    def fails(_: int) -> list[int]:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr("grace_irl.work.process.descendants", fails)
    with pytest.raises(OSError, match="too many open files"):
        process.end()
    assert process.end() == -signal.SIGKILL
    for each in map(int, pids.read_text().split()):  # what it had begun in other sessions is left
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def test_a_task_is_imported_neither_from_the_current_directory_nor_by_a_log_s_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil.py").write_text("def task(tell): return 'ran'\n")
    other = tmp_path / "other.txt"
    other.write_text("kept")
    log = tmp_path / "log.txt"
    log.hardlink_to(other)
    monkeypatch.chdir(tmp_path)
    with LocalExecutor(1) as executor:
        future = executor.submit(Job("evil:task", log=log))
        with pytest.raises(Exception, match="No module named 'evil'"):
            future.result(60)
    assert other.read_text() == "kept"


@pytest.mark.parametrize("ended", [False, True], ids=["a long job", "a job that has ended by then"])
def test_a_job_is_cancelled_while_its_process_is_being_started(ended: bool) -> None:
    """The process ends as soon as it exists."""
    begun, go = threading.Event(), threading.Event()

    class Ended:
        def result(self, tell: object) -> str:
            return "done"

        def end(self) -> None:
            """Nothing to end."""

    def start(job: Job) -> Running:
        begun.set()
        assert go.wait(60)
        return Ended() if ended else JobProcess(job)

    with LocalExecutor(1, start=start) as executor:
        future = executor.submit(Job(f"{TASKS}:wait_for", {"path": "never"}))
        assert begun.wait(60)
        assert future.cancel()
        go.set()
        with pytest.raises(CancelledError):
            future.result(60)


def test_an_executor_needs_a_worker() -> None:
    with pytest.raises(InputError, match="0 workers; expected at least 1"):
        LocalExecutor(0)


@pytest.mark.parametrize("kind", [InputError, JobError, GraceError])
def test_an_error_crosses_a_process_with_what_it_says_about_going_on(kind: type[GraceError]) -> None:
    error = kind("endless; begin a new run")
    error.says_how_to_go_on = True
    for given in (error, kind("a full disk")):
        answer = json.loads(json.dumps(as_answer(given)))
        again = as_error(answer)
        assert (type(again), str(again.saved("--resume x"))) == (kind, str(given.saved("--resume x")))
