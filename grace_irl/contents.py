"""Contents of folders that somebody else may have filled: files and folders of their own, and no way out.

Folders are passed on. A link in the folder of a run would have us write to its target; so would a hard link, which
archives can hold, too. Whoever names a folder of demonstrations has not seen its links: one of them may lead to any
file of theirs. Whoever names a link means what it leads to.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from grace_irl.errors import InputError

BESIDE = ("-wal", "-shm")
"""Suffixes of the files that SQLite keeps beside a run's database."""


def require_no_links(folder: Path) -> None:
    """Refuses a folder that holds a link of either kind, a pipe, a socket or a device, however deep.

    Raises:
        InputError: it does.
    """
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not _plain(entry.stat(follow_symlinks=False)):
                        raise _foreign(Path(entry.path))
        except OSError:  # gone meanwhile, or not ours to read: who opens it will say so
            continue


def require_plain_database(path: Path) -> None:
    """Refuses a database that is no file itself, or has something else than files beside it.

    A rollback journal is refused, too: a run never has one, and SQLite deletes the file that a journal names.

    Raises:
        InputError: it is.
    """
    journal = path.with_name(f"{path.name}-journal")
    if os.path.lexists(journal):
        raise InputError(f"{journal}: a rollback journal; expected the files of a run as fit writes them: remove it")
    for each in (path, *(path.with_name(f"{path.name}{end}") for end in BESIDE)):
        require_own_file(each)


def require_own_file(path: Path) -> None:
    """Refuses what is there under this name and is no file itself; a pipe would be waited for.

    Raises:
        InputError: it is.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return
    if not _plain(found):
        raise _foreign(path)


def _plain(found: os.stat_result) -> bool:
    """Whether it is a file, and no other name of another one."""
    return stat.S_ISREG(found.st_mode) and found.st_nlink <= 1


def _foreign(path: Path) -> InputError:
    kind = (
        "a symbolic link" if path.is_symlink() else "a hard link" if path.is_file() else "neither a file nor a folder"
    )
    return InputError(
        f"{path}: {kind}; expected files and folders alone in the folder of a run: "
        "remove it, or put what it stands for in its place"
    )


def require_inside(file: Path, folder: Path) -> None:
    """Refuses a file of a folder that lies elsewhere, through a link to it or to a folder on the way.

    Args:
        file: below the folder, by its name.
        folder: as the user named it, which may be a link itself.

    Raises:
        InputError: it leads out of the folder.
    """
    there = Path(os.path.realpath(file))
    if not there.is_relative_to(os.path.realpath(folder)):
        raise InputError(
            f"{file}: a link out of its folder, to {str(there)[:200]!r}; expected files in the folder: copy it there, "
            "or name it itself"
        )
