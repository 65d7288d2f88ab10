"""Pictures of demonstrations: screens as outlines in a terminal, states as picture files."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from grace_irl.atomic import write_atomically
from grace_irl.demos.summary import EXAMPLES, DemosSummary
from grace_irl.propose.pictures import portrait, require_kind
from grace_irl.propose.views.outline import ScreenOutline
from grace_irl.states.blocks import snapshots
from grace_irl.states.ui.census import ScreenCensus


def outlines(summary: DemosSummary) -> RenderableType:
    """The first and the last screen of the first trajectory of each role, as prompts write them."""
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


def save_pictures(summary: DemosSummary, folder: Path) -> list[Path]:
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


def screens_table(census: ScreenCensus) -> RenderableType:
    """Sizes of screens, and the apps in the foreground."""
    sizes = Table(title=f"Screens: {census.screens}, of which {census.distinct} differ", title_justify="left")
    sizes.add_column("of a screen")
    for name in ("min", "mean", "max"):
        sizes.add_column(name, justify="right")
    for name, spread in (("nodes", census.nodes), ("bytes of XML", census.sizes)):
        sizes.add_row(name, f"{spread.least}", f"{spread.mean:.0f}", f"{spread.most}")
    apps = Table(title="Apps in the foreground", title_justify="left")
    apps.add_column("package", overflow="fold")
    apps.add_column("screens", justify="right")
    for package, count in census.packages.most_common(EXAMPLES):
        apps.add_row(package or "(none)", str(count))
    more = len(census.packages) - EXAMPLES
    return Group(sizes, apps, *([f"and {more} more packages"] if more > 0 else []), "")
