"""Pictures of demonstrations, in a terminal or as PNG files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from grace_irl.atomic import write_atomically
from grace_irl.demos.summary import DemosSummary
from grace_irl.demos.trajectory import Trajectory
from grace_irl.propose.pictures import portrait, require_kind
from grace_irl.propose.views.outline import ScreenOutline
from grace_irl.states.blocks import Legend, picture, snapshots
from grace_irl.states.grid import GRID
from grace_irl.states.image import IMAGE
from grace_irl.states.pixels import characters
from grace_irl.states.screen import SCREEN


def in_terminal(summary: DemosSummary) -> RenderableType | None:
    """A drawing of some states from the first trajectory of each role; None for kinds of states without drawings."""
    draw = TERMINAL.get(summary.metadata.kind)
    return None if draw is None else draw(summary)


def _blocks(summary: DemosSummary) -> RenderableType:
    """Grids as coloured blocks."""
    shown = {
        role: [(step, sample.trajectory.states[step]) for step in snapshots(sample.trajectory.states)]
        for role, sample in summary.samples.items()
    }
    legend = Legend([grid for steps in shown.values() for _, grid in steps])
    parts: list[RenderableType] = []
    for role, steps in shown.items():
        parts += [_title(role, summary.samples[role].trajectory, [step for step, _ in steps])]
        parts += [picture([grid for _, grid in steps], legend), Text("")]
    return Group(*parts, Text("state[i, j]: i down, j right; cells as (channel 0, 1, 2)"), legend.text())


def _pixels(summary: DemosSummary) -> RenderableType:
    """Images as coloured characters."""
    parts: list[RenderableType] = []
    for role, sample in summary.samples.items():
        states = sample.trajectory.states
        steps = snapshots(states)
        parts += [_title(role, sample.trajectory, steps), characters([states[step] for step in steps]), Text("")]
    return Group(*parts)


def _title(role: str, trajectory: Trajectory, steps: Sequence[int]) -> Text:
    said = f": {trajectory.extra_info!r}" if trajectory.extra_info else ""
    return Text(f"{role}{said}, states {', '.join(map(str, steps))} of {trajectory.num_steps}", style="bold")


def _outlines(summary: DemosSummary) -> RenderableType:
    """The first and last screen of the first trajectory of each role, as outlines in the form used in prompts."""
    parts: list[RenderableType] = []
    for role, sample in summary.samples.items():
        trajectory = sample.trajectory
        said = f": {trajectory.extra_info!r}" if trajectory.extra_info else ""
        for step in snapshots(trajectory.states, 2):
            outline = ScreenOutline.of(trajectory.states[step])
            lines = outline.write(range(len(outline.items))) or [outline.fault or "no nodes that say anything"]
            parts += [Text(f"{role}{said}, state {step} of {trajectory.num_steps}", style="bold")]
            parts += [Text("\n".join([f"  {lines[0]}", *lines[1:]])), Text("")]
    return Group(*parts)


TERMINAL: dict[str, Callable[[DemosSummary], RenderableType]] = {
    GRID.name: _blocks,
    IMAGE.name: _pixels,
    SCREEN.name: _outlines,
}
"""Functions that draw states in a terminal, by kind of state."""


def save_pictures(summary: DemosSummary, folder: Path) -> list[Path]:
    """Write the first, middle and last state of the first trajectory of each role as PNG files.

    Args:
        summary: summary of demonstrations whose states have pictures.
        folder: folder for the files, made if missing. Files with the same names are replaced.

    Returns:
        The paths of the files.

    Raises:
        InputError: states without pictures, Pillow not installed, a missing screenshot, or an unwritable folder.
    """
    first = next(iter(summary.samples.values()), None)
    require_kind(summary.metadata.kind, None if first is None else first.trajectory)
    written = []
    for role, sample in summary.samples.items():
        for step in snapshots(sample.trajectory.states):
            file, _ = portrait(sample.trajectory, step)
            path = folder / f"{role}-{step}.png"
            write_atomically(path, file)
            written.append(path)
    return written
