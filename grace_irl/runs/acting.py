"""Authorisation of acting settings, which run code on this machine, read files, or send prompts to a server.

Two other kinds of settings also count as acting: `policy.recorded_scores`, because it takes scores from somebody's
recording, and settings of the sandbox that weaken it, raise its limits or choose its number of workers.

The user gives acting settings with the command: as flags, `--set`, `GRACE_IRL_*` variables, or arguments in Python. A
folder from somebody else must not choose them (docs/security.md). So acting settings in a run's folder are valid in two
cases only: this user made the folder on this machine (`kept`), or the run is part of a trusted expansion
(`fit --expand`) or comparison (`grace-irl compare`).
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
from grace_irl.config import METHOD, Config, ModelConfig, ProposerConfig, SandboxConfig
from grace_irl.errors import InputError
from grace_irl.pages import page
from grace_irl.runs.config import flat, resolve, with_settings
from grace_irl.settings import declared

DATA = ("data.demos", "data.experts", "data.negatives")
"""Settings that name the files of demonstrations."""

PATHS = (*DATA, "data.goals", "proposer.start_from", "proposer.recording")
"""Acting settings that may differ between the runs of an expansion. The runs share all other acting settings."""

NAMED = (
    *DATA,
    *("proposer.start_from", "proposer.recording", "model.url", "model.context", "expand.env"),
    *("policy.task", "policy.recorded_scores", "sandbox.wall_s", "sandbox.cpu_s", "sandbox.memory_mb"),
)
"""Acting settings that affect the result of a run. To resume somebody else's run, the user must give them again."""

DROPPED = ("data.goals", "expand.trust", "sandbox.allow_weak", "sandbox.workers")
"""Acting settings that do not affect the result of a run. If the user resumes somebody else's run without giving these
settings again, they get their defaults."""

SERVER = "OPENAI_BASE_URL"
"""Environment variable of other tools that names a server. The variable counts as a setting of the user only with
`--proposer llm`, because the user may have set it for the other tools alone."""

WORDS_ONLY = (
    *("model.url", "model.context", "policy.task", "policy.recorded_scores"),
    *("expand.env", "expand.trust", "sandbox.allow_weak"),
)
"""Settings that a file (`--config`) may contain only if the command itself gives them, too."""


def runs_code(env: str) -> bool:
    """Whether an environment's name, such as `file.py:make`, selects code that runs on this machine."""
    from grace_irl.rl.environments import names_code  # imports NumPy, which --help should not load

    return names_code(env)


_LIMITS = SandboxConfig()
_ACTS: Mapping[str, Callable[[object], bool]] = {
    "expand.env": lambda value: runs_code(str(value)),  # a registered id only runs installed code
    "sandbox.wall_s": lambda value: float(str(value)) > _LIMITS.wall_s,
    "sandbox.cpu_s": lambda value: float(str(value)) > _LIMITS.cpu_s,
    "sandbox.memory_mb": lambda value: float(str(value)) > _LIMITS.memory_mb,
}
"""Functions by key of a setting. Each function returns whether a value makes the setting acting. For the settings of
`NAMED` and `DROPPED` without a function, any non-empty value does."""


def acting(config: Config) -> dict[str, object]:
    """The acting settings of a configuration that differ from their defaults."""
    defaults, found = flat(Config()), flat(config)
    keys = [key for key in (*NAMED, *DROPPED) if key in found and found[key] != defaults.get(key, "")]
    return {key: found[key] for key in keys if _ACTS.get(key, bool)(found[key])}


def worded(
    file: Path | None, sets: Iterable[str], flags: Mapping[str, object] | None, base: Config | None = None
) -> Config:
    """The configuration of a command. It is the result of `resolve`, with a check of the settings in `WORDS_ONLY`.

    If the command itself gives the proposer "llm", and no setting names a server, the variable `SERVER` names one.

    Args:
        file: the file of `--config`, or None.
        sets: texts of the form `section.key=value` (`--set`).
        flags: values by `section.key`; None for a flag that is not given.
        base: the configuration to start from, for example that of a recorded run; None for the defaults. If the command
            or the file names demonstrations, they replace those of `base`.

    Raises:
        InputError: `resolve` fails, or the file contains a setting in `WORDS_ONLY` that the command does not give.
    """
    sets = tuple(sets)
    config = resolve(file, sets, flags, base)
    own = spoken(sets, flags, config.method)
    said = {} if file is None else acting(resolve(file))
    if base is not None and _names_data(own | said):
        config = resolve(file, sets, flags, with_settings(base, dict.fromkeys(DATA, ())))
    if file is not None:
        for key in WORDS_ONLY:
            if key in said and key not in own:
                raise InputError(
                    f"{file}: {key} = {_shown(said[key])}, which a settings file must not give; "
                    f"expected {_flag(key, said[key], type(config))} on the command line, or the file without it"
                )
    address = os.environ.get(SERVER, "").strip()
    if address and not config.model.url and own.get("proposer.name") == "llm":
        config = with_settings(config, {"model.url": address})
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
    """The configuration of a folder, with authorised acting settings only.

    Args:
        config: the configuration in the folder.
        name: the folder's name, for messages.
        kept: acting settings that this user has given for the folder on this machine, from the function `kept`.
        sets: settings that this command gives as texts of the form `section.key=value`.
        flags: settings that this command gives as flags, by `section.key`.
        vouched: configuration that a trusted expansion or comparison gives for this run; None for a separate run.
        in_memory: whether the caller passes the demonstrations, so that no demonstration file is read.

    Raises:
        InputError: settings without authorisation. The message lists the flags with which the user can give them.
    """
    words = spoken(tuple(sets), flags, config.method)
    theirs = acting(config)
    anew = _names_data(words)
    if anew:
        for key in DATA:
            words.setdefault(key, ())
    changes: dict[str, object] = {}
    missing: list[str] = []
    for key, value in theirs.items():
        if vouched is not None and key not in PATHS:
            changes[key] = flat(vouched)[key]  # the value for the whole expansion, which the user may have changed
        elif key in kept and kept[key] == _plain(value) and not (anew and key in DATA and vouched is None):
            continue
        elif key in words:
            changes[key] = words[key]
        elif vouched is not None:
            changes[key] = flat(vouched)[key]
        elif key in DROPPED or (in_memory and key in DATA):
            changes[key] = flat(Config())[key]
        else:
            missing.append(_flag(key, value, type(config)))
    if missing:
        raise InputError(
            f"{name}: this user did not make it on this machine, or not with these settings, so its settings "
            f"are not trusted; expected on the command line: {', '.join(missing)} ({page('security')})"
        )
    return with_settings(config, changes)


