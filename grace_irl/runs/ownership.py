"""Ownership of a folder by this user on this machine: a token in it, and what it stands for outside of it.

The record lies in the user's state directory (`$XDG_STATE_HOME/grace-irl`, by default `~/.local/state/grace-irl`),
which nobody else may write. It names the inode of a file that the folder cannot do without, so that a copy of the
folder, somebody's changed version of it among them, is not the folder; and the settings that act for the user
(`runs/acting.py`), so that a changed one does not count. Containers and clusters without that directory have no
tokens: there the settings are named again on the command line.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grace_irl.atomic import write_atomically
from grace_irl.errors import InputError

_TOKEN = re.compile(r"[0-9a-f]{32}")
_MOST = 1 << 26  # bytes of a record


def new_token() -> str:
    """A token, 32 hex digits, that nobody guesses."""
    return secrets.token_hex(16)


def keep(token: str, anchor: Path, acting: Mapping[str, object]) -> None:
    """Notes that this user made a folder; nothing where the user has no state directory that can be written.

    Args:
        token: that the folder holds.
        anchor: the file (or folder) whose identity is the folder's.
        acting: the settings that act for the user, as JSON has them.
    """
    place = _place()
    if place is None:
        return
    record = {"inode": anchor.stat().st_ino, "acting": acting}
    with contextlib.suppress(OSError, InputError):
        there = next(parent for parent in (place, *place.parents) if parent.exists())
        if os.geteuid() == 0 and there.stat().st_uid != 0:  # root in a user's home would lock the user out
            return
        place.parent.parent.mkdir(parents=True, exist_ok=True)
        for folder in (place.parent, place):
            folder.mkdir(mode=0o700, exist_ok=True)
        write_atomically(place / f"{token}.json", json.dumps(record) + "\n")


def kept(token: str, anchor: Path) -> dict[str, object] | None:
    """The settings that this user gave a folder on this machine; None for anybody else's folder."""
    place = _place()
    if place is None or not _TOKEN.fullmatch(token):
        return None
    try:
        if not _own(place) or anchor.stat().st_uid != os.geteuid():
            return None
        with (place / f"{token}.json").open(encoding="utf-8") as file:
            record: Any = json.loads(file.read(_MOST))
        acting = record["acting"] if record["inode"] == anchor.stat().st_ino else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return acting if isinstance(acting, dict) else None


def _place() -> Path | None:
    """The folder of the records; None for a user without a home."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(base):
        return Path(base) / "grace-irl" / "runs"
    try:
        return Path.home() / ".local" / "state" / "grace-irl" / "runs"
    except RuntimeError:
        return None


def _own(place: Path) -> bool:
    """Whether nobody else can write the records."""
    found = place.stat()
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
