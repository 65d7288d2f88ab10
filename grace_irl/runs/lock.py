"""One process at a time works on a run."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from grace_irl.errors import InputError


class RunLock:
    """An advisory lock on a file, released by the kernel when its process dies, however it dies."""

    def __init__(self, path: Path) -> None:
        """Takes the lock.

        Raises:
            InputError: a live process holds it.
        """
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
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
