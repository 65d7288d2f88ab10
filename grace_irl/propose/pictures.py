"""Pictures of states as PNG files, for prompts to multimodal models."""

from __future__ import annotations

import colorsys
import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Problem
from grace_irl.demos.trajectory import Trajectory
from grace_irl.demos.ui.picture import picture
from grace_irl.errors import InputError
from grace_irl.propose.tokens import estimate
from grace_irl.propose.views.trajectory import Shown, halves
from grace_irl.states import pixels
from grace_irl.states.grid import GRID
from grace_irl.states.image import IMAGE
from grace_irl.states.record import RECORD
from grace_irl.states.screen import SCREEN
from grace_irl.text import line

PICTURES = 6  # maximum number of pictures in one prompt
TRAJECTORIES = 3  # maximum number of trajectories with pictures but without states in focus (`Shown.focus`)
CELL = 40  # side of a grid cell in pixels, with room for its three numbers, one below the other
LONGEST = 1_200  # maximum width and height of a picture in pixels; cells of large grids are smaller
LEAST_NUMBERED = 36  # minimum side in pixels of a cell with written numbers
ENLARGED = 512  # maximum width and height in pixels to which small images are enlarged
NAMED = 80  # maximum number of characters for the names of a record's parts in a caption
APART = 8  # pixels between the images of a record


@dataclass(frozen=True)
class Pictures:
    """Pictures of a prompt.

    Attributes:
        files: the content of each PNG file.
        captions: the caption of each file.
        legend: explanation of the drawings.
    """

    files: tuple[bytes, ...]
    captions: tuple[str, ...]
    legend: str

    @property
    def text(self) -> str:
        """The legend and the captions as a section of a prompt."""
        lines = [f"Picture {place}: {caption}" for place, caption in enumerate(self.captions, start=1)]
        return "\n".join(["# Pictures", self.legend, *lines])


def require_pictures(problem: Problem) -> None:
    """Raise InputError if the states of a problem cannot be drawn, or if Pillow is missing."""
    trajectory = problem.items[0].trajectory if problem.items else None
    require_kind(problem.metadata.kind, trajectory)


def require_kind(kind: str, trajectory: Trajectory | None = None) -> None:
    """Raise InputError if states of a kind cannot be drawn, or if Pillow is missing.

    Args:
        kind: name of the state kind, such as "grid".
        trajectory: a trajectory to check, too; None to check only the kind.
    """
    objection = "" if trajectory is None or kind not in PAINTERS else PAINTERS[kind].objection(trajectory)
    if kind not in PAINTERS or objection:
        raise InputError(
            f"--images: {objection or f'{kind} states have no picture'}; expected {' or '.join(PAINTERS)} states"
            f"{' with a picture' if objection else ''}: leave --images out"
        )
    try:
        import PIL  # noqa: F401
    except ModuleNotFoundError:
        raise InputError(
            "--images: Pillow is not installed, which draws the pictures: pip install 'grace-irl[llm]'"
        ) from None


def pictures(titles: Mapping[str, Shown]) -> Pictures:
    """Draw at most `PICTURES` states of the trajectories in a prompt.

    The states in focus (`Shown.focus`), which the parent program misclassifies, are chosen first, one from each
    trajectory in turn. Then the last and the first state of expert trajectories are chosen. If the prompt asks for goal
    states, some states between the first and the last state follow. The pictures stand in the order of the prompt.

    Args:
        titles: the trajectories by their titles in the prompt.

    Raises:
        InputError: a screenshot is missing or cannot be decoded.
    """
    failing = {title: list(shown.focus) for title, shown in titles.items() if shown.focus}
    others = {title: _steps(shown) for title, shown in titles.items() if title not in failing and _tells(shown)}
    others = dict(list(others.items())[:TRAJECTORIES])
    turns = [
        (title, step)
        for part in (failing, others)
        for row in zip_longest(*([(title, step) for step in steps] for title, steps in part.items()))
        for title, step in filter(None, row)
    ]
    order = list(titles)
    files, captions = [], []
    for title, step in sorted(turns[:PICTURES], key=lambda turn: (order.index(turn[0]), turn[1])):
        shown = titles[title]
        file, drawing = portrait(shown.item.trajectory, step)
        files.append(file)
        marks = ", positive" if shown.marks and shown.item.positive[step] else ""
        captions.append(f"{drawing}state {step + 1} of {title}{marks}{', WRONG' if step in shown.wrong else ''}")
    kind = next(iter(titles.values())).item.trajectory.kind
    return Pictures(tuple(files), tuple(captions), PAINTERS[kind].legend)


def most_of_captions(shown: Sequence[Shown]) -> int:
    """Upper bound on the tokens of all captions in a prompt with these trajectories."""
    first, steps = shown[0].item.trajectory, max(len(each.item.positive) for each in shown)
    painter = PAINTERS[first.kind]
    longest = f"{painter.longest(first)}state {steps} of Trajectory {len(shown)}, positive, WRONG"
    return estimate(Pictures((), (longest,) * PICTURES, painter.legend).text)


def _tells(shown: Shown) -> bool:
    """Whether the first and the last state of a trajectory help to understand the task."""
    return not shown.marks or shown.item.demonstration.role == "expert"


