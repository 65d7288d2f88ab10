"""Lines and tables that fit the width of a terminal. Lines break between words, and tables between columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len
from rich.table import Column, Table
from rich.text import Text

from grace_irl.text import harmless

COMMAND = ": grace-irl "
"""Text between a sentence and the command at its end. The command stays on one line, so that users can copy it."""
GAPS = (2, 1)
"""Spaces between columns: the usual number, and the smallest number."""
LONGEST_WORD = 30
"""Maximum width, in characters of the terminal, of a word that stays whole in a column of text. A longer word, such as
a path, may take several lines."""


def wrapped(text: str, width: int) -> str:
    """Break a line between words, if the line is longer than `width`. A single longer word stays whole."""
    if cell_len(text) <= width:
        return text
    sentence, colon, command = text.rpartition(COMMAND)
    if colon:
        return f"{wrapped(sentence + ':', width)}\n  {COMMAND[2:]}{command}"
    return "\n".join(
        textwrap.wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) or [text]
    )


def fitted(parts: Sequence[Sequence[str]], width: int, order: Sequence[int]) -> str:
    """Join parts with commas into a line, and shorten parts until the line fits in `width`.

    Args:
        parts: the versions of each part, longest first. The version "" leaves the part out.
        width: maximum width of the line, in characters of the terminal.
        order: indices of the parts to shorten, in this order. Each entry selects the next version of a part.
    """
    versions = [list(each) for each in parts]

    def joined() -> str:
        return ", ".join(each[0] for each in versions if each and each[0])

    for index in order:
        if cell_len(joined()) <= width:
            break
        if versions[index]:
            versions[index] = versions[index][1:]
    return joined()


def tables_of(table: Table, width: int) -> list[Table]:
    """Lay out a table in `width`: unchanged if it fits, else with narrower columns, else as several tables.

    Right-aligned columns hold numbers, which are never broken. Each further table repeats the first column.
    """
    texts = [[_plain(column.header), *map(_plain, column.cells)] for column in table.columns]
    framed = 2 + 3 * len(texts) - 1 if table.box is not None else 0
    natural = [max(map(_widest_line, each), default=0) for each in texts]
    if not texts or sum(natural) + (framed or GAPS[0] * (len(texts) - 1)) <= width:
        return [table]
    least = [_least(column, each) for column, each in zip(table.columns, texts, strict=True)]
    least[0] = max(least[0], min(natural[0], LONGEST_WORD))  # the first column names the rows
    every = range(len(texts))
    for gap in GAPS:
        if sum(least) + gap * (len(texts) - 1) <= width:
            return [_part(table, every, least, natural, width, gap)]
    groups: list[list[int]] = [[0]]
    for index in every[1:]:
        if len(groups[-1]) > 1 and sum(least[each] + GAPS[0] for each in (*groups[-1], index)) - GAPS[0] > width:
            groups.append([0])
        groups[-1].append(index)
    if len(groups) > 1 and len(groups[-1]) == 2 and len(groups[-2]) > 3:  # avoid a lone column besides the first
        groups[-1].insert(1, groups[-2].pop())
    made = [_part(table, group, least, natural, width, GAPS[0]) for group in groups]
    for later in made[1:]:
        later.title = None
    return made


def _plain(cell: object) -> str:
    return cell.plain if isinstance(cell, Text) else harmless(str(cell))


def _widest_line(text: str) -> int:
    return max(map(cell_len, text.splitlines()), default=0)


def _least(column: Column, texts: Sequence[str]) -> int:
    """The smallest width of a column. Numbers and header words stay whole, other words up to `LONGEST_WORD`."""
    words = max((cell_len(word) for word in texts[0].split()), default=0)
    if column.justify == "right":
        return max([words, *map(_widest_line, texts[1:])])
    inside = max((cell_len(word) for text in texts[1:] for word in text.split()), default=0)
    return max(words, min(inside, LONGEST_WORD))


def _part(
    table: Table, columns: Sequence[int], least: Sequence[int], natural: Sequence[int], width: int, gap: int
) -> Table:
    """Make a table of some columns. Each column gets its least width, and the columns share the rest of `width`."""
    widths = {index: least[index] for index in columns}
    left = width - sum(widths.values()) - gap * (len(columns) - 1)
    for index in sorted(columns, key=lambda each: natural[each] - least[each]):
        more = max(0, min(natural[index] - widths[index], left))
        widths[index] += more
        left -= more
    made = Table(
        title=table.title, title_justify="left", box=None, pad_edge=False, padding=(0, gap, 0, 0), collapse_padding=True
    )
    made.show_header = table.show_header
    for index in columns:
        column = table.columns[index]
        made.columns.append(
            replace(column, _index=len(made.columns), width=widths[index], no_wrap=False, overflow="fold")
        )
    made.rows.extend(table.rows)
    return made
