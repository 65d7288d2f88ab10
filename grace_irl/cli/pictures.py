"""Pictures of demonstrations: screens as outlines in a terminal, states as picture files."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from grace_irl.atomic import write_atomically
from grace_irl.demos.picture import snapshots
from grace_irl.demos.summary import Summary
from grace_irl.propose.pictures import portrait, require_kind
from grace_irl.propose.views.outline import Outline


def outlines(summary: Summary) -> RenderableType:
    """The first and the last screen of the first trajectory of each role, as prompts write them."""
    parts: list[RenderableType] = []
    for role, sample in summary.samples.items():
        trajectory = sample.trajectory
        said = f": {trajectory.extra_info!r}" if trajectory.extra_info else ""
        for step in snapshots(trajectory.states, 2):
            outline = Outline.of(trajectory.states[step])
            lines = outline.write(range(len(outline.items))) or [outline.fault or "no nodes that say anything"]
            parts += [Text(f"{role}{said}, state {step} of {trajectory.num_steps}", style="bold")]
            parts += [Text("\n".join([f"  {lines[0]}", *lines[1:]])), Text("")]
    return Group(*parts)


def save_pictures(summary: Summary, folder: Path) -> list[Path]:
    """Writes the first, the middle and the last state of the first trajectory of each role as PNG files.

    Args:
        summary: of grids or screens.
        folder: made where it is not there; files of the same names are replaced.

    Raises:
        InputError: states without pictures, no Pillow, a screenshot that is gone, a folder that cannot be written.
    """
    require_kind(summary.metadata.kind)
    written = []
    for role, sample in summary.samples.items():
        for step in snapshots(sample.trajectory.states):
            file, _ = portrait(sample.trajectory, step)
            path = folder / f"{role}-{step}.png"
            write_atomically(path, file)
            written.append(path)
    return written
