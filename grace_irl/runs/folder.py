"""A run's folder: its paths, creation and lock."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shlex
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType

from grace_irl.atomic import write_atomically
from grace_irl.config import Config
from grace_irl.contents import require_no_links
from grace_irl.demos.labels import Problem
from grace_irl.errors import GraceError, InputError
from grace_irl.methods.registry import method_of
from grace_irl.programs.components import numbered
from grace_irl.programs.parts import shape_of_actions, states_fact, written
from grace_irl.propose.goals import GoalAnswer
from grace_irl.runs import acting
from grace_irl.runs.acting import plain_acting
from grace_irl.runs.config import to_toml
from grace_irl.runs.store import Store


class RunPaths:
    """Paths inside a run's folder (docs/runs.md).

    Attributes:
        config: the complete configuration.
        database: the run's state.
        reward: the best program so far, as an exported module.
        report: an HTML page about the run.
        goals: file with the goal states of expert trajectories (label rule "goal"). A person can correct the file.
        manual: folder of prompts for a person, and of the person's answers (`--proposer manual`).
        lock: lock file of the process that works on the run.
        quoted: the path of the folder, quoted for a shell.
        resume: arguments of `grace-irl fit` that resume this run, quoted for a shell.
    """

    def __init__(self, folder: Path) -> None:
        self.config = folder / "config.toml"
        self.database = folder / "run.db"
        self.reward = folder / "reward.py"
        self.report = folder / "report.html"
        self.goals = folder / "goals.toml"
        self.manual = folder / "manual"
        self.lock = folder / "lock"
        self.quoted = shlex.quote(str(folder))
        self.resume = f"--resume {self.quoted}"


JUDGED = "judged in an environment"
"""Key in the table `meta`: "True" if the states and actions there are those of a task's environment, else "False"."""
OWN = ("run.db", "rounds")
"""Names of a file and a folder that show a run and an expansion."""


