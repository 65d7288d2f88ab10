"""One process at a time works on a run."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path
from types import TracebackType

from grace_irl.contents import require_no_links
from grace_irl.errors import InputError


class RunLock:
    """An advisory lock on a file, released by the kernel when its process dies, however it dies."""

    def __init__(self, path: Path) -> None:
        """Takes the lock.

        Raises:
            InputError: a live process holds it, no file can be made there, or its folder leads elsewhere.
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
        """Lets go."""
        os.close(self._file)

    def __enter__(self) -> RunLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _opened(path: Path) -> int:
    """The file, made where it is not there; never what a link leads to, and never a pipe that is waited for."""
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
