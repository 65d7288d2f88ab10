"""Grids as drawings: a square for each cell, in the colours and with the marks that a terminal shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from rich.style import Style

from grace_irl.demos.picture import Legend
from grace_irl.report.charts import picture
from grace_irl.svg import text

CELL = 20  # pixels
MOST_CELLS = 4_096  # of a grid that is drawn
MARKED = 40  # cells of a row, up to which they carry marks
MOST_LISTED = 60  # cells of the legend
COMMON = "·▒"  # marks of what stays in the background


@dataclass(frozen=True)
class Entry:
    """One line of the legend: a square, and the codes that it stands for."""

    square: Markup
    codes: str


class GridPictures:
    """Draws grids `(h, w, 3)` with one legend.

    Args:
        grids: all that will be drawn.
    """

    def __init__(self, grids: Sequence[NDArray[np.integer]]) -> None:
        self._legend = Legend(grids)

    def draw(self, grid: NDArray[np.integer], label: str) -> Markup | None:
        """A drawing of one; None where it has too many cells."""
        height, width = grid.shape[:2]
        if height * width > MOST_CELLS:
            return None
        parts: list[str] = []
        letters: list[str] = []
        for row, cells in enumerate(grid.tolist()):
            start = 0
            blocks = [self._legend.block(tuple(cell)) for cell in cells]
            for column in range(1, width + 1):
                if column == width or cells[column] != cells[start]:
                    parts.append(_square(start, row, column - start, blocks[start][1]))
                    start = column
            letters += [
                _letter(column, row, mark[0])
                for column, (mark, _) in enumerate(blocks)
                if mark[0] not in COMMON and width <= MARKED
            ]
        return picture(width * CELL, height * CELL, [*parts, *letters], label)

    @property
    def legend(self) -> list[Entry]:
        """What the squares stand for, most frequent first."""
        entries = []
        for cell, (mark, style) in list(self._legend.blocks.items())[:MOST_LISTED]:
            codes = " ".join(map(str, cell))
            letter = [] if mark[0] in COMMON else [_letter(0, 0, mark[0])]
            entries.append(Entry(picture(CELL, CELL, [_square(0, 0, 1, style), *letter], f"codes {codes}"), codes))
        return entries


def _square(column: int, row: int, cells: int, style: str) -> str:
    return f'<rect x="{column * CELL}" y="{row * CELL}" width="{cells * CELL}" height="{CELL}" fill="{_fill(style)}"/>'


def _letter(column: int, row: int, mark: str) -> str:
    return text((column + 0.5) * CELL, (row + 0.72) * CELL, mark, fill="#000")


@cache
def _fill(style: str) -> str:
    """The background of a terminal's style, as `#rrggbb`."""
    colour = Style.parse(style).bgcolor
    assert colour is not None  # every block has one
    return str(colour.get_truecolor().hex)
