"""Statistics of the screens in a data set, computed in one pass. Equal screens are parsed only once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from grace_irl.states.ui.screen import Screen

if TYPE_CHECKING:
    from rich.console import RenderableType


class Spread(NamedTuple):
    """Minimum, mean and maximum of a quantity over all states, such as the number of nodes."""

    least: int
    mean: float
    most: int


class _About(NamedTuple):
    """Facts of one screen: the app in the foreground, the number of nodes, the bytes of XML."""

    package: str
    nodes: int
    size: int


class ScreenCensus:
    """Statistics of screens. Implements `grace_irl.states.kind.Census`.

    Attributes:
        packages: number of states with each app in the foreground.
        classes: number of nodes of each class. Equal screens count once.
    """

    def __init__(self) -> None:
        self.packages: Counter[str] = Counter()
        self.classes: Counter[str] = Counter()
        self._known: dict[bytes, _About] = {}
        self._nodes: Counter[int] = Counter()
        self._sizes: Counter[int] = Counter()

    def add(self, states: NDArray[Any], where: str = "") -> None:
        """Add the screens `(T+1,)` of one trajectory.

        Raises:
            InputError: an invalid screen.
        """
        for step, state in enumerate(states.tolist()):
            name = hashlib.blake2b(state, digest_size=16).digest()
            if name not in self._known:
                self._known[name] = self._about(state, f"{where or 'trajectory'}, step {step}")
            about = self._known[name]
            self.packages[about.package] += 1
            self._nodes[about.nodes] += 1
            self._sizes[about.size] += 1

    def _about(self, state: bytes, where: str) -> _About:
        screen = Screen.parse(state, where)
        self.classes.update(node.class_name for node in screen.nodes)
        return _About(screen.package, len(screen.nodes), len(state))

    @property
    def screens(self) -> int:
        """The number of states."""
        return self._nodes.total()

    @property
    def distinct(self) -> int:
        """The number of different states."""
        return len(self._known)

    @property
    def nodes(self) -> Spread:
        """Number of nodes per screen."""
        return _spread(self._nodes)

    @property
    def sizes(self) -> Spread:
        """Bytes of XML per screen."""
        return _spread(self._sizes)

    def to_json(self, fields: Sequence[str], most: int) -> dict[str, Any]:
        """See `Census`. The argument `most` limits packages and classes."""
        return {
            "screens": {
                "screens": self.screens,
                "distinct": self.distinct,
                "packages": dict(self.packages.most_common(most)),
                "distinct_packages": len(self.packages),
                "classes": dict(self.classes.most_common(most)),
                "nodes": dict(zip(("min", "mean", "max"), self.nodes, strict=True)),
                "bytes": dict(zip(("min", "mean", "max"), self.sizes, strict=True)),
            }
        }

    def table(self, fields: Sequence[str], most: int) -> RenderableType:
        """See `Census`. Two tables: sizes of screens, and apps in the foreground."""
        from rich.console import Group
        from rich.table import Table

        sizes = Table(title=f"Screens: {self.screens}, of which {self.distinct} differ", title_justify="left")
        sizes.add_column("of a screen")
        for name in ("min", "mean", "max"):
            sizes.add_column(name, justify="right")
        for name, spread in (("nodes", self.nodes), ("bytes of XML", self.sizes)):
            sizes.add_row(name, f"{spread.least}", f"{spread.mean:.0f}", f"{spread.most}")
        apps = Table(title="Apps in the foreground", title_justify="left")
        apps.add_column("package", overflow="fold")
        apps.add_column("screens", justify="right")
        for package, count in self.packages.most_common(most):
            apps.add_row(package or "(none)", str(count))
        more = len(self.packages) - most
        return Group(sizes, apps, *([f"and {more} more packages"] if more > 0 else []), "")


def _spread(counts: Counter[int]) -> Spread:
    total = sum(value * count for value, count in counts.items())
    return Spread(min(counts, default=0), total / max(counts.total(), 1), max(counts, default=0))
