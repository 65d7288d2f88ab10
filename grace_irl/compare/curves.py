"""Learning curves as a drawing (SVG): a line for each method, the mean over its seeds, and the range between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 130, 40, 50
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's, which colour-blind readers tell apart."""

Point = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """The curves of one method.

    Attributes:
        name: of the method.
        curves: points of each seed, with `steps`, `mean` and `success`.
    """

    name: str
    curves: Sequence[Sequence[Point]]

    def measure(self) -> str:
        """`success` where every point has one, else `mean`, which is the return."""
        known = [point.get("success") is not None for curve in self.curves for point in curve]
        return "success" if known and all(known) else "mean"

    def band(self, measure: str) -> list[tuple[float, float, float, float]]:
        """Steps, and mean, least and largest value over the seeds, at each look that all seeds have had."""
        curves = [curve for curve in self.curves if curve]
        looks = min((len(curve) for curve in curves), default=0)
        found = []
        for number in range(looks):
            values = np.array([float(curve[number][measure]) for curve in curves])
            steps = float(np.mean([curve[number]["steps"] for curve in curves]))
            found.append((steps, float(values.mean()), float(values.min()), float(values.max())))
        return found


def plot(title: str, lines: Sequence[Line]) -> str:
    """The drawing. A method that takes no step (BC) is a dashed line across."""
    measure = "success" if lines and all(line.measure() == "success" for line in lines if any(line.curves)) else "mean"
    bands = [(line.name, line.band(measure)) for line in lines]
    points = [point for _, band in bands for point in band]
    right = max((point[0] for point in points), default=1.0) or 1.0
    low = min((point[2] for point in points), default=0.0)
    high = max((point[3] for point in points), default=1.0)
    low, high = (0.0, 1.0) if measure == "success" else (min(low, 0.0), high if high > low else low + 1.0)
    frame = _Frame(right, low, high)
    parts = [*frame.axes(title, "success rate" if measure == "success" else "return")]
    for number, (name, band) in enumerate(bands):
        colour = COLOURS[number % len(COLOURS)]
        parts += frame.drawn(band, colour)
        parts.append(_text(WIDTH - RIGHT + 12, TOP + 14 + 20 * number, name, fill=colour, anchor="start"))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *parts, "</svg>"]) + "\n"


@dataclass(frozen=True)
class _Frame:
    """From steps and values to places in the drawing."""

    right: float
    low: float
    high: float

    def x(self, steps: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * steps / self.right

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - self.low) / (self.high - self.low)

    def axes(self, title: str, measure: str) -> list[str]:
        """Title, axes and marks."""
        parts = [_text(LEFT, TOP - 16, title, anchor="start", size=14)]
        for value in _marks(self.low, self.high):
            at = self.y(value)
            parts.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
            parts.append(_text(LEFT - 8, at + 4, f"{value:,.6g}", anchor="end"))
        for steps in _marks(0.0, self.right):
            parts.append(_text(self.x(steps), HEIGHT - BOTTOM + 18, f"{steps:,.6g}"))
        parts.append(f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="black"/>')
        parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "environment steps"))
        middle = (TOP + HEIGHT - BOTTOM) / 2
        parts.append(f'<g transform="rotate(-90 16 {middle})">{_text(16, middle, measure)}</g>')
        return parts

    def drawn(self, band: Sequence[tuple[float, float, float, float]], colour: str) -> list[str]:
        """Range and mean of one method."""
        if not band:
            return []
        if len(band) == 1 and band[0][0] == 0:
            at = self.y(band[0][1])
            return [f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="{colour}" stroke-dasharray="6 4"/>']
        upper = [(self.x(steps), self.y(most)) for steps, _, _, most in band]
        lower = [(self.x(steps), self.y(least)) for steps, _, least, _ in reversed(band)]
        mean = [(self.x(steps), self.y(value)) for steps, value, _, _ in band]
        dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}"/>' for x, y in mean]
        return [
            f'<polygon points="{_points([*upper, *lower])}" fill="{colour}" fill-opacity="0.15"/>',
            f'<polyline points="{_points(mean)}" fill="none" stroke="{colour}" stroke-width="1.8"/>',
            *dots,
        ]


def _marks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two."""
    rough = (high - low) / about
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
    first = np.ceil(low / step - 1e-9)
    return [float(step * number) + 0.0 for number in np.arange(first, np.floor(high / step + 1e-9) + 1)]


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _text(x: float, y: float, text: str, *, anchor: str = "middle", fill: str = "black", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-size="{size}">{escape(text)}</text>'
    )
