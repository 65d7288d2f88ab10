"""An exam of the warnings of a fit: data sets at fault, which deserve a certain warning, and sound ones without any.

The sets are in `warning_sets/`, in five groups of twenty. Group "seen" is by somebody who knew the rules of the audit
(docs/warnings.md). "unseen" is by somebody who did not, but the rules have been repaired with it since. "fresh",
"later" and "blind" are by others who did not know them, and came after these repairs; one rule came between the last
two. The synthesiser fits each set with 20 calls and holds out a quarter. The verdict on a set:

    right     at fault, and a warning has an expected code; or sound, and there is no warning
    missed    at fault, and no warning has an expected code
    wrong     sound, and there is a warning

If a fit finds no valid program, its message warns the user, too: the code is "no-program". It is right if a
set is at fault, and wrong if it is sound. The warning "nothing-held-out" never counts.

    python benchmarks/warnings_exam.py                 # all groups, 100 fits: some ten minutes on a core
    python benchmarks/warnings_exam.py --group seen

Each result is kept under --out, and an exam that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from warning_sets import blind, fresh, later, seen, unseen
from warning_sets.kinds import WarningSet

import grace_irl
from grace_irl.atomic import write_atomically
from grace_irl.errors import GraceError, InputError

GROUPS: dict[str, Callable[[], Iterator[WarningSet]]] = {
    "seen": seen.sets,
    "unseen": unseen.sets,
    "fresh": fresh.sets,
    "later": later.sets,
    "blind": blind.sets,
}
NO_PROGRAM = "no-program"
"""Code of a fit that fails with a message."""
IGNORED = {"nothing-held-out"}
"""Warnings that are no fault of the data."""


@dataclass(frozen=True)
class Row:
    """The result of one set.

    Attributes:
        name: name of the set.
        expected: codes of which any one is a right warning; () if the set is sound.
        codes: codes of the warnings, in their order, without those in `IGNORED`.
        said: the warnings as lines, or the message of a fit that failed.
    """

    name: str
    expected: tuple[str, ...]
    codes: tuple[str, ...]
    said: tuple[str, ...]

    @property
    def verdict(self) -> Literal["right", "missed", "wrong"]:
        """The verdict on the warnings."""
        if not self.expected:
            return "wrong" if self.codes else "right"
        return "right" if {*self.expected, NO_PROGRAM} & {*self.codes} else "missed"


def examined(each: WarningSet, folder: Path) -> Row:
    """Fit a set, and collect its warnings. The run is in `folder`, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    expected = tuple(sorted(each.expected))
    try:
        run = grace_irl.fit(each.demonstrations, out=folder, max_calls=20, held_out=0.25, seed=0)
    except InputError:  # the set or this script is at fault, and not the reward
        raise
    except GraceError as error:
        return Row(each.name, expected, (NO_PROGRAM,), (str(error),))
    warnings = [warning for warning in run.warnings if warning.code not in IGNORED]
    return Row(each.name, expected, tuple(one.code for one in warnings), tuple(one.line for one in warnings))


def rows(group: str, out: Path) -> Iterator[Row]:
    """The results of one group. Those that have a file are not made again."""
    for each in GROUPS[group]():
        path = out / group / f"{each.name}.json"
        if path.exists():
            kept = json.loads(path.read_text())
            yield Row(kept["name"], *(tuple(kept[key]) for key in ("expected", "codes", "said")))
            continue
        row = examined(each, out / group / each.name)
        write_atomically(path, json.dumps(asdict(row), indent=1))
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", choices=GROUPS, help="one group (default: all)")
    parser.add_argument("--out", type=Path, default=Path("out/warnings-exam"), help="where results are kept")
    options = parser.parse_args()
    for group in [options.group] if options.group else GROUPS:
        (options.out / group).mkdir(parents=True, exist_ok=True)
        print(f"| {group} | expected | warnings | verdict |\n|---|---|---|---|")
        found = []
        for row in rows(group, options.out):
            found.append(row)
            said = row.said[0] if row.codes == (NO_PROGRAM,) else ""
            print(
                f"| {row.name} | {', '.join(row.expected) or 'none'} | {', '.join(row.codes) or 'none'}"
                f"{f' ({said})' if said else ''} | {row.verdict} |",
                flush=True,
            )
        faulty, sound = ([row for row in found if bool(row.expected) == fault] for fault in (True, False))
        print(
            f"{group}: {sum(row.verdict == 'right' for row in faulty)} of {len(faulty)} sets at fault have the right "
            f"warning, {sum(row.verdict == 'wrong' for row in sound)} of {len(sound)} sound sets have a wrong one",
            flush=True,
        )


if __name__ == "__main__":
    main()
