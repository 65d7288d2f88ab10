"""Reading, combining, checking and writing the configuration of a run, which its folder keeps as `config.toml`."""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from grace_irl.config import METHOD, Config
from grace_irl.contents import require_own_file
from grace_irl.errors import InputError
from grace_irl.settings import Setting, declared, problem_of, with_sections
from grace_irl.toml import MAX_BYTES, read_toml


def config_of(method: str = METHOD) -> type[Config]:
    """The configuration class for a method, with the sections common to all methods and the method's own sections."""
    from grace_irl.methods.registry import method as method_of

    return with_sections(Config, tuple(method_of(method).sections.items()))


def settings_of(method: str = METHOD) -> Mapping[str, Setting]:
    """All settings of a run with this method, by key, for example `search.population`."""
    return declared(config_of(method))


def method_named(file: Path) -> str:
    """The name of the method in a TOML file, a recording, a run or an expansion; "" if no method is named.

    An unreadable file gives "", too. A later reader of the file raises the error. Pipes are not read, because a pipe
    may never end, and its content can be read only once.

    Args:
        file: the TOML file, the recording, or the folder of the run or expansion.
    """
    folder = file.is_dir()
    files = (file / "config.toml", file / "rounds" / "0" / "run" / "config.toml") if folder else (file,)
    for each in files:
        with contextlib.suppress(InputError):
            if folder:
                require_own_file(each)
            if each.is_file() and _is_object(each):
                return _recorded_method(each)
            if each.is_file():
                return str(read_toml(each, "settings").get("method", ""))
    return ""


def _is_object(file: Path) -> bool:
    """Whether a file begins with a JSON object, as recordings do. No TOML file does."""
    with contextlib.suppress(OSError), file.open("rb") as opened:
        return opened.read(1) == b"{"
    return False


def _recorded_method(recording: Path) -> str:
    """The name of the method in the first line of a recording; "" if there is none."""
    invalid = (OSError, ValueError, KeyError, TypeError, RecursionError)
    with contextlib.suppress(*invalid), recording.open("rb") as file:
        found = json.loads(file.readline(MAX_BYTES))["config"]["method"]
        return found if isinstance(found, str) else ""
    return ""


OPTIONAL = ("data.", "expand.", "search.samples", "stop.target_accuracy")
"""Prefixes of the settings that only some methods read. `Method.reads` lists the prefixes for one method."""
ALWAYS = (
    "data.demos",
    "data.experts",
    "data.negatives",
    "data.kind",
    "data.state_columns",
    "data.episode_column",
)
"""The settings that every method reads, although they begin with a prefix in `OPTIONAL`."""


def is_read(key: str, method: str, task: str = "") -> bool:
    """Return whether a setting has an effect with a method. `task` is the task of the run, "" for none.

    Raises:
        InputError: an unknown method.
    """
    from grace_irl.methods.registry import judged_by

    return key in ALWAYS or not key.startswith(OPTIONAL) or key.startswith(judged_by(method, task).reads)


def other_methods(name: str, method: str, form: Callable[[str], str] = str) -> str:
    """The names of the other methods that read a setting, such as "eureka, forge or grace"; "" if there are none.

    Args:
        name: key, section or flag of the setting, for example `search.elite`, `search` or `--elite`.
        method: the method that does not read the setting.
        form: function that writes each name, for example `repr`.
    """
    from grace_irl.methods.registry import names

    found: list[str] = []
    for other in names():
        with contextlib.suppress(InputError):  # the package of a method cannot be loaded
            known = settings_of(other).values() if other != method else ()
            if any(
                name in (f"--{each.flag}", each.key, each.key.partition(".")[0]) and is_read(each.key, other)
                for each in known
            ):
                found.append(form(other))
    return " or ".join(filter(None, (", ".join(found[:-1]), *found[-1:])))


def key_of_flag(flag: str) -> str:
    """The key of the setting with this flag, of any method, such as `policy.train_steps`; "" if there is none."""
    from grace_irl.methods.registry import names

    for method in names():
        with contextlib.suppress(InputError):  # the package of a method cannot be loaded
            for each in settings_of(method).values():
                if each.flag and flag == f"--{each.flag}":
                    return each.key
    return ""


