"""The states that the report shows, each in its view, as many as the page has room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from grace_irl.report.data import Data
from grace_irl.report.evidence import Evidence, Shot
from grace_irl.report.figures import digits
from grace_irl.report.grid import Entry, GridPictures
from grace_irl.report.screens import ScreenView, screen_view
from grace_irl.report.values import Valued
from grace_irl.report.vectors import Field, fields, numbers

BYTES = 4_000_000
"""Of all states together; a page stays below 5 MB."""


@dataclass(frozen=True)
class VectorRow:
    """One field of several states: what it is like in training data, and its number in each state."""

    field: Field
    numbers: list[float | None]

    @property
    def digits(self) -> int:
        """Behind the point."""
        spreads = [side[1] for side in (self.field.positive, self.field.negative) if side]
        return digits(max(spreads, default=0.0))


class Gallery:
    """Shows states of a run.

    Args:
        data: as far as it could be read.
        evidence: says which states are shown.
        limit: bytes of all states together.

    Attributes:
        kind: "grid", "ui" or "vector"; "" where no states could be read.
        left_out: how many states were not shown for want of room.
    """

    def __init__(self, data: Data, evidence: Evidence, limit: int = BYTES) -> None:
        self._data = data
        self._room = limit
        self.left_out = 0
        self.kind = data.metadata.kind if data.metadata and data.trajectories else ""
        shots = [*evidence.low, *evidence.high, *(shot for story in evidence.stories for shot in story.shots)]
        shown = [shot for shot in shots if shot.of.row.digest in data.trajectories]
        self._grids: GridPictures | None = None
        self._fields: tuple[Field, ...] = ()
        self.fields_left_out = 0
        if self.kind == "grid" and shown:
            self._grids = GridPictures([data.trajectories[shot.of.row.digest].states[shot.step] for shot in shown])
        if self.kind == "vector" and data.metadata is not None:
            names = data.metadata.fields
            self._fields, self.fields_left_out = fields(evidence.trajectories, data.trajectories, names)

    def instruction(self, of: Valued) -> str:
        """What a trajectory was told, or ""."""
        found = self._data.trajectories.get(of.row.digest)
        return found.extra_info if found else ""

    def grid(self, shot: Shot) -> Markup | None:
        """A drawing of a grid, where there is one and room for it."""
        trajectory = self._data.trajectories.get(shot.of.row.digest)
        if self._grids is None or trajectory is None:
            return None
        drawn = self._grids.draw(trajectory.states[shot.step], f"the grid of state {shot.step + 1}")
        return drawn if drawn is not None and self._fits(len(drawn)) else None

    @property
    def legend(self) -> list[Entry]:
        """What the squares of grids stand for."""
        return self._grids.legend if self._grids else []

    def screen(self, shot: Shot) -> ScreenView | None:
        """A screen, where there is one and room for it."""
        trajectory = self._data.trajectories.get(shot.of.row.digest)
        if self.kind != "ui" or trajectory is None:
            return None
        view = screen_view(trajectory, shot.step)
        return view if self._fits(view.size) else None

    def rows(self, shots: Sequence[Shot]) -> list[VectorRow]:
        """Fields of several vectors."""
        return [VectorRow(field, numbers(field, shots, self._data.trajectories)) for field in self._fields]

    def _fits(self, size: int) -> bool:
        """Whether so many bytes more have room; takes it."""
        if size > self._room:
            self.left_out += 1
            return False
        self._room -= size
        return True
