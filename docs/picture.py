"""Draws the picture of README.md: a recovered reward along two trajectories that no proposer saw.

    python docs/picture.py          fit the set that ships, and write docs/pictures/reward.svg
    python docs/picture.py --check  fit, and compare with that file

The fit is `grace-irl fit --demos datasets/babyai-go-to-obj --reshape 4`. It takes seconds and leaves no run behind.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import grace_irl
from grace_irl.demos.files import load
from grace_irl.demos.split import split
from grace_irl.demos.trajectory import Role, Trajectory
from grace_irl.svg import Frame, points, text

ROOT = Path(__file__).resolve().parent.parent
DEMOS = ROOT / "datasets" / "babyai-go-to-obj"
PICTURE = ROOT / "docs" / "pictures" / "reward.svg"

HELD_OUT, SEED = 0.25, 0  # the defaults of `fit`
WIDTH, HEIGHT = 900, 426
PANEL = 450  # width of one trajectory's half
CHART = 256  # height of its chart
CELL = 14  # pixels of a grid's cell
INK, PALE, RULE = "#24292f", "#57606a", "#e6e8eb"
LINES: dict[Role, str] = {"expert": "#0072b2", "negative": "#d55e00"}
COLOURS = ("#e5484d", "#30a46c", "#3e63dd", "#8e4ec6", "#f5b800", "#8b8d98")
"""Of MiniGrid's colour codes: red, green, blue, purple, yellow, grey."""
EMPTY, WALL, KEY, BALL, BOX, AGENT = 1, 2, 5, 6, 7, 10
"""MiniGrid's codes of things, in channel 0."""


@dataclass(frozen=True)
class Half:
    """One trajectory and what the recovered program pays along it.

    Attributes:
        role: of the trajectory.
        trajectory: a held-out one.
        values: `(T+1,)` rewards.
        shown: three of its states, in order.
    """

    role: Role
    trajectory: Trajectory
    values: NDArray[np.float64]
    shown: tuple[int, ...]


def halves() -> tuple[list[Half], float]:
    """The two trajectories, and the threshold of the reward."""
    with tempfile.TemporaryDirectory() as folder:
        run = grace_irl.fit(DEMOS, out=Path(folder) / "run", reshape=4, held_out=HELD_OUT, seed=SEED)
        reward = grace_irl.load_reward(run.reward_path)
        found = []
        for role in LINES:
            items = [
                each for each in split(load([DEMOS]), HELD_OUT, SEED) if (each.role, each.split) == (role, "held_out")
            ]
            trajectories = [each.trajectory for each in items]
            values = reward.rewards(trajectories)
            # The longest of the experts; of the negative ones the one whose reward changes most.
            best = max(
                range(len(items)), key=lambda at: (len(values[at]) if role == "expert" else np.ptp(values[at]), -at)
            )
            found.append(Half(role, trajectories[best], values[best], _shown(role, values[best])))
        if reward.threshold is None:
            raise SystemExit(f"{run.reward_path}: expected a threshold")
        return found, reward.threshold


def _shown(role: Role, values: NDArray[np.float64]) -> tuple[int, ...]:
    """The first and the last state, and one between: an expert's middle one, or another's most rewarded one."""
    last = len(values) - 1
    return 0, last // 2 if role == "expert" else 1 + int(values[1:last].argmax()), last


def drawing(found: Sequence[Half], threshold: float) -> str:
    """The whole picture."""
    label = (
        "The recovered reward rises to 1 along an expert's trajectory and stays below the threshold along a random one."
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{label}" font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8" fill="#fff" stroke="#d0d7de"/>',
    ]
    for number, half in enumerate(found):
        parts.append(f'<g transform="translate({number * PANEL} 0)">{"".join(_half(half, threshold))}</g>')
    return "\n".join([*parts, "</svg>", ""])