def _foreign(tree: Mapping[str, Any], method: str, wrote: object) -> set[str]:
    """Keys of settings in `tree` whose values are only the defaults of another method.

    A run with `method` can ignore a setting in two cases:

    - `method` lacks the setting, and the value is the default of any other method;
    - a run with another method wrote the setting, and the value is the default of that method.

    Args:
        tree: values by section and key.
        method: the method of the new run.
        wrote: the method in `tree` before the command changed it; None if `tree` names no method.
    """
    from grace_irl.methods.registry import names

    known = settings_of(method)
    values = {
        f"{name}.{field}": tuple(value) if isinstance(value, list) else value
        for name, values in tree.items()
        for field, value in (values.items() if isinstance(values, dict) else ())
    }
    lacked = values.keys() - known.keys()
    found: set[str] = set()
    for other in names() if lacked or wrote not in (None, method) else ():
        with contextlib.suppress(InputError):  # the package of a method cannot be loaded
            theirs = settings_of(other)
            keys = theirs.keys() & (values.keys() if other == wrote != method else lacked)
            found |= {key for key in keys if theirs[key].default == values[key]}
    return found


def validated(tree: Mapping[str, Any]) -> Config:
    """A configuration from nested mappings of values. Missing sections and values get their defaults.

    Raises:
        InputError: an unknown method or key, or an invalid value.
    """
    name = tree.get("method", METHOD)
    kind = config_of(name) if isinstance(name, str) else Config
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        key = ".".join(str(part) for part in error.errors()[0]["loc"])
        if error.errors()[0]["type"] == "extra_forbidden" and (other := other_methods(key, str(name))):
            raise InputError(
                f"setting {key!r} has no effect with method {name!r}; expected it with --method {other}, or left out"
            ) from None
        raise InputError(problem_of(error, declared(kind))) from None


def resolve(
    file: Path | None = None,
    sets: Iterable[str] = (),
    flags: Mapping[str, object] | None = None,
    base: Config | None = None,
) -> Config:
    """The defaults or `base`, overridden by a TOML file, then by `section.key=value` texts, then by flags.

    The file and `base` may come from a run with another method. A setting of the file is dropped if its value is only
    the default of the other method, and one of `base` if the method lacks it. In paths, `~` becomes the home directory.

    Args:
        file: a TOML file with the sections of `config.toml`.
        sets: texts of the form `section.key=value`. The value has TOML syntax, or is a string without quotes.
        flags: values by `section.key`; None for a flag that is not given, "none" for one that unsets its value.
        base: the configuration to start from, in place of the defaults.

    Raises:
        InputError: an unknown key, an invalid value, or a file that cannot be read.
    """
    sets = tuple(sets)
    tree: dict[str, Any] = {} if base is None else base.model_dump()
    written = {} if file is None else read_toml(file, "a TOML file of settings, such as a run's config.toml")
    _merge(tree, written)
    wrote = tree.get("method")
    for text in sets:
        key, found, value = text.partition("=")
        if not found:
            raise InputError(f"--set {text!r}: no '='; expected section.key=value, such as search.population=40")
        _put(tree, key.strip(), parsed(value.strip()))
    said = {key: flag for key, flag in (flags or {}).items() if flag is not None}
    for key, flag in said.items():
        _put(tree, key, None if flag == "none" else flag)
    name = tree.get("method", METHOD)
    said_keys = {text.partition("=")[0].strip() for text in sets} | said.keys()
    foreign = _foreign(tree, name, wrote) if isinstance(name, str) else set()
    if base is not None and base.method != name and isinstance(name, str):
        known = settings_of(name)
        foreign |= {key for key in flat(base) if "." in key and key not in known and not _names(written, key)}
    for key in foreign - said_keys:
        section, _, field = key.partition(".")
        if not isinstance(tree.get(section), dict):
            continue  # an invalid value, which `validated` refuses
        del tree[section][field]
        if not tree[section]:
            del tree[section]
    return _at_home(validated(tree))


