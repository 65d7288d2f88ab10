"""Jobs in a shared folder: the executor that writes them, and workers in processes of their own that take them."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from grace_irl.errors import InputError
from grace_irl.testing.executors import TASKS, ExecutorSuite, there, until
from grace_irl.version import __version__
from grace_irl.work import Executor, FolderExecutor, Job, JobError, stored
from grace_irl.work.folder import free_jobs, freed, jobs_of, work_on
from grace_irl.work.stored import DONE, StoredJob

ROOT = Path(__file__).parents[2]


@contextmanager
def worker(folder: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """The command `grace-irl work`, as another machine would run it."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, str(ROOT / "cli.py"), "work", str(folder), *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a worker of two jobs at a time."""
    folder = tmp_path_factory.mktemp("jobs")
    with worker(folder, "--workers", "2", "--wait", "3600"):
        yield folder


class TestFolderExecutor(ExecutorSuite):
    """The suite with one worker, which outlives all executors."""

    @pytest.fixture(autouse=True)
    def _served(self, served: Path) -> None:
        self.folder = served

    def make(self, workers: int, services: Mapping[str, Callable[..., Any]]) -> Executor:
        return FolderExecutor(self.folder, workers, services)


def stored_job(folder: Path, task: str, **arguments: Any) -> StoredJob:
    folder.mkdir(parents=True)
    return StoredJob.write(folder, Job(f"{TASKS}:{task}", arguments))


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "cli.py"), "work", *arguments], capture_output=True, text=True, timeout=120
    )


def test_one_command_on_one_folder_is_done_once(tmp_path: Path) -> None:
    job = stored_job(tmp_path / "job", "add", first=2, second=3)
    done = command(str(job.folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert job.result() == 5
    assert (job.folder / "log.txt").read_text() == "2 + 3\n"
    before = (job.folder / DONE).stat()
    again = command(str(job.folder), "--json")
    assert again.returncode == 0
    assert json.loads(again.stdout) == {"done": 0, "failed": 0, "left": 0, "before": 1}
    assert (job.folder / DONE).stat() == before


def test_a_folder_of_jobs_is_worked_through_and_failures_are_told(tmp_path: Path) -> None:
    for number in range(3):
        stored_job(tmp_path / f"{number}", "add", first=number, second=0)
    stored_job(tmp_path / "more" / "bad", "fail", kind="input")
    done = command(str(tmp_path), "--workers", "2")
    assert done.returncode == 1
    assert f"{tmp_path}/more/bad: failed: a input error" in done.stdout
    assert done.stdout.splitlines()[-1] == "3 jobs done, 1 failed"
    assert [job.result() for job in jobs_of(tmp_path)[:3]] == [0, 1, 2]
    again = command(str(tmp_path))
    assert again.returncode == 1
    assert again.stdout == (
        "nothing to do: 4 jobs have ended before, 1 of them failed (delete its done.json to try again)\n"
    )


def test_an_array_takes_a_job_by_its_number(tmp_path: Path) -> None:
    jobs = [stored_job(tmp_path / name, "add", first=number, second=0) for number, name in enumerate("abc")]
    assert command(str(tmp_path), "--index", "1").returncode == 0
    assert [job.done for job in jobs] == [False, True, False]
    past = command(str(tmp_path), "--index", "3")
    assert past.returncode == 2
    assert past.stderr == f"grace-irl: --index 3: {tmp_path} holds 3 jobs; expected a number from 0 to 2\n"
    (tmp_path / "none").mkdir()
    none = command(str(tmp_path / "none"), "--index", "0")
    assert none.stderr == f"grace-irl: --index 0: {tmp_path}/none holds 0 jobs; expected a folder with jobs\n"


@pytest.mark.slow
def test_an_array_waits_for_a_killed_worker_and_says_that_one_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "STALE_S", 3 * stored.BEAT_S)
    job = stored_job(tmp_path / "job", "add", first=1, second=1)
    (job.folder / "claim").write_text("killed 7\n")
    assert freed(job, threading.Event())
    with stored.Beat(job.folder / "claim"):
        taken = command(str(tmp_path), "--index", "0")
    assert taken.returncode == 1
    assert taken.stderr.startswith(f"grace-irl: {job.folder}: another worker works on it; expected a job without one")
    assert command(str(tmp_path), "--index", "0").stdout.splitlines()[-1] == "1 job done"
    assert job.result() == 2


def test_a_worker_that_is_told_to_end_frees_its_job(tmp_path: Path) -> None:
    """As a cluster does it before it takes a machine away."""
    job = stored_job(tmp_path / "job", "begin_and_stay", out=str(tmp_path / "pids"))
    with worker(tmp_path) as process:
        until((tmp_path / "pids").exists)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped; 1 job is left" in said
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    until(lambda: not any(map(there, pids)))
    assert (job.claimed, job.done) == (False, False)


def test_the_job_of_a_killed_worker_is_taken_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "STALE_S", 3 * stored.BEAT_S)
    job = stored_job(tmp_path / "job", "wait_for", path=str(tmp_path / "go"))
    with worker(tmp_path) as process:
        until(lambda: (job.folder / "told.jsonl").exists() and (job.folder / "told.jsonl").read_text() != "")
        process.kill()
        process.wait()
    assert job.claimed
    (tmp_path / "go").touch()
    stop = threading.Event()
    begun = time.monotonic()
    assert [work_on(each, stop) for each in free_jobs(tmp_path, 0.0, stop)] == ["done"]
    assert time.monotonic() - begun > stored.STALE_S
    assert job.result() == str(tmp_path / "go")