def default_folder(demos: str) -> Path:
    """The path `runs/<name of the demonstrations>-<time>`, with a number appended if the path exists already."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(demos).stem if demos else "demos").strip("-.") or "demos"
    return dated("runs", f"{name}-")


def dated(parent: str, prefix: str = "") -> Path:
    """The path `<parent>/<prefix><time>`, with a number appended if the path exists already."""
    stem = Path(parent) / f"{prefix}{time.strftime('%Y%m%d-%H%M%S')}"
    folder, number = stem, 2
    while folder.exists():
        folder, number = stem.with_name(f"{stem.name}-{number}"), number + 1
    return folder


@contextmanager
def reserved(choose: Callable[[], Path]) -> Iterator[Path]:
    """Make a new folder at a path of our own choice, and remove it at the end if it is empty.

    Args:
        choose: function that returns a path that does not exist. It is called again if another process was faster.

    Raises:
        InputError: the folder cannot be made.
    """
    while True:
        folder = choose()
        made = [each for each in (folder, folder.parent) if not each.exists()]
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                folder.mkdir()
                break
        except OSError as error:
            raise _impossible(folder, error.strerror) from None
    try:
        yield folder
    finally:
        with suppress(OSError):  # raised if a folder is not empty
            for each in made:
                each.rmdir()


def require_absent(folder: Path, own: Sequence[str] = OWN, *, but: Sequence[str] = ()) -> None:
    """Check that a new folder can be made at this path.

    Args:
        folder: the path.
        own: names of files and folders that show that `--resume` can continue the work in the folder. The default names
            show a run or an expansion.
        but: names of files that may be in the folder, such as the lock of a process that was killed.

    Raises:
        InputError: the folder exists and is not empty, or cannot be made.
    """
    try:
        taken = folder.exists() and (not folder.is_dir() or any(each.name not in but for each in folder.iterdir()))
        place = next((parent for parent in folder.absolute().parents if parent.exists()), folder)
    except OSError as error:
        raise _impossible(folder, error.strerror) from None
    if taken:
        found = "exists already" if folder.is_dir() else "exists already, as a file"
        more = f", or go on with {RunPaths(folder).resume}" if any((folder / name).exists() for name in own) else ""
        raise InputError(f"{folder}: {found}; expected a new folder for --out: choose another{more}")
    if not place.is_dir():
        raise _impossible(folder, f"{place} is a file")
    if not os.access(place, os.W_OK | os.X_OK):
        raise _impossible(folder, f"{place} cannot be written to")


@contextmanager
def claimed(folder: Path, own: Sequence[str] = OWN) -> Iterator[None]:
    """Make a new folder, and hold its lock (`RunLock`). A folder in which nothing is written is removed at the end.

    Args:
        folder: the path.
        own: as for `require_absent`.

    Raises:
        InputError: as for `require_absent`, or another process works in the folder.
    """
    lock = RunPaths(folder).lock
    require_absent(folder, own, but=(lock.name,))
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _impossible(folder, error.strerror) from None
    with RunLock(lock):
        require_absent(folder, own, but=(lock.name,))  # another process may have begun and stopped meanwhile
        try:
            yield
        finally:
            if [each for each in folder.rglob("*") if not each.is_dir()] == [lock]:
                with suppress(OSError):  # raised if a folder is not empty
                    for each in (*sorted(folder.rglob("*"), reverse=True), *made):
                        each.rmdir() if each.is_dir() else each.unlink()


def require_folder(folder: Path) -> None:
    """Check that there is a folder at the path of a run.

    Raises:
        InputError: the path is a file, or does not exist.
    """
    if not folder.is_dir():
        found = "a file" if folder.exists() else "no such folder"
        raise InputError(f"{folder}: {found}; expected the folder of a run")


def _impossible(folder: Path, why: str | None) -> InputError:
    return InputError(f"{folder}: no folder can be made there ({why}); expected a place for --out: choose another")


def create(folder: Path, config: Config, problem: Problem, goals: Sequence[GoalAnswer] = (), reason: str = "") -> None:
    """Create the run's folder atomically: fill a temporary folder, then rename it.

    Args:
        folder: the path of the new folder.
        config: the configuration of the run.
        problem: the labelled demonstrations; no state is positive if goal states are still missing.
        goals: answers about goal states so far.
        reason: the reason for the label rule.

    Raises:
        InputError: the folder cannot be made.
        GraceError: the disk is full.
    """
    folder = Path(os.path.realpath(folder)) if folder.is_symlink() else folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = folder.parent / f".{folder.name}.{secrets.token_hex(4)}"
        temporary.mkdir()
    except OSError as error:
        raise _impossible(folder, error.strerror) from None
    try:
        paths = RunPaths(temporary)
        write_atomically(paths.config, to_toml(config))
        with closing(Store(paths.database, create=True)) as store:
            store.set_problem(problem)
            store.set_meta("label", problem.rule)
            store.set_meta("label_reason", reason)
            method = method_of(config)
            examples = method.examples(config)
            metadata = method.states(config) if examples else problem.metadata
            if metadata.fields:  # an export lists the names: its program reads fields by number
                store.set_meta("fields", numbered(metadata.fields))
            store.set_meta(JUDGED, str(bool(examples)))
            if seen := examples or [item.trajectory for item in problem.items]:
                kind = seen[0].state_kind
                store.set_meta("states", states_fact(kind, (each.states for each in seen)))
                shape = shape_of_actions(each.actions for each in seen)
                store.set_meta("actions", "" if shape is None else str(shape))
                if kind.has_parts:
                    store.set_meta("parts", written(kind.layout(seen[0].states)))
            store.add_goals(goals)
            own(paths.database, store, config)
        try:
            temporary.rename(folder)
        except OSError as error:
            require_absent(folder)
            raise _impossible(folder, error.strerror) from None
    except GraceError as error:  # the user named the folder, not the temporary one
        raise type(error)(str(error).replace(str(temporary), str(folder))) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def own(database: Path, store: Store, config: Config) -> None:
    """Record that this user made the run on this machine, together with its acting settings (`acting.keep`).

    Acting settings run code, read files or send prompts to a server. A token in the store links the run to the record.
    If this user has no record of the token, a new token replaces it.
    """
    token = store.meta("token")
    if acting.kept(token, database) is None:
        token = acting.new_token()
        store.set_meta("token", token)
    acting.keep(token, database, plain_acting(config))


class RunLock:
    """The lock of a run's folder, so that only one process works on the run.

    The lock is an advisory file lock. The kernel releases the lock when the process ends, even by a crash.
    """

    def __init__(self, path: Path) -> None:
        """Acquire the lock.

        Raises:
            InputError: another process holds the lock, the lock file cannot be made, or the folder contains links.
        """
        require_no_links(path.parent)
        self._file = _opened(path)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._file, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise InputError(
                f"{path.parent}: the run is being worked on by process {holder}; "
                "expected a run at rest: wait for it, or stop it first"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Release the lock."""
        os.close(self._file)

    def __enter__(self) -> RunLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def worked_on(folder: Path) -> bool:
    """Whether a process holds the lock of a run's folder, as far as this user can see."""
    try:
        file = os.open(RunPaths(folder).lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def _opened(path: Path) -> int:
    """Open the lock file, or create it. Refuse links, which could lead outside the folder, and pipes."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        file = os.open(path, flags, 0o644)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be opened ({error.strerror}); expected a file that this user may write, or none"
        ) from None
    found = os.fstat(file)
    if stat.S_ISREG(found.st_mode) and found.st_nlink <= 1:
        return file
    os.close(file)
    raise InputError(f"{path}: not a file, or another name of one; expected the lock of a run: remove it")
