"""Parts of drawings (SVG): numbers at an axis, letters, and the frame that values are drawn in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from grace_irl.text import line

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's, which colour-blind readers tell apart."""

Place = tuple[float, float]


def text(
    x: float, y: float, content: str, *, anchor: str = "middle", fill: str = "black", size: int = 12, name: str = ""
) -> str:
    """Letters at a place, escaped.

    Args:
        anchor: "start", "middle" or "end": what of them is at `x`.
        fill: colour.
        size: of the letters.
        name: class, for a style sheet; "": none.
    """
    head = f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-size="{size}"'
    return f"{head}{f' class={quoteattr(name)}' if name else ''}>{escape(line(content))}</text>"


def points(places: Sequence[Place]) -> str:
    """Places as the `points` of a line."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def marks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two that differ, `about` of them."""
    rough = (high - low) / about
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
    first = np.ceil(low / step - 1e-9)
    return [float(step * number) + 0.0 for number in np.arange(first, np.floor(high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Frame:
    """From values to places in a drawing.

    Attributes:
        width, height: of the drawing.
        left, right, top, bottom: margins around the frame.
        least, most: values at its left and right side, which differ.
        low, high: values at its bottom and top, which differ.
        ink: colour of axes and letters.
        rule: colour of the lines at marks.
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
        """Place of a value from left to right."""
        share = (value - self.least) / (self.most - self.least)
        return self.left + (self.width - self.left - self.right) * share

    def y(self, value: float) -> float:
        """Place of a value from bottom to top."""
        share = (value - self.low) / (self.high - self.low)
        return self.height - self.bottom - (self.height - self.top - self.bottom) * share

    def axes(self, across: str, up: str, *, columns: int = 5, rows: int = 5) -> list[str]:
        """Both axes with their marks.

        Args:
            across, up: what they are of.
            columns, rows: how many marks, about.
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
