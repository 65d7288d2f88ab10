"""Protection against links in folders that come from somebody else.

A symbolic or hard link in the folder of a run could make this program write to a file outside the folder. Archives can
contain both kinds of links. A link in a folder of demonstrations could make this program read any file of the user. So
the program follows only links that the user names directly.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from grace_irl.errors import InputError

BESIDE = ("-wal", "-shm")
"""Suffixes of the extra files that SQLite makes next to a run's database."""


def require_no_links(folder: Path) -> None:
    """Refuse a folder that contains a symbolic or hard link, a pipe, a socket or a device, at any depth.

    Raises:
        InputError: the folder contains such an entry.
    """
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        require_own_file(Path(entry.path))  # accepts a file that has vanished since the listing
        except OSError:  # The folder was deleted or is unreadable. Opening its files later raises the error.
            continue


def require_plain_database(path: Path) -> None:
    """Refuse a database if it or one of SQLite's extra files is a link or not a regular file.

    This function also refuses a rollback journal. Runs have no such journal, and SQLite would delete a file that the
    journal names.

    Raises:
        InputError: one of the files is a link or not a regular file, or there is a rollback journal.
    """
    journal = path.with_name(f"{path.name}-journal")
    if os.path.lexists(journal):
        raise InputError(f"{journal}: a rollback journal; expected the files of a run as fit writes them: remove it")
    for each in (path, *(path.with_name(f"{path.name}{end}") for end in BESIDE)):
        require_own_file(each)


def require_own_file(path: Path) -> None:
    """Refuse a path to a link, or to anything other than a regular file, such as a pipe. Accept a missing file.

    Opening a pipe would block this process.

    Raises:
        InputError: the path is a link, or not a regular file.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return
    if not _plain(found):
        raise _foreign(path)


def _plain(found: os.stat_result) -> bool:
    """Whether a file with this status is a regular file with only one hard link."""
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
    """Refuse a file in a folder if a link on its path leads out of that folder.

    Args:
        file: path of the file, below the folder.
        folder: the folder that the user named. The folder itself may be a link.

    Raises:
        InputError: the file is outside the folder.
    """
    there = Path(os.path.realpath(file))
    if not there.is_relative_to(os.path.realpath(folder)):
        raise InputError(
            f"{file}: a link out of its folder, to {str(there)[:200]!r}; expected files in the folder: copy it there, "
            "or name it itself"
        )
