"""Jobs as folders, so that any machine with the same file system can work on them.

The folder of a job holds:

- `job.json`: the job.
- `claim`: name and heartbeat of the worker that works on the job. The worker changes the file every `BEAT_S` seconds.
- `log.txt`: output of the job's process, if the job names no other file.
- `told.jsonl`: messages of the job, one per line.
- `done.json`: the result, or the error. If this file exists, no worker takes the job again.
- `cancel`: the mark of a cancelled job. If this file exists, workers end the job or do not begin it.

The clocks of machines differ, and file systems store times coarsely. So no process compares the times of files. A
process detects a heartbeat by its own clock, from changes in the content of a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grace_irl.atomic import part_of, write_atomically
from grace_irl.errors import GraceError, InputError
from grace_irl.version import __version__
from grace_irl.work.executor import Job, JobError
from grace_irl.work.process import JobProcess, as_answer, as_error

JOB, CLAIM, LOG, TOLD, DONE, CANCEL = "job.json", "claim", "log.txt", "told.jsonl", "done.json", "cancel"
FORMAT = 1
"""Version of the files of a job."""
TASKS = "grace_irl."
"""Prefix of the names of all tasks. A folder cannot make this program call other code."""

BEAT_S = 2.0
"""Seconds between two changes of the file of a heartbeat (`Beat`)."""
STALE_S = 30.0
"""Maximum number of seconds between two changes of the file of a heartbeat.

After this time, a claim expires, and a submitter (the process that waits for a job) is considered dead."""
LOOK_S = 0.2
"""Seconds between two checks for a reason to end a running job early."""
SOONEST_S, LATEST_S, PATIENCE = 0.02, 0.5, 0.02
"""Minimum and maximum seconds between two checks of a folder. Between these limits, the pause is `PATIENCE` times the
wait so far."""


def pause(waited_s: float) -> float:
    """Seconds until the next check, after a wait of `waited_s` seconds.

    A wait of more than a second becomes at most 2 % longer. Long waits put little load on a file server.
    """
    return min(LATEST_S, max(SOONEST_S, PATIENCE * waited_s))


class TakenError(GraceError):
    """Another worker works on the job."""


class OtherVersionError(GraceError):
    """Another version of this program wrote the job, so this worker leaves it to others."""

    exit_code = 2


class Cancelled(JobError):  # noqa: N818 - the error of a job that ended as it should
    """The job ended before it was done, for example because it was cancelled (`_EndedEarly` lists the reasons)."""


class Beat:
    """A heartbeat: a file whose content changes every `BEAT_S` seconds, while the context is open.

    Args:
        path: the file. It must not exist.

    Attributes:
        lost: whether another process has replaced or removed the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(8)}"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._go, name="beat", daemon=True)
        self.lost = False

    def __enter__(self) -> Beat:
        """Create the file, and start the heartbeat.

        Raises:
            FileExistsError: the file exists.
        """
        file = self._path.open("x")
        try:
            with file:
                file.write(f"{self._name} 0\n")
        except OSError:  # a full disk: others must not wait for a claim without an owner
            self._path.unlink(missing_ok=True)
            raise
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(OSError):  # a file that stays expires
            if self._own() and not self.lost:
                self._path.unlink(missing_ok=True)

    def _own(self) -> bool:
        """Whether the file is still that of this heartbeat.

        Raises:
            OSError: the file exists and cannot be read.
        """
        try:
            return self._path.read_bytes().split(b" ")[0] == self._name.encode()
        except FileNotFoundError:
            return False

    def _go(self) -> None:
        number = 0
        while not self._ended.wait(BEAT_S):
            with contextlib.suppress(OSError):  # a full disk or a file server that is down: try again later
                if not self._own():
                    self.lost = True
                    return
                number += 1
                part = part_of(self._path)
                part.write_text(f"{self._name} {number}\n")
                os.replace(part, self._path)