@pytest.mark.slow
def test_a_living_worker_keeps_its_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "STALE_S", 3 * stored.BEAT_S)
    job = stored_job(tmp_path / "job", "wait_for", path=str(tmp_path / "go"))
    with worker(tmp_path) as process:
        until(lambda: job.claimed)
        holder, ended = stored.Pulse(job.folder / "claim"), time.monotonic() + 1.5 * stored.STALE_S
        while time.monotonic() < ended:
            assert not job.free(holder)
            time.sleep(0.2)
        with pytest.raises(stored.TakenError, match="somebody else works on it"):
            job.work()
        (tmp_path / "go").touch()
        said, _ = process.communicate(timeout=60)
    assert said.splitlines()[-1] == "1 job done"


def test_a_claim_that_cannot_be_read_for_a_while_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file server that is down for a moment."""
    monkeypatch.setattr(stored, "BEAT_S", 0.01)
    claim, tried = tmp_path / "claim", threading.Event()

    def unreadable(_: Path) -> bytes:
        tried.set()
        raise OSError(errno.EIO, "Input/output error")

    with stored.Beat(claim) as beat:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", unreadable)
            assert tried.wait(10.0)
            time.sleep(0.1)
        assert not beat.lost
        before = claim.read_text()
        until(lambda: claim.read_text() != before)
    assert not claim.exists()


@pytest.mark.parametrize("content", [b"another 0\n", b"\xff\xfe no text"])
def test_a_claim_that_somebody_else_has_taken_is_lost(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "BEAT_S", 0.2)
    claim = tmp_path / "claim"
    with stored.Beat(claim) as beat:
        claim.write_bytes(content)
        until(lambda: beat.lost)
    assert claim.read_bytes() == content


def test_messages_of_a_job_that_another_worker_has_just_ended_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, read = stored_job(tmp_path / "job", "add", first=1, second=1), StoredJob._job

    def ended_meanwhile(self: StoredJob) -> Any:
        (self.folder / "told.jsonl").write_text('"half"\n')
        (self.folder / DONE).write_text('{"result": 2}\n')
        return read(self)

    monkeypatch.setattr(StoredJob, "_job", ended_meanwhile)
    job.work()
    assert (job.folder / "told.jsonl").read_text() == '"half"\n'


def test_jobs_end_with_the_process_that_waits_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "STALE_S", 3 * stored.BEAT_S)
    waits = "import sys\nfrom pathlib import Path\nfrom grace_irl.work import FolderExecutor, Job\n"
    waits += "FolderExecutor(Path(sys.argv[1]), 1).submit(Job(sys.argv[2], {'out': sys.argv[3]})).result()"
    pids = tmp_path / "pids"
    arguments = [str(tmp_path / "jobs"), f"{TASKS}:begin_and_stay", str(pids)]
    submitter = subprocess.Popen([sys.executable, "-c", waits, *arguments])
    until(lambda: (tmp_path / "jobs").is_dir() and bool(jobs_of(tmp_path / "jobs")))
    stop = threading.Event()
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(work_on(jobs_of(tmp_path / "jobs")[0], stop)))
    thread.start()
    until(pids.exists)
    submitter.kill()
    submitter.wait()
    numbers = [int(pid) for pid in pids.read_text().split()]
    until(lambda: not any(map(there, numbers)))
    thread.join(60)
    assert said == ["cancelled"]


def test_jobs_of_a_dead_process_are_missed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "STALE_S", 2.0)
    submitter = tmp_path / "fit" / "submitter"
    jobs = []
    for name, task in {"a": "begin_and_stay", "b": "add", "c": "add"}.items():
        (tmp_path / "fit" / name).mkdir(parents=True)
        arguments = {"out": str(tmp_path / "pids")} if name == "a" else {"first": 1, "second": 1}
        jobs.append(StoredJob.write(tmp_path / "fit" / name, Job(f"{TASKS}:{task}", arguments), submitter))
    submitter.write_text("killed 7\n")
    stop, pulses = threading.Event(), stored.Pulses()
    begun = time.monotonic()
    said = [work_on(each, stop, pulses) for each in free_jobs(tmp_path, 0.0, stop, pulses)]
    assert said == ["cancelled"] * 3
    assert 2.0 < time.monotonic() - begun < 4.0 * 2.0
    assert not any(job.claimed or (job.folder / "told.jsonl").exists() for job in jobs[1:])


def test_a_file_that_cannot_be_read_shows_no_change(tmp_path: Path) -> None:
    """As if a file server is down when a worker first looks at a heartbeat."""
    path = tmp_path / "claim"
    path.mkdir()
    pulse = stored.Pulse(path)
    assert not pulse.stopped()
    path.rmdir()
    path.write_text("name 0\n")
    assert not pulse.stopped()
    assert not pulse.seen
    path.write_text("name 1\n")
    assert not pulse.stopped()
    assert pulse.seen


def test_an_executor_leaves_nothing_behind(tmp_path: Path) -> None:
    with worker(tmp_path, "--wait", "60"), FolderExecutor(tmp_path, 1) as executor:
        assert executor.submit(Job(f"{TASKS}:add", {"first": 1, "second": 1})).result(60) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"task": "os:getcwd"}, "task 'os:getcwd'; expected a task of this program, grace_irl.…"),
        ({"format": 7}, "format 7; expected 1: use the version that wrote it"),
        ({"arguments": 3}, "damaged (TypeError"),
        (None, "damaged (Expecting value"),
    ],
)
def test_files_that_are_no_jobs(tmp_path: Path, change: dict[str, Any] | None, said: str) -> None:
    job = stored_job(tmp_path / "job", "add", first=1, second=1)
    path = job.folder / "job.json"
    path.write_text("no" if change is None else json.dumps({**json.loads(path.read_text()), **change}))
    done = command(str(tmp_path))
    assert done.returncode == 1
    assert said in done.stdout
    with pytest.raises(JobError, match=r"job\.json: ") as caught:  # who waits for it is told
        job.result()
    assert said in str(caught.value)


def test_jobs_of_another_version_are_left_to_others(tmp_path: Path) -> None:
    jobs = [stored_job(tmp_path / "fit" / name, "add", first=1, second=1) for name in "ab"]
    older = [stored_job(tmp_path / "older", "add", first=1, second=1)]
    for job, version in ((jobs[0], "9.9"), (jobs[1], "9.9"), (older[0], None)):
        found = json.loads((job.folder / "job.json").read_text())
        assert found.pop("version") == __version__
        (job.folder / "job.json").write_text(json.dumps(found | ({"version": version} if version else {})))
    (tmp_path / "fit" / "submitter").write_text("alive 0")
    said = f"grace-irl: {tmp_path}/fit: jobs of grace-irl 9.9, and this worker is {__version__}; expected the same "
    said += "version on all machines: install it here; they are left to others\n"
    done = command(str(tmp_path))
    assert (done.returncode, done.stderr, done.stdout.splitlines()[-1]) == (0, said, "1 job done")
    again = command(str(tmp_path))
    assert (again.returncode, again.stderr, again.stdout) == (2, said, "")
    assert not any(job.done or job.claimed for job in jobs)
    assert older[0].result() == 2


def test_a_submitter_waits_for_a_worker_of_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "__version__", "9.9")
    with FolderExecutor(tmp_path, 1) as executor:
        future = executor.submit(Job(f"{TASKS}:add", {"first": 1, "second": 1}))
        until(lambda: bool(jobs_of(tmp_path)))
        other = command(str(tmp_path))
        assert (other.returncode, f"jobs of grace-irl 9.9, and this worker is {__version__}" in other.stderr) == (
            2,
            True,
        )
        assert not future.done()
        assert work_on(jobs_of(tmp_path)[0], threading.Event()) == "done"
        assert future.result(60) == 2


def test_a_worker_without_the_files_of_the_run_says_so(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    absent = tmp_path / "run" / "log.txt"
    job = StoredJob.write(tmp_path / "job", Job(f"{TASKS}:add", {"first": 1, "second": 1}, absent))
    done = command(str(tmp_path))
    assert done.returncode == 1
    assert f"{tmp_path}/job: failed: {absent.parent}: no such folder on " in done.stdout
    with pytest.raises(InputError, match="expected the files of the run at the same paths on all machines"):
        job.result()  # who waits for it is told


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_told_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = stored_job(tmp_path / "job", "count", upto=3)
    (job.folder / "told.jsonl").symlink_to("/dev/full")
    said = f"failed: {job.folder}: No space left on device; expected a disk with room"
    assert work_on(job, threading.Event()).startswith(said)
    assert not job.claimed
    (tmp_path / "claims").mkdir()
    monkeypatch.setattr(Path, "open", lambda self, mode: (self.touch(), open("/dev/full", "w"))[1])  # noqa: SIM115
    with pytest.raises(OSError, match="No space left"):
        stored.Beat(tmp_path / "claims" / "claim").__enter__()
    assert list((tmp_path / "claims").iterdir()) == []


def test_a_file_names_slow_modules_of_this_program_only(tmp_path: Path) -> None:
    job = Job(f"{TASKS}:add", {"first": 2, "second": 3}, imports=("grace_irl.atomic", "antigravity"))
    found = StoredJob.write(tmp_path, job)
    assert found._job()[0].imports == ("grace_irl.atomic",)
    found.work()
    assert found.result() == 5
    path = tmp_path / "job.json"
    path.write_text(json.dumps({key: each for key, each in json.loads(path.read_text()).items() if key != "imports"}))
    assert found._job()[0].imports == ()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_the_job_of_another_user_is_refused(tmp_path: Path) -> None:
    job = stored_job(tmp_path / "job", "add", first=1, second=1)
    os.chown(job.folder / "job.json", 12345, 12345)
    with pytest.raises(InputError, match="belongs to another user; expected a job that you wrote"):
        job.work()


def test_no_folder_and_no_job(tmp_path: Path) -> None:
    done = command(str(tmp_path / "absent"))
    assert (done.returncode, done.stderr) == (
        2,
        f"grace-irl: {tmp_path / 'absent'}: no folder; expected the folder of a job, or one with such folders\n",
    )
    short = command(str(tmp_path / "absent"), "--wait", "0.5")
    assert (short.returncode, short.stderr) == (2, done.stderr)
    empty = command(str(tmp_path))
    assert (empty.returncode, empty.stdout) == (0, "nothing to do: no job has been written\n")


@pytest.mark.slow
def test_a_worker_waits_for_the_folder(tmp_path: Path) -> None:
    arguments = [sys.executable, str(ROOT / "cli.py"), "work", str(tmp_path / "later"), "--wait", "6"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        time.sleep(2.0)
        assert process.poll() is None
        (tmp_path / "part").mkdir()
        job = stored_job(tmp_path / "part" / "job", "add", first=1, second=1)
        (tmp_path / "part").rename(tmp_path / "later")
        assert process.communicate()[0].splitlines()[-1] == "1 job done"
    assert process.returncode == 0
    assert not job.folder.exists()
