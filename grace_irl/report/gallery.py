"""Figures of states in the report, such as drawings and tables, up to a limit on their total size."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from rich.style import Style

from grace_irl.demos.fields import Computed, moments
from grace_irl.demos.trajectory import Trajectory
from grace_irl.report.charts import picture
from grace_irl.report.data import Data, Valued
from grace_irl.report.evidence import EvidencePanel, Shot
from grace_irl.report.page import digits
from grace_irl.report.screens import ScreenFigure, screen_view
from grace_irl.states import pixels
from grace_irl.states.blocks import Legend
from grace_irl.states.grid import GRID
from grace_irl.states.image import IMAGE
from grace_irl.states.record import RECORD, places, spelled
from grace_irl.states.screen import SCREEN
from grace_irl.states.vector import VECTOR
from grace_irl.svg import text

FIELDS = 24
"""Maximum number of fields in a table. A table of wider vectors has the fields with the largest |`Field.effect`|."""


@dataclass(frozen=True)
class Field:
    """Statistics of one field of the state vector over the training states.

    Attributes:
        index: position in the vector.
        name: name of the field, or "".
        positive: (mean, standard deviation) over positive states; None without such states.
        negative: (mean, standard deviation) over negative states; None without such states.
        effect: difference of the two means in units of the pooled deviation (Cohen's d); 0 if a mean is missing or if
            the pooled deviation is 0.
    """

    index: int
    name: str
    positive: tuple[float, float] | None
    negative: tuple[float, float] | None
    effect: float


def fields(
    valued: Sequence[Valued], trajectories: dict[str, Trajectory], names: Sequence[str]
) -> tuple[tuple[Field, ...], int]:
    """The fields to show, in the order of the vector, and the number of omitted fields."""
    sides = [_moments(valued, trajectories, positive=side) for side in (True, False)]
    width = _rows(next(iter(trajectories.values())), slice(0, 1)).shape[1]
    found = []
    for index in range(width):
        name = names[index] if index < len(names) else ""
        positive, negative = ((float(s[0][index]), float(s[1][index])) if s else None for s in sides)
        effect = 0.0
        if positive and negative:
            pooled = np.sqrt((positive[1] ** 2 + negative[1] ** 2) / 2)
            effect = (positive[0] - negative[0]) / float(pooled) if pooled > 0 else 0.0
        found.append(Field(index, name, positive, negative, effect))
    most = sorted(found, key=lambda each: (-abs(each.effect), each.index))[:FIELDS]
    return tuple(sorted(most, key=lambda each: each.index)), len(found) - len(most)


def _moments(
    valued: Sequence[Valued], trajectories: dict[str, Trajectory], *, positive: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Mean and standard deviation of each field over the positive (or negative) training states."""
    parts = [
        (trajectories[each.row.digest], np.flatnonzero(each.positive == positive))
        for each in valued
        if each.row.split == "train" and each.row.digest in trajectories
    ]
    parts = [(trajectory, chosen) for trajectory, chosen in parts if len(chosen)]
    return moments(Computed(lambda place: _rows(*parts[place]), len(parts))) if parts else None


def _rows(trajectory: Trajectory, chosen: Any) -> NDArray[np.float64]:
    """The chosen states of a trajectory as rows of numbers, `(n, width)`."""
    found = trajectory.state_kind.numbers(trajectory.states[chosen])
    return np.zeros((0, 0)) if found is None else found


def numbers(field: Field, shots: Sequence[Shot], trajectories: dict[str, Trajectory]) -> list[float | None]:
    """The value of a field in each shown state (`Shot`); None if the state's trajectory is missing."""
    found = (trajectories.get(shot.of.row.digest) for shot in shots)
    return [
        None if each is None else float(_rows(each, slice(shot.step, shot.step + 1))[0, field.index])
        for each, shot in zip(found, shots, strict=True)
    ]


CELL = 20  # width and height of a grid cell, pixels
MOST_CELLS = 4_096  # maximum number of cells of a grid to draw
MARKED = 40  # maximum width, in cells, of a grid whose drawing has marks (a character in each cell)
MOST_LISTED = 60  # maximum number of entries of the legend
COMMON = "·▒"  # marks of common background cells; drawings omit these marks


@dataclass(frozen=True)
class Entry:
    """One line of the legend: a coloured square and the cell codes that the square represents."""

    square: Markup
    codes: str


class GridPictures:
    """Drawings of grids `(h, w, 3)` with a common legend.

    Args:
        grids: all grids to draw.
    """

    def __init__(self, grids: Sequence[NDArray[np.integer]]) -> None:
        self._legend = Legend(grids)

    def draw(self, grid: NDArray[np.integer], label: str) -> Markup | None:
        """A drawing of one grid; None if the grid has too many cells."""
        height, width = grid.shape[:2]
        if height * width > MOST_CELLS:
            return None
        parts: list[str] = []
        letters: list[str] = []
        for row, cells in enumerate(grid.tolist()):
            start = 0
            blocks = [self._legend.block(tuple(cell)) for cell in cells]
            for column in range(1, width + 1):
                if column == width or cells[column] != cells[start]:
                    parts.append(_square(start, row, column - start, blocks[start][1]))
                    start = column
            letters += [
                _letter(column, row, mark[0])
                for column, (mark, _) in enumerate(blocks)
                if mark[0] not in COMMON and width <= MARKED
            ]
        return picture(width * CELL, height * CELL, [*parts, *letters], label)

    @property
    def legend(self) -> list[Entry]:
        """The entries of the legend, most frequent cells first."""
        entries = []
        for cell, (mark, style) in list(self._legend.blocks.items())[:MOST_LISTED]:
            codes = " ".join(map(str, cell))
            letter = [] if mark[0] in COMMON else [_letter(0, 0, mark[0])]
            entries.append(Entry(picture(CELL, CELL, [_square(0, 0, 1, style), *letter], f"codes {codes}"), codes))
        return entries


def _square(column: int, row: int, cells: int, style: str) -> str:
    return f'<rect x="{column * CELL}" y="{row * CELL}" width="{cells * CELL}" height="{CELL}" fill="{_fill(style)}"/>'


def _letter(column: int, row: int, mark: str) -> str:
    return text((column + 0.5) * CELL, (row + 0.72) * CELL, mark, fill="#000")


@cache
def _fill(style: str) -> str:
    """The background colour of a Rich style, as `#rrggbb`."""
    colour = Style.parse(style).bgcolor
    assert colour is not None  # every style in a legend has a background colour
    return str(colour.get_truecolor().hex)


LONGEST_SIDE = 240  # maximum width and height of an image, pixels

BYTES = 4_000_000
"""Maximum size of all figures together in bytes, so that a page stays below 5 MB."""


@dataclass(frozen=True)
class VectorRow:
    """A table row: statistics of one field over the training states, and the field's values in the shown states."""

    field: Field
    numbers: list[float | None]

    @property
    def digits(self) -> int:
        """Number of decimal places."""
        spreads = [side[1] for side in (self.field.positive, self.field.negative) if side]
        return digits(max(spreads, default=0.0))


class GalleryFigures:
    """Figures of states of one kind. Subclasses draw them. For kinds without figures, this base class itself is used.

    Args:
        data: readable demonstrations of the run.
        evidence: evidence about the reward. Statistics of fields use the training trajectories of the evidence.
        states: states to draw.

    Attributes:
        wide: whether the figure of a state takes the full width of the page.
        fields_left_out: number of fields that the table of vectors omits.
    """

    wide = False

    def __init__(self, data: Data, evidence: EvidencePanel, states: Sequence[Any]) -> None:
        del data, evidence, states
        self.fields_left_out = 0

    def drawing(self, state: Any, label: str) -> Markup | None:
        """A drawing of a state, or None."""
        del state, label
        return None

    def screen(self, trajectory: Trajectory, step: int) -> ScreenFigure | None:
        """A screen with its outline, or None if states are not screens."""
        del trajectory, step
        return None

    @property
    def legend(self) -> list[Entry]:
        """The legend of the drawings if they are grids; [] otherwise."""
        return []

    def rows(self, shots: Sequence[Shot]) -> list[VectorRow]:
        """The rows of a table of several states. There is one row per field; [] if states have no fields."""
        del shots
        return []


class GridFigures(GalleryFigures):
    """Figures of grids: drawings with a common legend."""

    def __init__(self, data: Data, evidence: EvidencePanel, states: Sequence[Any]) -> None:
        super().__init__(data, evidence, states)
        self._grids = GridPictures(states) if states else None

    def drawing(self, state: Any, label: str) -> Markup | None:
        """See `GalleryFigures`."""
        return self._grids.draw(state, f"the grid of {label}") if self._grids else None

    @property
    def legend(self) -> list[Entry]:
        """See `GalleryFigures`."""
        return self._grids.legend if self._grids else []


class ImageFigures(GalleryFigures):
    """Figures of images. Large images are reduced, and small images are enlarged by a whole factor."""

    def drawing(self, state: Any, label: str) -> Markup | None:
        """See `GalleryFigures`."""
        shown = pixels.reduced(state, LONGEST_SIDE, LONGEST_SIDE)
        height, width = (side * max(1, LONGEST_SIDE // max(shown.shape[:2])) for side in shown.shape[:2])
        uri = f"data:image/png;base64,{base64.b64encode(pixels.png(shown)).decode()}"
        return picture(
            width,
            height,
            [f'<image width="{width}" height="{height}" image-rendering="pixelated" href="{uri}"/>'],
            f"the image of {label}",
        )


class VectorFigures(GalleryFigures):
    """Figures of vectors: a table of their fields."""

    def __init__(self, data: Data, evidence: EvidencePanel, states: Sequence[Any]) -> None:
        super().__init__(data, evidence, states)
        self._trajectories = data.trajectories
        self._fields, self.fields_left_out = fields(evidence.trajectories, data.trajectories, self._names(data))

    def _names(self, data: Data) -> Sequence[str]:
        return data.metadata.fields if data.metadata is not None else ()

    def rows(self, shots: Sequence[Shot]) -> list[VectorRow]:
        """See `GalleryFigures`."""
        return [VectorRow(field, numbers(field, shots, self._trajectories)) for field in self._fields]


class RecordFigures(VectorFigures):
    """Figures of records (states of named parts): a table of numbers, with row names such as `achieved_goal[0]`."""

    def _names(self, data: Data) -> Sequence[str]:
        first = next(iter(data.trajectories.values()))
        return [spelled(*place) for place in places(first.states)]


class ScreenFigures(GalleryFigures):
    """Figures of screens (states of a user interface): pictures and outlines."""

    wide = True

    def screen(self, trajectory: Trajectory, step: int) -> ScreenFigure | None:
        """See `GalleryFigures`."""
        return screen_view(trajectory, step)


FIGURES: dict[str, type[GalleryFigures]] = {
    VECTOR.name: VectorFigures,
    GRID.name: GridFigures,
    SCREEN.name: ScreenFigures,
    RECORD.name: RecordFigures,
    IMAGE.name: ImageFigures,
}
"""Map from the name of a kind of states to the class of its figures. Other kinds have no figures."""


class Gallery:
    """Figures of the states in the evidence, up to a limit on their total size.

    Args:
        data: readable demonstrations of the run.
        evidence: evidence about the reward, with the states to show.
        limit: maximum size of all figures together, bytes.

    Attributes:
        figures: figures for the kind of the states.
        left_out: number of figures omitted because of the limit.
    """

    def __init__(self, data: Data, evidence: EvidencePanel, limit: int = BYTES) -> None:
        self._data = data
        self._room = limit
        self.left_out = 0
        kind = data.metadata.kind if data.metadata and data.trajectories else ""
        shots = [*evidence.low, *evidence.high, *(shot for story in evidence.stories for shot in story.shots)]
        shown = [shot for shot in shots if shot.of.row.digest in data.trajectories]
        states = [data.trajectories[shot.of.row.digest].states[shot.step] for shot in shown]
        self.figures = FIGURES.get(kind, GalleryFigures)(data, evidence, states)

    def instruction(self, of: Valued) -> str:
        """The instruction of a trajectory; "" if the trajectory or its instruction is missing."""
        found = self._data.trajectories.get(of.row.digest)
        return found.extra_info if found else ""

    def drawing(self, shot: Shot) -> Markup | None:
        """A drawing of a state; None if there is no drawing, or if it is larger than what is left of the limit."""
        trajectory = self._data.trajectories.get(shot.of.row.digest)
        if trajectory is None:
            return None
        drawn = self.figures.drawing(trajectory.states[shot.step], f"state {shot.step + 1}")
        return drawn if drawn is not None and self._fits(len(drawn)) else None

    def screen(self, shot: Shot) -> ScreenFigure | None:
        """The figure of a screen; None if there is no figure, or if it is larger than what is left of the limit."""
        trajectory = self._data.trajectories.get(shot.of.row.digest)
        view = None if trajectory is None else self.figures.screen(trajectory, shot.step)
        return view if view is not None and self._fits(view.size) else None

    def _fits(self, size: int) -> bool:
        """Reserve `size` bytes for a figure. If fewer bytes remain, count the figure in `left_out` and return False."""
        if size > self._room:
            self.left_out += 1
            return False
        self._room -= size
        return True
