"""Settings: one declaration gives the flag, the environment variable, the Python keyword, the TOML key and the help.

A section is a class of settings, and each of its fields is declared by `setting`:

    class ToySettings(Section):
        \"\"\"How the toy searches.\"\"\"

        panel: ClassVar[str] = "Search"

        tries: int = setting(10, "Programs to try.", flag="tries", ge=1)

If the section is called `toy`, the TOML key is `toy.tries` (also for `--set toy.tries=20`), the flag `--tries`, the
environment variable `GRACE_IRL_TRIES` and the keyword of `grace_irl.fit` `tries`. Without `flag` these are
`--toy-tries`, `GRACE_IRL_TOY_TRIES` and `toy_tries`; in a section that is `short` they lack the section's name.

A method adds settings by such classes: its `sections` maps names to them (`grace_irl.methods.method.Method`). They
belong to the configuration of a run with that method and of no other; `config.own(ToySettings)` gives the values. Its
`reads` names the settings of all runs that it reads, of those that a method may leave unread. So a run never takes a
setting that its method does not read.

`python docs/settings_page.py` writes what is made from the declarations: docs/settings.md, and the types of
the keywords, `grace_irl/keywords.py`. A test holds both files to the declarations.
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

OPTIONAL = (Union, types.UnionType)


class Section(BaseModel):
    """Settings that belong together.

    Attributes:
        panel: heading of their flags in `--help`.
        short: flags without a name of their own are those of the fields, without that of the section.
        needs: what they have no effect without, if they name nothing else.
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
        default: value without a word of the user.
        help: one line.
        flag: without its dashes; None: made of the names of section and field (`Section.short`); "": no flag.
        shown: the default in words, if the value does not say it.
        unit: of the value, such as "seconds"; for a text, what it is, such as "file".
        panel: heading of the flag in `--help`; "": that of the section.
        common: `fit --help` shows the flag; `--help-all` shows all.
        needs: what the setting has no effect without: a name of `grace_irl.runs.effects`; None: the section's.
        details: further lines for docs/settings.md.
        **limits: of the value, as for `pydantic.Field`.
    """
    made = {"flag": flag, "shown": shown, "unit": unit, "panel": panel, "common": common, "needs": needs}
    return Field(default, description=help, json_schema_extra={**made, "details": details}, **limits)


@dataclass(frozen=True)
class Setting:
    """A declared setting.

    Attributes:
        key: `section.field`, as in TOML.
        kind: bool, int, float or str; of the items, if `many`.
        many: several values, a list in TOML.
        mirrored: an environment variable sets it, too, if it is one value.
        choices: all values of a text, if only these fit.
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
    mirrored: bool = True

    @property
    def keyword(self) -> str:
        """Argument of `grace_irl.fit`."""
        return self.flag.replace("-", "_")

    @property
    def variable(self) -> str:
        """Environment variable; "" for none."""
        return mirror(self.flag) if self.flag and self.mirrored and not self.many else ""


def mirror(flag: str) -> str:
    """The environment variable of a flag."""
    return f"GRACE_IRL_{flag.upper().replace('-', '_')}"


@cache
def declared(section: type[BaseModel], name: str = "") -> Mapping[str, Setting]:
    """All settings of a class, those of the sections within it included, by their keys."""
    found: dict[str, Setting] = {}
    for field, info in section.model_fields.items():
        kind: Any = info.annotation
        key = f"{name}.{field}" if name else field
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= declared(kind, key)
            continue
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
        found[key] = Setting(key, kind, many, choices, info.default, info.description or "", **extra)
    return found


Whole = TypeVar("Whole", bound=BaseModel)


@cache
def with_sections(base: type[Whole], sections: tuple[tuple[str, type[Section]], ...]) -> type[Whole]:
    """A configuration with further sections, each of which is complete without a word of the user."""
    if not sections:
        return base
    fields: dict[str, Any] = {name: (section, section()) for name, section in sections}
    return create_model(base.__name__, __base__=base, __module__=base.__module__, **fields)


def by_keyword(known: Mapping[str, Setting], values: Mapping[str, object]) -> dict[str, object]:
    """Values by key, from values by Python keyword.

    Raises:
        InputError: a keyword that no setting has; it names the nearest.
    """
    keys = {each.keyword: key for key, each in known.items() if each.flag}
    for name in values:
        if name not in keys:
            raise InputError(f"argument {name!r} is unknown; {nearest(name, keys)}")
    return {keys[name]: value for name, value in values.items()}


def nearest(name: str, known: Iterable[str]) -> str:
    """Second half of a message about an unknown name: the nearest one."""
    candidates = list(known)
    candidates += dict.fromkeys(each.partition(".")[0] for each in candidates)
    last = {each.rpartition(".")[2]: each for each in reversed(candidates)}
    close = difflib.get_close_matches(name, candidates, 1)
    close = close or [last[each] for each in difflib.get_close_matches(name.rpartition(".")[2], last, 1)]
    meant = f"did you mean {close[0]}? " if close else ""
    return f"{meant}expected one of docs/settings.md"


def problem_of(error: ValidationError, known: Mapping[str, Setting]) -> str:
    """The first value that does not fit, in one line."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])[:120] or "configuration"
    if first["type"] == "extra_forbidden":
        return f"setting {key!r} is unknown; {nearest(key, known)}"
    return f"setting {key!r} is {reprlib.repr(first['input'])}; expected another value: {first['msg'][:200]}"
