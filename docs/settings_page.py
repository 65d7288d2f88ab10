"""Writes what is made from the declarations of settings: docs/settings.md, and the types of the keywords of `fit`.

python docs/settings_page.py          write them
python docs/settings_page.py --check  compare them
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterable
from pathlib import Path

from grace_irl.compare.settings import Comparison
from grace_irl.config import Config
from grace_irl.methods.registry import METHODS
from grace_irl.runs.config import settings_of
from grace_irl.settings import Section, Setting, declared

ROOT = Path(__file__).resolve().parent.parent
PAGE_PATH, KEYWORDS_PATH = ROOT / "docs" / "settings.md", ROOT / "grace_irl" / "keywords.py"

PAGE = """\
# Settings

`python docs/settings_page.py` writes this page from the declarations in the code.

A setting of a run has one name, its *key*, in TOML (`section.key`: a line `key = value` in the table `[section]`) and
for `--set section.key=value`. Its flag of `grace-irl fit` stands beside it. The flag gives the keyword of
`grace_irl.fit` (`--held-out`: `held_out=`) and the environment variable (`GRACE_IRL_HELD_OUT`); flags that take several
values (…) have no variable.

Precedence: defaults, `--config FILE`, `--set`, environment variables, flags. `none` (in a file and in Python `"none"`)
unsets a value. In paths `~` is the home directory. A file must not give settings that act for the user
([security.md](security.md#settings-that-act)). An unknown key is refused, and the line names the nearest key.

A setting that the user gives and that changes nothing in the run is refused, too: `--temperature` without a model,
`--env-steps` without `--expand`, `--max-cost` without a price, or a setting of another method. Defaults are not given,
and a file gives only those of its values that differ from the defaults. So a run repeats by `--config RUN/config.toml`.

`grace-irl fit --help` shows the flags that most runs need, `grace-irl fit --help-all` all of them,
and `grace-irl fit --method NAME --help-all` those of another method. With `--method NAME`, `--help` shows the flags of
its search, too.
"""
COMPARISON = """
# Settings of a comparison

`grace-irl compare` takes these, and of the settings above those that `grace-irl compare --help-all` shows as flags; it
takes all others by `--set` and `--config`. They have no environment variables and stand in `compare.toml`.

"""


def page() -> str:
    """docs/settings.md."""
    parts = [PAGE, "\n## The whole run\n\n", _table(each for each in declared(Config).values() if "." not in each.key)]
    for name, info in Config.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            parts += [f"\n## `{name}`\n\n{inspect.getdoc(kind)}\n\n", _table(declared(kind, name).values())]
    common = declared(Config)
    sections = dict.fromkeys(entry for method in METHODS.values() for entry in method.sections.items())
    for name, section in sections:
        readers = [f"`{each.name}`" for each in METHODS.values() if each.sections.get(name) is section]
        title = f"\n## `{name}`, of {' and '.join(readers)}\n\n{inspect.getdoc(section)}\n\n"
        parts += [title, _table(each for key, each in declared(section, name).items() if each != common.get(key))]
    return "".join([*parts, COMPARISON, _table(declared(Comparison).values())])


def _table(settings: Iterable[Setting]) -> str:
    rows = ["| key | flag | default | unit | meaning |", "|---|---|---|---|---|"]
    for each in settings:
        flag = f"`--{each.flag}`" + (" …" if each.many else "") if each.flag else ""
        default, meaning = each.shown or _plain(each.default), f"{each.help} {each.details}".strip()
        rows.append(f"| `{each.key}` | {flag} | {default} | {each.unit} | {meaning} |")
    return "\n".join(rows) + "\n"


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value in (None, "", ()) else f"{value:,}" if isinstance(value, int) else str(value)


KEYWORDS = '''\
"""Types of the keywords of `grace_irl.fit`; `python docs/settings_page.py` writes this file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

Paths = str | Path | Sequence[str | Path]


class FitSettings(TypedDict, total=False):
    """Settings of a run, which override those of a file. It lists the settings of all methods."""

'''
ARGUMENTS = ("demos", "experts", "negatives", "proposer")
"""Settings that are arguments of `grace_irl.fit` by themselves, since they also take objects."""


def keywords() -> str:
    """`grace_irl/keywords.py`."""
    lines = []
    known: dict[str, Setting] = {}  # a keyword may be that of settings of several methods, of one type
    for each in (each for method in METHODS for each in settings_of(method).values()):
        assert known.setdefault(each.keyword, each).kind == each.kind, each.keyword
    for each in known.values():
        if each.flag and each.keyword not in ARGUMENTS:
            choices = ", ".join(f'"{choice}"' for choice in each.choices if choice)
            kind = "Paths" if each.many else f"Literal[{choices}]" if choices else each.kind.__name__
            lines.append(f"    {each.keyword}: {kind}\n")
    return KEYWORDS + "".join(lines)


def main() -> None:
    """Writes both files, or compares them."""
    parser = argparse.ArgumentParser(description="Write docs/settings.md and grace_irl/keywords.py.")
    parser.add_argument("--check", action="store_true", help="compare with the files instead")
    check = parser.parse_args().check
    for path, text in ((PAGE_PATH, page()), (KEYWORDS_PATH, keywords())):
        if not check:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path} is not what the declarations say; run docs/settings_page.py")


if __name__ == "__main__":
    main()