def _half(half: Half, threshold: float) -> list[str]:
    """The chart of one trajectory, and three of its states below."""
    colour, last = LINES[half.role], len(half.values) - 1
    title = "an expert" if half.role == "expert" else "a random policy"
    frame = Frame(PANEL, CHART, 62, 28, 54, 50, 1, last + 1, 0, 1.05, PALE, RULE)
    level = frame.y(threshold)
    parts = [
        text(62, 30, title, anchor="start", fill=colour, size=16),
        text(PANEL - 28, 30, f"“{half.trajectory.extra_info}”", anchor="end", fill=PALE, size=13),
        *frame.axes("state", "reward", columns=min(last, 7), rows=4),
        f'<path d="M{frame.left} {level:.1f}H{PANEL - frame.right}" stroke="{INK}" stroke-dasharray="4 4"/>',
        text(frame.left + 6, level - 6, f"threshold {threshold:.2f}", anchor="start", fill=INK, size=12),
        f'<polyline points="{points([(frame.x(step + 1), frame.y(value)) for step, value in enumerate(half.values)])}" '
        f'fill="none" stroke="{colour}" stroke-width="2.5" stroke-linejoin="round"/>',
    ]
    if last < 20:
        parts += [_dot(frame, half, step, 3, colour) for step in range(last + 1)]
    side = CELL * half.trajectory.states.shape[1]
    gap = (PANEL - 62 - 28 - 3 * side) / 2
    for number, step in enumerate(half.shown):
        left = 62 + number * (side + gap)
        parts.append(_dot(frame, half, step, 5.5, colour))
        parts.append(
            f'<g transform="translate({left:.1f} {CHART + 14})">{"".join(_grid(half.trajectory.states[step]))}</g>'
        )
        said = f"state {step + 1}: {half.values[step]:.2f}"
        parts.append(text(left + side / 2, CHART + 14 + side + 20, said, fill=INK, size=13))
    return parts


def _dot(frame: Frame, half: Half, step: int, size: float, colour: str) -> str:
    x, y = frame.x(step + 1), frame.y(float(half.values[step]))
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}" stroke="#fff" stroke-width="1.5"/>'


def _grid(state: NDArray[np.integer]) -> list[str]:
    """A state of MiniGrid, `(columns, rows, 3)`, as its players see it."""
    columns, rows = state.shape[:2]
    parts = [f'<rect width="{columns * CELL}" height="{rows * CELL}" rx="3" fill="#f6f8fa"/>']
    for column in range(columns):
        for row in range(rows):
            thing, colour, direction = (int(code) for code in state[column, row])
            if thing != EMPTY:
                parts.append(
                    f'<g transform="translate({column * CELL} {row * CELL})">{_thing(thing, colour, direction)}</g>'
                )
    return parts


def _thing(thing: int, colour: int, direction: int) -> str:
    """The shape of a cell's thing."""
    half, fill = CELL / 2, COLOURS[colour]
    if thing == WALL:
        return f'<rect width="{CELL}" height="{CELL}" fill="#8c959f" stroke="#7d8590" stroke-width="0.6"/>'
    if thing == AGENT:
        path = f"M3 3L{CELL - 2} {half}L3 {CELL - 3}L5.5 {half}Z"
        return f'<path d="{path}" fill="{INK}" transform="rotate({90 * direction} {half} {half})"/>'
    if thing == BALL:
        return f'<circle cx="{half}" cy="{half}" r="{half - 2.5}" fill="{fill}"/>'
    if thing == BOX:
        return f'<path d="M3 3h8v8H3zM3 7h8" fill="none" stroke="{fill}" stroke-width="2.2"/>'
    if thing == KEY:
        bit, ring = "M7 6.5v6M7 9.5h2.6M7 11.8h2.6", '<circle cx="7" cy="4.2" r="2.3"/>'
        return f'<g fill="none" stroke="{fill}" stroke-width="1.8"><path d="{bit}"/>{ring}</g>'
    raise SystemExit(f"code {thing}; expected a wall, a key, a ball, a box or the agent")


def main() -> int:
    """Writes or compares; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if the file differs")
    check = parser.parse_args().check
    found = drawing(*halves())
    if not check:
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(found, encoding="utf-8")
    elif not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != found:
        print(f"{PICTURE.relative_to(ROOT)} shows another reward; renew it: python docs/picture.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