class Pulse:
    """A watch on the heartbeat of another process, by the file of its `Beat`.

    Attributes:
        seen: whether this object has seen a change of the file, so that the process lived a moment ago.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.seen = False
        self._last: str | None = None
        self._since = time.monotonic()

    def stopped(self) -> bool:
        """Whether the file is absent, or this object has seen no change of the file for `STALE_S` seconds."""
        try:
            said: str | None = self._path.read_text()
        except FileNotFoundError:
            return True
        except OSError:
            said = self._last
        if said != self._last:
            self.seen = self._last is not None
            self._last, self._since = said, time.monotonic()
        return time.monotonic() - self._since > STALE_S


class Pulses(dict[Path, Pulse]):
    """Watches on heartbeats, by file.

    A process that looks at a file again uses the same watch, so it knows for how long the file has not changed.
    """

    def __missing__(self, path: Path) -> Pulse:
        return self.setdefault(path, Pulse(path))


@dataclass(frozen=True)
class StoredJob:
    """A job in a folder.

    Attributes:
        folder: the folder.
    """

    folder: Path

    @classmethod
    def write(cls, folder: Path, job: Job, submitter: Path | None = None) -> StoredJob:
        """Write a job into a folder. The folder may already contain files that the job reads.

        Args:
            folder: the folder.
            job: the job, which must name a task.
            submitter: file with the heartbeat of the process that waits for the job; None without such a process. The
                job ends if the heartbeat stops.
        """
        content = {
            "format": FORMAT,
            "version": __version__,
            "task": job.task,
            "arguments": dict(job.arguments),
            "log": None if job.log is None else str(job.log.absolute()),
            "environment": dict(job.environment),
            "imports": list(job.imports),
            "submitter": None if submitter is None else str(submitter.absolute()),
        }
        for name in (DONE, TOLD, CANCEL):
            (folder / name).unlink(missing_ok=True)
        write_atomically(folder / JOB, json.dumps(content, indent=1) + "\n")
        return cls(folder)

    @property
    def there(self) -> bool:
        """Whether the folder contains a job."""
        return (self.folder / JOB).is_file()

    @property
    def done(self) -> bool:
        """Whether the job has ended, with or without an error."""
        return (self.folder / DONE).exists()

    @property
    def failed(self) -> bool:
        """Whether the job has ended with an error."""
        return self.done and "error" in _read(self.folder / DONE)

    @property
    def cancelled(self) -> bool:
        """Whether the job is cancelled."""
        return (self.folder / CANCEL).exists()

    @property
    def claimed(self) -> bool:
        """Whether a worker works on the job, or died while working on it."""
        return (self.folder / CLAIM).exists()

    def same_version(self) -> bool:
        """Whether this version of grace-irl wrote the job. True if `job.json` names no version or cannot be read."""
        with contextlib.suppress(InputError):
            return bool(_read(self.folder / JOB).get("version", __version__) == __version__)
        return True

    def cancel(self) -> None:
        """Cancel the job. A worker that works on the job ends it, and no other worker begins it."""
        (self.folder / CANCEL).touch()

    def result(self) -> Any:
        """The result of a job that is done.

        Raises:
            InputError: the job ended with this error, or `done.json` is missing or damaged.
            GraceError, JobError: the job ended with this error.
        """
        found = _read(self.folder / DONE)
        if "error" in found:
            raise as_error(found)
        return found.get("result")

    def work(self, stop: threading.Event | None = None, pulses: Pulses | None = None) -> None:
        """Work on the job, and write its result. If the job ends early (`_EndedEarly`), no result is written.

        Args:
            stop: event that ends the work and frees the job for other workers; None for no such event.
            pulses: this process's watches on heartbeats; None for new ones.

        Raises:
            TakenError: another worker works on the job.
            OtherVersionError: another version of this program wrote the job.
            InputError: the file of the job is damaged, or belongs to another user.
            Cancelled: the job ended early.
        """
        if self.done:
            return
        self._require_own()
        try:
            job, waits = self._job()
        except InputError as error:
            self._write({"error": "defect", "text": str(error)})
            raise
        submitter = None if waits is None else (Pulses() if pulses is None else pulses)[waits]
        if submitter is not None and submitter.stopped():
            raise Cancelled(f"{self.folder}: its submitter has ended")
        with self._claimed() as claim, contextlib.ExitStack() as opened:
            if self.done:  # another worker has just finished the job
                return
            told = opened.enter_context((self.folder / TOLD).open("w", encoding="utf-8"))

            def tell(message: Any) -> None:
                told.write(json.dumps(message) + "\n")
                told.flush()

            ended = _EndedEarly(self, claim, submitter, stop or threading.Event())
            ended.require_wanted()
            log = job.log or self.folder / LOG
            try:
                process = JobProcess(replace(job, log=log))
            except (FileNotFoundError, NotADirectoryError):
                if log.parent.is_dir() or not self.there:  # a submitter that closes removes its folder
                    raise
                self._write({"error": "input", "text": absent(log.parent)})
                return
            try:
                with ended.watching(process.end):
                    content = {"result": process.result(tell)}
            except GraceError as error:
                ended.require_wanted()
                content = as_answer(error)
            finally:
                process.end()
            self._write(content)

    def _write(self, content: dict[str, Any]) -> None:
        write_atomically(self.folder / DONE, json.dumps(content) + "\n")

    def _require_own(self) -> None:
        path = self.folder / JOB
        if hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
            raise InputError(
                f"{path}: belongs to another user; expected a job that you wrote: it names what this program calls"
            )

    def _job(self) -> tuple[Job, Path | None]:
        """The job, and the file with the heartbeat of its submitter."""
        path = self.folder / JOB
        found = _read(path)
        if (version := found.get("version", __version__)) != __version__:  # earlier versions wrote none
            raise OtherVersionError(
                f"{path.parent.parent}: jobs of grace-irl {version}, and this worker is {__version__}; expected the "
                "same version on all machines: install it here; they are left to others"
            )
        if (form := found.get("format")) != FORMAT:
            raise InputError(f"{path}: format {form!r}; expected {FORMAT}: use the version that wrote it")
        try:
            task, submitter = str(found["task"]), found["submitter"]
            log = None if found["log"] is None else Path(found["log"])
            environment = {str(k): str(v) for k, v in found["environment"].items()}
            # Earlier versions wrote no imports. A file chooses among modules of this program only, as for tasks.
            imports = tuple(str(name) for name in found.get("imports", ()) if str(name).startswith(TASKS))
            job = Job(task, dict(found["arguments"]), log, environment, imports)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{path}: damaged ({type(error).__name__}: {error}); expected a job as written") from None
        if not task.startswith(TASKS):
            raise InputError(f"{path}: task {task!r}; expected a task of this program, {TASKS}…")
        return job, None if submitter is None else Path(submitter)

    @contextmanager
    def _claimed(self) -> Iterator[Beat]:
        """Claim the job while the context is open."""
        try:
            with Beat(self.folder / CLAIM) as claim:
                yield claim
        except FileExistsError:
            raise TakenError(f"{self.folder}: somebody else works on it") from None

    def free(self, holder: Pulse) -> bool:
        """Remove the claim if its heartbeat has stopped. Return whether the job is free, that is, without a claim.

        Args:
            holder: this process's watch on the heartbeat of the claim.
        """
        claim = self.folder / CLAIM
        if not self.claimed:
            return True
        if not holder.stopped():
            return False
        with contextlib.suppress(FileNotFoundError):
            part = part_of(claim)
            os.rename(claim, part)  # if several processes try, only one succeeds
            part.unlink()
        return True


class _EndedEarly:
    """The reasons to end a job before it is done: the worker stops, the job is cancelled, its submitter is dead, or its
    claim is lost.
    """

    def __init__(self, job: StoredJob, claim: Beat, submitter: Pulse | None, stop: threading.Event) -> None:
        self._job, self._claim, self._submitter, self._stop = job, claim, submitter, stop

    def require_wanted(self) -> None:
        """Check that there is no reason to end the job.

        Raises:
            Cancelled: there is a reason.
        """
        if self._reason():
            raise Cancelled(f"{self._job.folder}: {self._reason()}")

    def _reason(self) -> str:
        if self._stop.is_set():
            return "stopped"
        if self._job.cancelled:
            return "cancelled"
        if self._submitter is not None and self._submitter.stopped():
            return "its submitter has ended"
        return "somebody else has taken it" if self._claim.lost else ""

    @contextmanager
    def watching(self, end: Callable[[], object]) -> Iterator[None]:
        """While the context is open, call `end` as soon as there is a reason to end the job."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(LOOK_S):
                if self._reason():
                    end()
                    return

        thread = threading.Thread(target=watch, name="watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def absent(folder: Path) -> str:
    """The message for a folder of a run that this machine lacks."""
    return (
        f"{folder}: no such folder on {socket.gethostname()}; expected the files of the run at the same paths on all "
        "machines: share the folder, or begin the run in a shared one"
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); expected the folder of a job") from None
    except ValueError as error:
        raise InputError(f"{path}: damaged ({error}); expected what this program wrote") from None
    if not isinstance(found, dict):
        raise InputError(f"{path}: damaged; expected an object")
    return found
