"""Parts of the SVG plots in reports and comparisons: text, axis ticks, and the frame of a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from grace_irl.text import line

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""The palette of Okabe and Ito. Colour-blind readers can distinguish its colours."""

Place = tuple[float, float]
"""Position (x, y) in a drawing."""


def text(
    x: float, y: float, content: str, *, anchor: str = "middle", fill: str = "black", size: int = 12, name: str = ""
) -> str:
    """An SVG text element with escaped content.

    Args:
        x, y: position of the anchor.
        content: the text.
        anchor: part of the text that is at `x`: "start", "middle" or "end".
        fill: colour.
        size: font size.
        name: class for a style sheet; "": none.
    """
    head = f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-size="{size}"'
    return f"{head}{f' class={quoteattr(name)}' if name else ''}>{escape(line(content))}</text>"


def points(places: Sequence[Place]) -> str:
    """The `points` attribute of an SVG polyline through these places."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def marks(low: float, high: float, about: int = 5) -> list[float]:
    """Positions of axis ticks: roughly `about` round numbers from `low` to `high`. `low` and `high` must differ."""
    rough = (high - low) / about
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
    first = np.ceil(low / step - 1e-9)
    return [float(step * number) + 0.0 for number in np.arange(first, np.floor(high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Frame:
    """The frame of a plot. It maps values to positions in the drawing.

    Attributes:
        width, height: size of the drawing, in the units of SVG.
        left, right, top, bottom: margins around the frame, in the same units.
        least, most: values at the left and right edge, which must differ.
        low, high: values at the bottom and top edge, which must differ.
        ink: colour of axes and text.
        rule: colour of the grid lines.
    """

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    least: float
    most: float
    low: float
    high: float
    ink: str = "black"
    rule: str = "#ddd"

    def x(self, value: float) -> float:
        """The horizontal position of a value."""
        share = (value - self.least) / (self.most - self.least)
        return self.left + (self.width - self.left - self.right) * share

    def y(self, value: float) -> float:
        """The vertical position of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.height - self.bottom - (self.height - self.top - self.bottom) * share

    def axes(self, across: str, up: str, *, columns: int = 5, rows: int = 5) -> list[str]:
        """Both axes with ticks, grid lines and labels, as SVG elements.

        Args:
            across, up: labels of the horizontal and vertical axis.
            columns, rows: approximate number of ticks on the horizontal and vertical axis.
        """
        end, floor = self.width - self.right, self.height - self.bottom
        parts = []
        for value in marks(self.low, self.high, rows):
            at = self.y(value)
            parts.append(f'<path d="M{self.left} {at:.1f}H{end}" stroke="{self.rule}"/>')
            parts.append(text(self.left - 8, at + 4, f"{value:,.6g}", anchor="end", fill=self.ink))
        for value in marks(self.least, self.most, columns):
            parts.append(text(self.x(value), floor + 18, f"{value:,.6g}", fill=self.ink))
        parts.append(f'<path d="M{self.left} {self.top}V{floor}H{end}" fill="none" stroke="{self.ink}"/>')
        parts.append(text((self.left + end) / 2, self.height - 12, across, fill=self.ink))
        middle = (self.top + floor) / 2
        parts.append(f'<g transform="rotate(-90 16 {middle})">{text(16, middle, up, fill=self.ink)}</g>')
        return parts