def _names_data(words: Mapping[str, object]) -> bool:
    """Whether the user's settings name demonstrations. These then replace the demonstrations of an earlier run."""
    return "data.demos" in words or "data.experts" in words


def shareable(config: Config) -> Config:
    """The settings that an exported recording contains: method, search, stop rules and labels, no acting settings."""
    data = config.data.model_copy(update={**{key.partition(".")[2]: () for key in DATA}, "goals": ""})
    expand = config.expand.model_copy(update={"trust": False})
    if runs_code(expand.env):
        expand = expand.model_copy(update={"env": ""})
    plain: dict[str, object] = {
        "proposer": ProposerConfig(),
        "model": ModelConfig(),
        "sandbox": SandboxConfig(),
    }
    policy = getattr(config, "policy", None)
    if policy is not None:
        plain["policy"] = policy.model_copy(update={"task": "", "recorded_scores": False})
    return config.model_copy(update={"data": data, "expand": expand, **plain})


def spoken(sets: tuple[str, ...], flags: Mapping[str, object] | None, method: str = METHOD) -> dict[str, object]:
    """The settings that this command gives, with their values. `method` decides which settings are known."""
    keys = {text.partition("=")[0].strip() for text in sets} | {
        key for key, value in (flags or {}).items() if value is not None
    }
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    said = flat(resolve(sets=sets, flags={"method": method, **given}))
    return {key: said[key] for key in keys if key in said}


def _flag(key: str, value: object, kind: type[Config] = Config) -> str:
    """The flag that gives a setting this value. `kind` is the class of the configuration."""
    flag = declared(kind)[key].flag
    if not flag:
        return f"--set {key}={_shown(value)}"
    return f"--{flag}" if value is True else f"--{flag} {_shown(value)}"


def _shown(value: object) -> str:
    """A value quoted for a shell, so that a copied command line runs no code from somebody else's folder."""
    if isinstance(value, tuple | list):
        return " ".join(shlex.quote(str(each)) for each in value)
    return str(value).lower() if isinstance(value, bool) else shlex.quote(str(value))


def named_data(config: Config) -> str:
    """The flags that name the demonstrations of a configuration, such as `--demos one two`; "" for none."""
    said = acting(config)
    return " ".join(_flag(key, said[key], type(config)) for key in DATA if key in said)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def plain_acting(config: Config) -> dict[str, object]:
    """The settings of `acting` as JSON values: lists in place of tuples."""
    return {key: _plain(value) for key, value in acting(config).items()}


_TOKEN = re.compile(r"[0-9a-f]{32}")
_MOST = 1 << 26  # maximum size of a record in characters


def new_token() -> str:
    """A random token of 32 hex digits, which nobody can guess. It links a folder to its record."""
    return secrets.token_hex(16)


def keep(token: str, anchor: Path, acting: Mapping[str, object]) -> None:
    """Record in the user's state directory that this user made a folder. Do nothing if the directory is not writable.

    Args:
        token: the token in the folder.
        anchor: the file that contains the token. The file's inode distinguishes the folder from its copies.
        acting: the acting settings that the user gave, as JSON values.
    """
    place = _place()
    if place is None:
        return
    record = {"inode": anchor.stat().st_ino, "acting": acting}
    with contextlib.suppress(OSError, InputError):
        there = next(parent for parent in (place, *place.parents) if parent.exists())
        if os.geteuid() == 0 and there.stat().st_uid != 0:  # files of root in a user's home would lock the user out
            return
        place.parent.parent.mkdir(parents=True, exist_ok=True)
        for folder in (place.parent, place):
            folder.mkdir(mode=0o700, exist_ok=True)
        write_atomically(place / f"{token}.json", json.dumps(record) + "\n")


def kept(token: str, anchor: Path) -> dict[str, object] | None:
    """The acting settings in the record of a folder; None if this user did not make the folder on this machine."""
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
    """The directory of the records; None for a user without a home directory."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(base):
        return Path(base) / "grace-irl" / "runs"
    try:
        return Path.home() / ".local" / "state" / "grace-irl" / "runs"
    except RuntimeError:
        return None


def _own(place: Path) -> bool:
    """Whether this user owns the directory of the records, and nobody else can write into it."""
    found = place.stat()
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
