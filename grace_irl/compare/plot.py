"""Plots of learning curves (SVG).

A plotted curve shows the mean over the seeds of a method, and the range from the lowest to the highest value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grace_irl.svg import COLOURS, Frame, points, text

MEASURES = {"score": "score", "success": "success rate", "mean": "return"}
"""Names of the axis of a plot by the key of its points, in the order of preference. `mean` is the mean return."""
WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 130, 40, 50

Point = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """The learning curves of one method.

    Attributes:
        name: name of the method.
        curves: one list of points for each seed, with the keys `steps`, `mean`, `success` and, with a task, `score`.
    """

    name: str
    curves: Sequence[Sequence[Point]]

    def measure(self) -> str:
        """The key to plot: `score` if all points have a task's score, else `success` if all have it, else `mean`."""
        every = [point for curve in self.curves for point in curve]
        return next((key for key in MEASURES if every and all(each.get(key) is not None for each in every)), "mean")

    def band(self, measure: str) -> list[tuple[float, float, float, float]]:
        """Steps, mean, minimum and maximum of each point that all seeds with points have reached.

        Args:
            measure: the key of the plotted value. Mean, minimum and maximum are over the seeds.
        """
        curves = [curve for curve in self.curves if curve]
        looks = min((len(curve) for curve in curves), default=0)
        found = []
        for number in range(looks):
            values = np.array([float(curve[number][measure]) for curve in curves])
            steps = float(np.mean([curve[number]["steps"] for curve in curves]))
            found.append((steps, float(values.mean()), float(values.min()), float(values.max())))
        return found


def plot(title: str, lines: Sequence[Line]) -> str:
    """A plot of learning curves as SVG. A method without environment steps, such as BC, is a dashed horizontal line."""
    shared = {line.measure() for line in lines if any(line.curves)}
    measure = shared.pop() if len(shared) == 1 else "mean"
    bands = [(line.name, line.band(measure)) for line in lines]
    looks = [point for _, band in bands for point in band]
    right = max((point[0] for point in looks), default=1.0) or 1.0
    low = min((point[2] for point in looks), default=0.0)
    high = max((point[3] for point in looks), default=1.0)
    low, high = (0.0, 1.0) if measure == "success" else (min(low, 0.0), high if high > low else low + 1.0)
    frame = Frame(WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, 0.0, right, low, high)
    parts = [text(LEFT, TOP - 16, title, anchor="start", size=14)]
    parts += frame.axes("environment steps", MEASURES[measure])
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
    """SVG elements for the range and the mean of one method."""
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