def _steps(shown: Shown) -> list[int]:
    """Choose the states to draw if a trajectory has no states in focus. Return their steps, most informative first."""
    last = len(shown.item.positive) - 1
    return list(dict.fromkeys((last, 0) if shown.marks else (last, 0, *halves(last + 1))))


def portrait(trajectory: Trajectory, step: int) -> tuple[bytes, str]:
    """Draw a state. Return a PNG file, and the beginning of its caption, such as "screenshot of ".

    Raises:
        InputError: a screenshot is missing or cannot be decoded.
    """
    return PAINTERS[trajectory.kind].paint(trajectory, step)


def png(state: NDArray[np.integer]) -> bytes:
    """Draw a grid `(h, w, 3)` as a PNG file."""
    from PIL import Image, ImageDraw

    height, width = state.shape[:2]
    cell = max(1, min(CELL, LONGEST // max(height, width)))
    image = Image.new("RGB", (width * cell, height * cell))
    draw = ImageDraw.Draw(image)
    for i in range(height):
        for j in range(width):
            code = tuple(int(number) for number in state[i, j])
            corner = (j * cell, i * cell)
            draw.rectangle((*corner, corner[0] + cell - 1, corner[1] + cell - 1), fill=_colour(code), outline=(0, 0, 0))
            if cell >= LEAST_NUMBERED:
                draw.multiline_text(
                    (corner[0] + 3, corner[1] + 1), "\n".join(map(str, code)), fill=(0, 0, 0), spacing=1
                )
    file = io.BytesIO()
    image.save(file, format="PNG", optimize=True)
    return file.getvalue()


def _colour(code: tuple[int, ...]) -> tuple[int, int, int]:
    """A light colour for a cell, computed from the three numbers of the cell."""
    number = int.from_bytes(hashlib.sha256(repr(code).encode()).digest()[:4])
    red, green, blue = colorsys.hsv_to_rgb((number % 997) / 997, 0.2 + 0.3 * (number % 7) / 6, 1.0)
    return round(255 * red), round(255 * green), round(255 * blue)


def _grid(trajectory: Trajectory, step: int) -> tuple[bytes, str]:
    return png(trajectory.states[step]), ""


def _image(trajectory: Trajectory, step: int) -> tuple[bytes, str]:
    return pixels.png(_sized(trajectory.states[step])), ""


def _sized(image: NDArray[Any]) -> NDArray[np.uint8]:
    return pixels.enlarged(pixels.reduced(image, LONGEST, LONGEST), ENLARGED)


def _record(trajectory: Trajectory, step: int) -> tuple[bytes, str]:
    """Draw those parts of a record that are images, side by side."""
    names, state = RECORD.images(trajectory.states), trajectory.states[step]
    drawn = [pixels.coloured(_sized(state[name])) for name in names]
    height = max(len(image) for image in drawn)
    whole = np.full((height, sum(image.shape[1] + APART for image in drawn) - APART, 3), 255, np.uint8)
    left = 0
    for image in drawn:
        whole[: len(image), left : left + image.shape[1]] = image
        left += image.shape[1] + APART
    return pixels.png(pixels.reduced(whole, LONGEST, LONGEST)), _named(trajectory)


def _named(trajectory: Trajectory) -> str:
    """The beginning of the caption of a record: the names of its parts that are images."""
    return f"{line(', '.join(RECORD.images(trajectory.states)))[:NAMED]} of "


def _no_image(trajectory: Trajectory) -> str:
    return (
        ""
        if RECORD.images(trajectory.states)
        else "no part of these records is an image: bytes (h, w, c) with c = 1, 3 or 4"
    )


def _drawable(trajectory: Trajectory) -> str:
    del trajectory
    return ""


def _screen(trajectory: Trajectory, step: int) -> tuple[bytes, str]:
    shown = picture(trajectory, step)
    return shown.png, "screenshot of " if shown.screenshot else "drawing of "


@dataclass(frozen=True)
class Painter:
    """Functions that draw states of one kind.

    Attributes:
        legend: explanation of the drawings, for the prompt.
        paint: function that draws the state at a step. It returns a PNG file and the beginning of the caption.
        objection: function that returns the reason why a trajectory's states cannot be drawn; "" if they can.
        longest: function that returns the longest beginning of a caption for a trajectory.
    """

    legend: str
    paint: Callable[[Trajectory, int], tuple[bytes, str]]
    objection: Callable[[Trajectory], str] = _drawable
    longest: Callable[[Trajectory], str] = lambda _: "screenshot of "


PAINTERS = {
    GRID.name: Painter(
        "One square per cell, first index downwards, its codes written in it; colours mean nothing.", _grid
    ),
    IMAGE.name: Painter("Pictures are the states themselves, enlarged if they are small.", _image),
    RECORD.name: Painter(
        "Pictures show the parts of states that are images, left to right as named, enlarged if they are small.",
        _record,
        _no_image,
        _named,
    ),
    SCREEN.name: Painter(
        "Programs are handed the XML alone. In drawings frames are nodes where their bounds are; blue: clickable or "
        "checkable, a tick on green: checked, purple: selected, orange: focused, grey letters: disabled, or a hint.",
        _screen,
    ),
}
"""Painters by name of the state kind. States of other kinds cannot be drawn."""
