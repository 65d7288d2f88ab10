"""SVG charts of the report: lines over a common axis, and histograms of rewards.

CSS classes set the colours of lines, dots and bars. Labels and axes have the colour of the page's text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from grace_irl.svg import Frame, Place, marks, text

Floats = NDArray[np.float64]

WIDTH, NARROW = 600, 380
"""Width in pixels of a single chart, and of a chart beside another chart."""
BINS = 40  # number of intervals of a histogram; each interval has one bar upwards and one bar downwards
POINTS = 400  # maximum number of points of a line; a longer line keeps the extremes of each section
LIMIT = 1e15  # maximum absolute value in a chart; larger values are clipped
HAIR = 1.5  # minimum height in pixels of a bar that is not empty, so that one state among thousands is visible


@dataclass(frozen=True)
class ChartLine:
    """A line of a chart.

    Attributes:
        name: name of the quantity.
        places: `x` and `y` of each point.
        kind: class in the style sheet ("c0" … "c6", "expert", "negative").
        stairs: whether the line is a step function, which keeps each value until the next point.
    """

    name: str
    places: Sequence[Place]
    kind: str
    stairs: bool = False


@dataclass(frozen=True)
class Dot:
    """A marked point of a chart.

    Attributes:
        x, y: coordinates in the units of the axes.
        kind: class in the style sheet.
        number: text beside the point, or "".
    """

    x: float
    y: float
    kind: str
    number: str = ""


def picture(width: int, height: int, parts: Sequence[str], label: str) -> Markup:
    """A drawing with a description for screen readers.

    Args:
        width, height: size, pixels.
        parts: SVG elements. Texts in them must be escaped.
        label: description of the drawing.
    """
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}" font-size="12">'
    return Markup("".join([head, *parts, "</svg>"]))


def chart(
    lines: Sequence[ChartLine],
    *,
    across: str,
    up: str,
    label: str,
    width: int = WIDTH,
    height: int = 260,
    level: float | None = None,
    dots: Sequence[Dot] = (),
    start: float | None = None,
    low: float | None = None,
    high: float | None = None,
) -> Markup:
    """A chart of lines over a common horizontal axis.

    Args:
        lines: the lines.
        across, up: labels of the horizontal and the vertical axis.
        label: description for screen readers.
        width, height: size, pixels.
        level: value marked by a dashed horizontal line.
        dots: marked points.
        start: value at which the horizontal axis begins, unless a line begins further left.
        low, high: values that the vertical axis must include.
    """
    places = [place for line in lines for place in line.places]
    xs = [x for x, _ in places] or [0.0, 1.0]
    ys = [_within(y) for _, y in places]
    ys += [value for value in (level, low, high) if value is not None]
    bottom, top = _apart(min(ys, default=0.0), max(ys, default=1.0))
    least, most = _apart(min(xs) if start is None else min(start, *xs), max(xs))
    frame = Frame(width, height, 70, 28, 12, 46, least, most, bottom, top, "currentColor", "var(--rule)")
    parts = frame.axes(across, up, columns=width // 80, rows=4)
    if level is not None:
        parts.append(f'<path class="level" d="M{frame.left} {frame.y(level):.1f}H{width - frame.right}"/>')
    for line in lines:
        parts.append(f'<path class="line {line.kind}" d="{_path(frame, line)}"/>')
        if len(line.places) <= 40:
            parts += [_dot(frame, Dot(x, y, line.kind), 2.4) for x, y in line.places]
    for dot in dots:
        parts.append(_dot(frame, dot, 5))
        if dot.number:
            x, y = frame.x(dot.x), frame.y(_within(dot.y))
            beside = x + 9 if x < frame.left + 9 else x
            parts.append(text(beside, y - 9 if y > 24 else y + 18, dot.number, fill="currentColor", name="number"))
    return picture(width, height, parts, label)


def histogram(
    above: Floats, below: Floats, *, least: float, most: float, level: float | None, label: str, share: float
) -> Markup:
    """A histogram of rewards. Bars of positive states point up, and bars of negative states point down.

    The height of a bar is the share of the positive (or negative) states whose rewards are in the interval.

    Args:
        above, below: rewards of positive and of negative states, `(n,)` and `(m,)`.
        least, most: range of rewards. The outermost bars include rewards outside the range.
        level: threshold on the reward, or None.
        label: description for screen readers.
        share: limit of the vertical axis, up and down: a share of the states.
    """
    low, high = _apart(least, most)
    width, height = NARROW, 250
    frame = Frame(width, height, 58, 20, 12, 46, low, high, -share, share, "currentColor", "var(--rule)")
    end, floor = width - frame.right, height - frame.bottom
    parts = []
    for value in (-share, -share / 2, 0.0, share / 2, share):
        at = frame.y(value)
        parts.append(f'<path d="M{frame.left} {at:.1f}H{end}" stroke="var(--rule)"/>')
        parts.append(text(frame.left - 6, at + 4, f"{abs(value):.0%}", anchor="end", fill="currentColor"))
    for value in marks(low, high, 4):
        parts.append(text(frame.x(value), floor + 18, f"{value:,.6g}", fill="currentColor"))
    parts.append(text((frame.left + end) / 2, height - 10, "reward", fill="currentColor"))
    for values, kind, sign in ((above, "expert", 1.0), (below, "negative", -1.0)):
        counts, edges = np.histogram(np.clip(values, low, high), bins=BINS, range=(low, high))
        for number in np.flatnonzero(counts):
            tall = max(abs(frame.y(counts[number] / len(values)) - frame.y(0.0)), HAIR)
            left, right = frame.x(float(edges[number])), frame.x(float(edges[number + 1]))
            top = frame.y(0.0) - (tall if sign > 0 else 0.0)
            parts.append(
                f'<rect class="bar {kind}" x="{left:.1f}" y="{top:.1f}" width="{max(right - left - 0.6, 0.8):.1f}" '
                f'height="{tall:.1f}"/>'
            )
    parts.append(f'<path d="M{frame.left} {frame.y(0.0):.1f}H{end}" stroke="currentColor"/>')
    if level is not None and low <= level <= high:
        parts.append(f'<path class="level" d="M{frame.x(level):.1f} {frame.top}V{floor}"/>')
    return picture(width, height, parts, label)


def tallest(groups: Sequence[Floats], least: float, most: float) -> float:
    """The `share` argument of `histogram` for these rewards: a round number that no bar exceeds."""
    low, high = _apart(least, most)
    shares = [
        float(np.histogram(np.clip(values, low, high), bins=BINS, range=(low, high))[0].max()) / len(values)
        for values in groups
        if len(values)
    ]
    return next((each for each in (0.1, 0.2, 0.4, 0.6, 0.8) if max(shares, default=1.0) <= each), 1.0)


def reach(values: Floats) -> tuple[float, float, int]:
    """The range of a histogram of these rewards, and the number of rewards outside the range.

    The range excludes distant outliers. If it included them, all other rewards could be in a few bars.
    """
    low, p1, p99, high = (float(v) for v in np.percentile(values, (0, 1, 99, 100)))
    middle = p99 - p1
    if middle > 0 and high - low > 20 * middle:
        low, high = max(low, p1 - middle), min(high, p99 + middle)
    low, high = (min(max(end, -LIMIT), LIMIT) for end in (low, high))
    return low, high, int(np.sum((values < low) | (values > high)))


def thinned(values: Floats, known: NDArray[np.bool_]) -> list[Place]:
    """The points of a trajectory's reward curve: x is the number of the state, from 1, and y is the reward.

    A long trajectory is divided into sections, and only the extremes of each section are kept.

    Args:
        values: `(T+1,)` rewards.
        known: `(T+1,)` True for states with a reward.
    """
    steps = np.flatnonzero(known)
    if len(steps) > POINTS:
        kept: list[int] = []
        for part in np.array_split(steps, POINTS // 2):
            kept += sorted({int(part[values[part].argmin()]), int(part[values[part].argmax()])})
        steps = np.array(sorted({int(steps[0]), *kept, int(steps[-1])}))
    return [(float(step + 1), float(values[step])) for step in steps]


def _within(value: float) -> float:
    return min(max(value, -LIMIT), LIMIT)


def _apart(low: float, high: float) -> tuple[float, float]:
    """The ends of a range, moved apart if they are nearly equal."""
    wide = max(abs(low), abs(high), 1.0)
    return (low, high) if high - low > 1e-9 * wide else (low - 0.5 * wide, high + 0.5 * wide)


def _path(frame: Frame, line: ChartLine) -> str:
    parts: list[str] = []
    for x, y in line.places:
        across, up = f"{frame.x(x):.1f}", f"{frame.y(_within(y)):.1f}"
        parts.append((f"H{across}V{up}" if line.stairs else f"L{across} {up}") if parts else f"M{across} {up}")
    return "".join(parts)


def _dot(frame: Frame, dot: Dot, size: float) -> str:
    return f'<circle class="dot {dot.kind}" cx="{frame.x(dot.x):.1f}" cy="{frame.y(_within(dot.y)):.1f}" r="{size}"/>'
