"""Lines and tables at the width of a terminal: nothing is cut, and nothing passes the edge."""

from __future__ import annotations

import io
import re

import pytest
from rich.table import Table

from grace_irl.cli.console import PlainConsole, plain_table
from grace_irl.cli.fitting import fitted, wrapped

NAMES = ("program", "fitness", "accuracy", "held out", "auc", "rising", "bits", "made by", "new functions", "candidate")
ROWS = [
    ("2a6e600dfdef803a *", "-0.12929", "0.9833", "0.9500", "0.9967", "0.17", "1509", "initialise", "10", "18"),
    ("af004a25d0c95795", "0", "1.0000", "1.0000", "1.0000", "0.46", "1624", "reshape", "0", "1"),
]


def lines(table: Table, width: int) -> list[str]:
    out = io.StringIO()
    PlainConsole(file=out, width=width).print(table)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def table(*, numbers: bool) -> Table:
    made = plain_table(*NAMES, title="programs", numbers=numbers)
    for row in ROWS:
        made.add_row(*row)
    return made


@pytest.mark.parametrize("numbers", [True, False])
@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_a_table_loses_nothing_at_any_width(width: int, numbers: bool) -> None:
    shown = lines(table(numbers=numbers), width)
    assert max(map(len, shown)) <= width
    words = " ".join(shown).split()
    assert not [word for row in ROWS for cell in row for word in cell.split() if word not in words]
    assert not [word for name in NAMES for word in name.split() if word not in words]
    assert "…" not in "".join(shown)


def test_a_table_with_room_is_one_table() -> None:
    assert len(lines(table(numbers=True), 120)) == 4


def test_further_tables_repeat_the_first_column() -> None:
    shown = lines(table(numbers=True), 60)
    assert sum("2a6e600dfdef803a *" in line for line in shown) > 1
    assert sum("programs" in line for line in shown) == 1


def test_two_columns_are_never_parted() -> None:
    made = plain_table("condition", "left", numbers=True)
    pattern = "a_long_pattern_of_more_than_thirty_characters"
    made.add_row(pattern, "12")
    shown = lines(made, 32)
    assert max(map(len, shown)) <= 32
    assert pattern in "".join(line.split()[0] for line in shown)


def test_headings_break_before_a_table_is_parted() -> None:
    made = plain_table("", "new functions", "reused functions", numbers=True)
    made.add_row("0", "1234", "5678")
    shown = lines(made, 24)
    assert len(shown) == 3
    assert shown[-1].split() == ["0", "1234", "5678"]


def test_a_framed_table_that_is_too_wide_loses_its_frame_only() -> None:
    made = Table(title="Channels")
    made.add_column("channel", justify="right")
    made.add_column("values")
    made.add_row("0", "1: 53.12%, 2: 43.75%, 5: 0.64%")
    shown = lines(made, 30)
    assert "53.12%," in " ".join(shown).split()
    assert max(map(len, shown)) <= 30


def test_long_words_take_several_lines() -> None:
    made = plain_table("program", "why")
    path = "/".join(["folder"] * 12)
    made.add_row("abc", f"not there: {path}")
    shown = lines(made, 50)
    assert max(map(len, shown)) <= 50
    assert path in re.sub(r"\s", "", "".join(shown))


def test_sentences_break_between_words_and_commands_stay_whole() -> None:
    assert wrapped("short", 20) == "short"
    assert wrapped("the run has ended by its plateau", 20) == "the run has ended by\n  its plateau"
    assert wrapped("not done; go on with: grace-irl fit --resume runs/a", 22) == (
        "not done; go on with:\n  grace-irl fit --resume runs/a"
    )
    assert wrapped("a " + "x" * 30, 20) == "a\n  " + "x" * 30


def test_parts_are_shortened_in_order() -> None:
    parts = (("generation 3",), ("best fitness -0.25, accuracy 0.9", "accuracy 0.9"), ("9 programs", ""))
    assert fitted(parts, 80, (1, 2)) == "generation 3, best fitness -0.25, accuracy 0.9, 9 programs"
    assert fitted(parts, 40, (1, 2)) == "generation 3, accuracy 0.9, 9 programs"
    assert fitted(parts, 26, (1, 2)) == "generation 3, accuracy 0.9"
