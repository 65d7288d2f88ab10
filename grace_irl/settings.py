"""Declaration of settings.

One declaration defines a setting's flag, environment variable, Python keyword, TOML key and help text.
A section is a class of settings, and each of its fields is declared by `setting`:

    class ToySettings(Section):
        \"\"\"Settings of the toy search.\"\"\"

        panel: ClassVar[str] = "Search"

        tries: int = setting(10, "Programs to try.", flag="tries", ge=1)

If the section's name is `toy`, this setting has

- the TOML key `toy.tries`, also for `--set toy.tries=20`;
- the flag `--tries`;
- the environment variable `GRACE_IRL_TRIES`;
- the keyword `tries` of `grace_irl.fit`.

Without the argument `flag`, the flag, variable and keyword would be `--toy-tries`, `GRACE_IRL_TOY_TRIES` and
`toy_tries`. If the class sets `short = True`, these default names omit the name of the section.

A search method (`grace_irl.methods.method.Method`) defines its own settings in such classes; `Method.sections` maps
section names to the classes. Only runs with this method have these settings; `config.own(ToySettings)` returns their
values. Some settings of `grace_irl.config` are optional: a method may ignore them. `grace_irl.runs.config.OPTIONAL`
lists the prefixes of their keys, such as `expand.` for all settings of section `expand`. `Method.reads` lists the
prefixes of the optional settings that the method reads. Runs with the method refuse values for all other optional
settings.

`python docs/settings_page.py` generates two files from the declarations: docs/settings.md, and `grace_irl/keywords.py`
with the types of the keywords. A test checks that both are up to date.
"""

from __future__ import annotations

import difflib
import reprlib
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from grace_irl.errors import InputError
from grace_irl.pages import page

OPTIONAL = (Union, types.UnionType)
"""Origins of the types of settings that may be None, such as `int | None`."""


