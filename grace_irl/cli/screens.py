"""Tables of what the screens of a set are like."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table

from grace_irl.demos.summary import EXAMPLES
from grace_irl.demos.ui.census import ScreenCensus


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
