"""Grids as coloured blocks in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

# Readable on dark and light terminals, and distinct for most colour-blind readers (Okabe and Ito, 2008).
PALETTE = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#999999")
MARKS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
COMMON = (("· ", "grey62 on grey19"), ("▒▒", "grey62 on grey37"))
"""Characters and styles of the two most frequent cells. In most grids these cells are the floor and the walls, so
they are shown as a grey background."""

Cell = tuple[int, ...]


class Legend:
    """A colour and a mark for each different cell (a tuple of three codes), the same in every picture."""

    def __init__(self, grids: Sequence[NDArray[Any]]) -> None:
        counts: Counter[Cell] = Counter()
        for grid in grids:
            counts.update(tuple(int(code) for code in cell) for cell in grid.reshape(-1, 3))
        ranked = [cell for cell, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
        self._styles: dict[Cell, tuple[str, str]] = {}
        self._styles.update(zip(ranked, COMMON, strict=False))
        for number, cell in enumerate(ranked[len(COMMON) :]):
            mark = MARKS[number % len(MARKS)]
            self._styles[cell] = (f"{mark} ", f"bold black on {PALETTE[number % len(PALETTE)]}")

    def block(self, cell: Cell) -> tuple[str, str]:
        """Two characters and the style of one cell."""
        return self._styles[cell]

    @property
    def blocks(self) -> Mapping[Cell, tuple[str, str]]:
        """Two characters and the style of every cell, most frequent cell first."""
        return self._styles

    def text(self) -> Text:
        """One line with each block and the codes of its cell."""
        line = Text()
        for cell, (mark, style) in self._styles.items():
            line.append(mark.rstrip(), style)
            line.append(f"={cell}".replace(" ", "") + "   ")  # spaces only where a line may break
        return line


def picture(grids: Sequence[NDArray[Any]], legend: Legend, gap: int = 4) -> Text:
    """Grids `(h, w, 3)` side by side. The first axis of a grid runs downwards, the second one to the right."""
    height = max(grid.shape[0] for grid in grids)
    lines = []
    for row in range(height):
        line = Text()
        for number, grid in enumerate(grids):
            if number:
                line.append(" " * gap)
            if row >= grid.shape[0]:
                line.append("  " * grid.shape[1])
                continue
            for cell in grid[row].tolist():
                line.append(*legend.block(tuple(cell)))
        lines.append(line)
    return Text("\n").join(lines)


def snapshots(states: NDArray[Any], count: int = 3) -> list[int]:
    """Indices of at most `count` states to show, spread evenly from the first to the last state of a trajectory."""
    return sorted({int(i) for i in np.linspace(0, len(states) - 1, count).round()})