class Section(BaseModel):
    """A group of settings.

    Attributes:
        panel: heading of the flags in `--help`.
        short: whether default flags consist of the field's name only, without the section's name.
        needs: default of the argument `needs` of `setting`, for all settings of the section.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    panel: ClassVar[str] = ""
    short: ClassVar[bool] = False
    needs: ClassVar[str] = ""


def setting(
    default: object,
    help: str,
    *,
    flag: str | None = None,
    shown: str = "",
    unit: str = "",
    panel: str = "",
    common: bool = False,
    needs: str | None = None,
    details: str = "",
    **limits: Any,
) -> Any:
    """Declare a field of a section.

    Args:
        default: the default value.
        help: help text in one line.
        flag: flag without leading dashes; None: a flag made of the names of section and field; "": no flag.
        shown: the default in words, if the value alone is not clear.
        unit: unit of a number, such as "seconds", or the kind of a text, such as "file".
        panel: heading of the flag in `--help`; "": the section's heading.
        common: whether `fit --help` shows the flag. `--help-all` shows every flag.
        needs: names of conditions in `grace_irl.runs.effects.NEEDS`, such as "goals" or "prompts, no task". The setting
            has an effect only if all of them hold. "": no condition; None: as in the section.
        details: further text for docs/settings.md.
        **limits: limits of the value, as for `pydantic.Field`.
    """
    made = {"flag": flag, "shown": shown, "unit": unit, "panel": panel, "common": common, "needs": needs}
    return Field(default, description=help, json_schema_extra={**made, "details": details}, **limits)


@dataclass(frozen=True)
class Setting:
    """A declared setting.

    Attributes:
        key: `section.field`, as in TOML.
        kind: type of the value (or of each item, if `many`): bool, int, float or str.
        many: whether the value is a list.
        optional: whether the value may be None. Users then write "none".
        mirrored: whether the setting may have an environment variable. A list never has a variable.
        choices: allowed values of a text; () if any text is allowed.
        default, help, flag, panel, shown, unit, common, needs, details: as declared, see `setting`.
    """

    key: str
    kind: type
    many: bool
    choices: tuple[str, ...]
    default: Any
    help: str
    flag: str
    panel: str
    shown: str = ""
    unit: str = ""
    common: bool = False
    needs: str = ""
    details: str = ""
    optional: bool = False
    mirrored: bool = True

    @property
    def keyword(self) -> str:
        """The setting's keyword of `grace_irl.fit`, for example `held_out`."""
        return self.flag.replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable; "" if there is none."""
        return mirror(self.flag) if self.flag and self.mirrored and not self.many else ""


def mirror(flag: str) -> str:
    """The environment variable of a flag."""
    return f"GRACE_IRL_{flag.upper().replace('-', '_')}"


@cache
def declared(section: type[BaseModel], name: str = "") -> Mapping[str, Setting]:
    """All settings of a configuration class and its sections, by key.

    Args:
        section: the configuration class, or a single section.
        name: first part of all keys: the section's name, or "" for a configuration class.
    """
    found: dict[str, Setting] = {}
    for field, info in section.model_fields.items():
        kind: Any = info.annotation
        key = f"{name}.{field}" if name else field
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= declared(kind, key)
            continue
        optional = get_origin(kind) in OPTIONAL and type(None) in get_args(kind)
        if get_origin(kind) in OPTIONAL:
            kind = next(each for each in get_args(kind) if each is not type(None))
        many = get_origin(kind) is tuple
        choices = tuple(map(str, get_args(kind))) if get_origin(kind) is Literal else ()
        extra: dict[str, Any] = dict(info.json_schema_extra) if isinstance(info.json_schema_extra, dict) else {}
        if extra.get("flag") is None:
            extra["flag"] = (field if getattr(section, "short", False) else key).replace(".", "-").replace("_", "-")
        if extra.get("needs") is None:
            extra["needs"] = getattr(section, "needs", "")
        extra["panel"] = extra.get("panel") or getattr(section, "panel", "")
        kind = get_args(kind)[0] if many else str if choices else kind
        found[key] = Setting(key, kind, many, choices, info.default, info.description or "", optional=optional, **extra)
    return found


Whole = TypeVar("Whole", bound=BaseModel)


@cache
def with_sections(base: type[Whole], sections: tuple[tuple[str, type[Section]], ...]) -> type[Whole]:
    """A configuration class with additional sections. All settings of these sections need defaults."""
    if not sections:
        return base
    fields: dict[str, Any] = {name: (section, section()) for name, section in sections}
    return create_model(base.__name__, __base__=base, __module__=base.__module__, **fields)


def by_keyword(known: Mapping[str, Setting], values: Mapping[str, object]) -> dict[str, object]:
    """Rename values from keywords of `grace_irl.fit` to keys, for example from `held_out` to `data.held_out`.

    Raises:
        InputError: an unknown keyword. The message suggests a similar keyword, if there is one.
    """
    keys = {each.keyword: key for key, each in known.items() if each.flag}
    for name in values:
        if name not in keys:
            raise InputError(f"argument {name!r} is unknown; {nearest(name, keys)}")
    return {keys[name]: value for name, value in values.items()}


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error message about an unknown name. This end suggests a similar known name, if there is one."""
    candidates = list(known)
    candidates += dict.fromkeys(each.partition(".")[0] for each in candidates)
    last = {each.rpartition(".")[2]: each for each in reversed(candidates)}
    close = difflib.get_close_matches(name, candidates, 1)
    close = close or [last[each] for each in difflib.get_close_matches(name.rpartition(".")[2], last, 1)]
    meant = f"did you mean {close[0]}? " if close else ""
    return f"{meant}expected one of {page('settings')}"


def problem_of(error: ValidationError, known: Mapping[str, Setting]) -> str:
    """An error message about the first invalid value, in one line."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])[:120] or "configuration"
    if first["type"] == "extra_forbidden":
        flags = {each.flag.replace("-", "_"): name for name, each in known.items() if each.flag}
        if meant := flags.get(key.rpartition(".")[2].replace("-", "_")):
            return f"setting {key!r} is unknown; expected {meant}, the setting of --{known[meant].flag}"
        return f"setting {key!r} is unknown; {nearest(key, known)}"
    said = first["msg"].removeprefix("Value error, ")
    return f"setting {key!r} is {reprlib.repr(first['input'])}; expected another value: {said[:200]}"
