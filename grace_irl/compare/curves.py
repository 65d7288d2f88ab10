"""Learning curves as a drawing (SVG): a line for each method, the mean over its seeds, and the range between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grace_irl.svg import COLOURS, Frame, points, text

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 130, 40, 50

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
        """`success` if every point has one, else `mean`, which is the return."""
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
    looks = [point for _, band in bands for point in band]
    right = max((point[0] for point in looks), default=1.0) or 1.0
    low = min((point[2] for point in looks), default=0.0)
    high = max((point[3] for point in looks), default=1.0)
    low, high = (0.0, 1.0) if measure == "success" else (min(low, 0.0), high if high > low else low + 1.0)
    frame = Frame(WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, 0.0, right, low, high)
    parts = [text(LEFT, TOP - 16, title, anchor="start", size=14)]
    parts += frame.axes("environment steps", "success rate" if measure == "success" else "return")
    for number, (name, band) in enumerate(bands):
        colour = COLOURS[number % len(COLOURS)]
        parts += _drawn(frame, band, colour)
        parts.append(text(WIDTH - RIGHT + 12, TOP + 14 + 20 * number, name, fill=colour, anchor="start"))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *parts, "</svg>"]) + "\n"


def _drawn(frame: Frame, band: Sequence[tuple[float, float, float, float]], colour: str) -> list[str]:
    """Range and mean of one method."""
    if not band:
        return []
    if len(band) == 1 and band[0][0] == 0:
        at = frame.y(band[0][1])
        return [f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="{colour}" stroke-dasharray="6 4"/>']
    upper = [(frame.x(steps), frame.y(most)) for steps, _, _, most in band]
    lower = [(frame.x(steps), frame.y(least)) for steps, _, least, _ in reversed(band)]
    mean = [(frame.x(steps), frame.y(value)) for steps, value, _, _ in band]
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}"/>' for x, y in mean]
    return [
        f'<polygon points="{points([*upper, *lower])}" fill="{colour}" fill-opacity="0.15"/>',
        f'<polyline points="{points(mean)}" fill="none" stroke="{colour}" stroke-width="1.8"/>',
        *dots,
    ]
