"""Settings that act for the user: code that runs here, files that are read, servers that get prompts and a key.

The user says them with this command's own words: its flags, `--set`, the `GRACE_IRL_*` environment, or arguments in
Python. A file says them only if `kept` vouches that this user wrote the file on this machine (`runs/ownership.py`), or
a run that is trusted already began this one (docs/security.md).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shlex
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from grace_irl.atomic import write_atomically
from grace_irl.config import Config, ModelConfig, ProposerConfig, SandboxConfig
from grace_irl.errors import InputError
from grace_irl.runs.config import flat, resolve, with_settings
from grace_irl.settings import declared

DATA = ("data.demos", "data.negatives")
"""The name that stands for demonstrations in memory."""

PATHS = (*DATA, "data.goals", "proposer.start_from", "proposer.recording")
"""Settings that each run of an expansion has of its own."""

NAMED = (
    *DATA,
    *("proposer.start_from", "proposer.recording", "model.url", "model.context", "expand.env"),
    *("sandbox.wall_s", "sandbox.cpu_s", "sandbox.memory_mb"),
)
"""Settings without which a run would be another one."""

DROPPED = ("data.goals", "expand.trust", "sandbox.allow_weak", "sandbox.workers")
"""Settings that change no result of a run that goes on: without the user's word they have their defaults."""

WORDS_ONLY = ("model.url", "model.context", "expand.env", "expand.trust", "sandbox.allow_weak")
"""Settings that a file (`--config`) never gives."""


def runs_code(env: str) -> bool:
    """Whether the name of an environment chooses code that runs here (`grace_irl.rl.environments.names_code`)."""
    from grace_irl.rl.environments import names_code  # not above: it imports NumPy, and help reads this file

    return names_code(env)


_LIMITS = SandboxConfig()
_ACTS: Mapping[str, Callable[[object], bool]] = {
    "expand.env": lambda value: runs_code(str(value)),  # a registered id runs nothing that is not installed
    "sandbox.wall_s": lambda value: float(str(value)) > _LIMITS.wall_s,
    "sandbox.cpu_s": lambda value: float(str(value)) > _LIMITS.cpu_s,
    "sandbox.memory_mb": lambda value: float(str(value)) > _LIMITS.memory_mb,
}


def acting(config: Config) -> dict[str, object]:
    """The settings of a configuration that act for the user, those at their defaults left out."""
    defaults, found = flat(Config()), flat(config)
    keys = [key for key in (*NAMED, *DROPPED) if found[key] != defaults[key]]
    return {key: found[key] for key in keys if _ACTS.get(key, bool)(found[key])}


def worded(
    file: Path | None, sets: Iterable[str], flags: Mapping[str, object] | None, base: Config | None = None
) -> Config:
    """The configuration of a command: as `resolve`, but a file of settings does not act for the user.

    Raises:
        InputError: as `resolve`; a file that says what only the user says.
    """
    sets = tuple(sets)
    config = resolve(file, sets, flags, base)
    if file is not None:
        said, own = acting(resolve(file)), spoken(sets, flags)
        for key in WORDS_ONLY:
            if key in said and key not in own:
                raise InputError(
                    f"{file}: {key} = {_shown(said[key])}, which a file cannot say for you; "
                    f"expected {_flag(key, said[key])} on the command line, or the file without it"
                )
    return config


def authorised(
    config: Config,
    name: str,
    kept: Mapping[str, object],
    sets: Iterable[str] = (),
    flags: Mapping[str, object] | None = None,
    *,
    vouched: Config | None = None,
    in_memory: bool = False,
) -> Config:
    """The configuration that a folder holds, with only those acting settings that somebody answers for.

    Args:
        config: as the folder holds it.
        name: of the folder, for messages.
        kept: what this user had there on this machine (`ownership.kept`).
        sets, flags: this command's words, as for `resolve`.
        vouched: what a run that is trusted already says of this one.
        in_memory: the demonstrations are brought along, and nobody reads any.

    Raises:
        InputError: settings that nobody answers for; it names the flags.
    """
    words = spoken(tuple(sets), flags)
    theirs = acting(config)
    if "data.demos" in words:  # named anew, they are named whole
        words.setdefault("data.negatives", ())
    changes: dict[str, object] = {}
    missing: list[str] = []
    for key, value in theirs.items():
        if vouched is not None and key not in PATHS:
            changes[key] = flat(vouched)[key]  # the whole may have another server or less trust by now
        elif key in kept and kept[key] == _plain(value):
            continue
        elif key in words:
            changes[key] = words[key]
        elif vouched is not None:
            changes[key] = flat(vouched)[key]
        elif key in DROPPED or (in_memory and key in DATA):
            changes[key] = flat(Config())[key]
        else:
            missing.append(_flag(key, value))
    if missing:
        raise InputError(
            f"{name}: this user did not make it on this machine, or not with these settings, so that what it names "
            f"does not count; expected it on the command line: {', '.join(missing)} (docs/security.md)"
        )
    return with_settings(config, changes)


def shareable(config: Config) -> Config:
    """The settings of a recording: method, search, stop rules and labels, and nothing that acts for the user."""
    data = config.data.model_copy(update={"demos": (), "negatives": (), "goals": ""})
    expand = config.expand.model_copy(update={"trust": False})
    if runs_code(expand.env):
        expand = expand.model_copy(update={"env": ""})
    plain = {"proposer": ProposerConfig(), "model": ModelConfig(), "sandbox": SandboxConfig()}
    return config.model_copy(update={"data": data, "expand": expand, **plain})


def spoken(sets: tuple[str, ...], flags: Mapping[str, object] | None) -> dict[str, object]:
    """Settings of this command's own words."""
    keys = {text.partition("=")[0].strip() for text in sets} | {
        key for key, value in (flags or {}).items() if value is not None
    }
    said = flat(resolve(sets=sets, flags=flags))
    return {key: said[key] for key in keys if key in said}


def _flag(key: str, value: object) -> str:
    """The flag by which the user gives it."""
    flag = declared(Config)[key].flag
    if not flag:
        return f"--set {key}={_shown(value)}"
    return f"--{flag}" if value is True else f"--{flag} {_shown(value)}"


def _shown(value: object) -> str:
    """A value as a shell takes it: whoever copies the line runs nothing that a folder says."""
    if isinstance(value, tuple | list):
        return " ".join(shlex.quote(str(each)) for each in value)
    return str(value).lower() if isinstance(value, bool) else shlex.quote(str(value))


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def plain_acting(config: Config) -> dict[str, object]:
    """`acting` as JSON has it."""
    return {key: _plain(value) for key, value in acting(config).items()}


_TOKEN = re.compile(r"[0-9a-f]{32}")
_MOST = 1 << 26  # bytes of a record


def new_token() -> str:
    """A token, 32 hex digits, that nobody guesses."""
    return secrets.token_hex(16)


def keep(token: str, anchor: Path, acting: Mapping[str, object]) -> None:
    """Notes that this user made a folder; nothing if the user has no state directory that can be written.

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