def _names(tree: Mapping[str, Any], key: str) -> bool:
    """Whether nested mappings have a value for `section.key`."""
    section, _, field = key.partition(".")
    return isinstance(tree.get(section), dict) and field in tree[section]


def flat(config: BaseModel) -> dict[str, object]:
    """All settings of a configuration by `section.key`, in one flat mapping."""
    found: dict[str, object] = {}
    for key, value in config.model_dump().items():
        found |= {f"{key}.{name}": entry for name, entry in value.items()} if isinstance(value, dict) else {key: value}
    return found


def with_settings(config: Config, changes: Mapping[str, object]) -> Config:
    """A copy of the configuration with changed values.

    Args:
        config: the configuration.
        changes: new values by `section.key`.
    """
    tree = config.model_dump()
    for key, value in changes.items():
        _put(tree, key, value)
    return validated(tree) if changes else config


LOCATED = (
    *("data.demos", "data.experts", "data.negatives", "data.goals"),
    *("proposer.start_from", "proposer.recording", "model.context"),
)
"""Settings whose values are paths or other names, such as Minari ids. A value is a path if the file exists."""


def _at_home(config: Config) -> Config:
    """A copy of the configuration with the home directory in place of `~`.

    A shell does not expand `~` in settings files and environment variables.
    """
    known = flat(config)
    homely = {key: _expanded(known[key]) for key in (*LOCATED, "policy.task", "expand.env") if known.get(key)}
    return with_settings(config, {key: value for key, value in homely.items() if value != known[key]})


def _expanded(value: object) -> object:
    return tuple(map(_expanded, value)) if isinstance(value, tuple) else os.path.expanduser(str(value))


def located_path(name: str) -> str:
    """Make an existing path absolute. Return any other name, such as a Minari id, unchanged."""
    return str(Path(name).absolute()) if name and Path(name).exists() else name


def located_function(name: str) -> str:
    """Make the path of an existing file in `file.py:function` absolute. Return any other name unchanged."""
    where, colon, function = name.rpartition(":")
    return f"{located_path(where)}:{function}" if colon and where.endswith(".py") else name


def located(config: Config) -> Config:
    """A copy of the configuration with absolute paths, so that a user can resume the run from any directory."""
    known = flat(config)
    paths = {key: known[key] for key in LOCATED}
    if str(known.get("policy.task", "")).endswith(".toml"):  # other values name tasks that ship with grace-irl
        paths["policy.task"] = known["policy.task"]
    return with_settings(
        config,
        {
            key: tuple(map(located_path, value)) if isinstance(value, tuple) else located_path(str(value))
            for key, value in paths.items()
        }
        | {"expand.env": located_function(config.expand.env)},
    )


def to_toml(config: BaseModel) -> str:
    """The text of a configuration in TOML. TOML has no null, so None becomes the string "none"."""
    top, tables = [], []
    for key, value in config.model_dump().items():
        if isinstance(value, dict):
            tables.append(f"\n[{key}]")
            tables += [_line(name, entry) for name, entry in value.items()]
        else:
            top.append(_line(key, value))
    return "\n".join([*top, *tables]) + "\n"


def _line(key: str, value: object) -> str:
    if value is None:
        return f'{key} = "none"'
    return f"{key} = {_literal(value)}"


def _literal(value: object) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_literal(entry) for entry in value) + "]"
    if isinstance(value, str):
        # JSON and TOML escape the same characters, except that TOML also escapes DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def _merge(tree: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(tree.setdefault(key, {}), dict):
            _merge(tree[key], value)
        else:
            tree[key] = None if value == "none" else value


def _put(tree: dict[str, Any], key: str, value: object) -> None:
    *sections, name = key.split(".")
    for section in sections:
        tree = tree.setdefault(section, {})
        if not isinstance(tree, dict):
            raise InputError(f"setting {key!r}: {section!r} is not a section; expected section.key")
    tree[name] = value


def parsed(text: str) -> object:
    """Parse a value in TOML syntax. The text "none" gives None, and invalid TOML gives the text itself."""
    if text.lower() == "none":
        return None
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except (ValueError, RecursionError):  # invalid TOML, or a number with more digits than Python accepts
        return text
