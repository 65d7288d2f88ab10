"""Figures of screens (states of a user interface): pictures, changes since the previous state, and an outline."""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass

from grace_irl.demos.trajectory import Trajectory
from grace_irl.demos.ui.picture import Picture, picture
from grace_irl.errors import InputError
from grace_irl.propose.views.difference import difference
from grace_irl.propose.views.outline import ScreenOutline

LONGEST = 480  # maximum width and height of a picture, pixels
LINES = 150  # maximum number of lines of an outline, and of lines about changes
MARKS = {"~": "changed", "+": "new", "-": "gone"}


@dataclass(frozen=True)
class ScreenPicture:
    """A picture in the page.

    Attributes:
        uri: `data:` URI of a PNG file.
        width, height: size, pixels.
        screenshot: whether the picture is a screenshot, not a drawing.
    """

    uri: str
    width: int
    height: int
    screenshot: bool


@dataclass(frozen=True)
class ScreenFigure:
    """The figure of a screen in the report.

    Attributes:
        pictures: the screenshot, if the data have one, and a drawing of the state as programs get it.
        trouble: reason why a picture is missing; "" if no picture is missing.
        changes: kind ("changed", "new", "gone") and text of each line that differs from the previous screen; () if
            nothing differs. None for the first screen, or if the two screens differ too much (`difference`).
        outline: lines of the outline, which lists the nodes of the screen as in prompts.
        left_out: number of omitted lines of the outline.
    """

    pictures: tuple[ScreenPicture, ...]
    trouble: str
    changes: tuple[tuple[str, str], ...] | None
    outline: tuple[str, ...]
    left_out: int

    @property
    def size(self) -> int:
        """Approximate size in the page, bytes."""
        lines = [*self.outline, *(line for _, line in self.changes or ())]
        return sum(len(each.uri) for each in self.pictures) + sum(2 * len(line.encode()) + 40 for line in lines)


def screen_view(trajectory: Trajectory, step: int) -> ScreenFigure:
    """The figure of one state of a trajectory of screens. If a part cannot be shown, the figure contains the reason."""
    after = ScreenOutline.of(bytes(trajectory.states[step]))
    lines = after.write(range(len(after.items))) or [after.fault or "no nodes that say anything"]
    changes = None
    if step > 0:
        found = difference(ScreenOutline.of(bytes(trajectory.states[step - 1])), after)
        changes = None if found is None else tuple((MARKS[line[0]], line[2:]) for line in found[:LINES])
    pictures, trouble = _pictures(trajectory, step)
    return ScreenFigure(pictures, trouble, changes, tuple(lines[:LINES]), max(len(lines) - LINES, 0))


def _pictures(trajectory: Trajectory, step: int) -> tuple[tuple[ScreenPicture, ...], str]:
    alone = Trajectory(trajectory.states[step : step + 1], source=trajectory.source, kind=trajectory.kind)
    sources = [(trajectory, step)] if trajectory.screenshots and trajectory.screenshots[step] else []
    found: list[ScreenPicture] = []
    trouble = ""
    for source, place in [*sources, (alone, 0)]:
        try:
            found.append(_part(picture(source, place, LONGEST)))
        except ModuleNotFoundError:
            trouble = "no picture: Pillow is not installed (pip install 'grace-irl[android]')"
        except InputError as error:
            trouble = f"no picture: {error}"
    return tuple(found), trouble


def _part(drawn: Picture) -> ScreenPicture:
    width, height = struct.unpack(">II", drawn.png[16:24])  # from the header of the PNG file
    uri = f"data:image/png;base64,{base64.b64encode(drawn.png).decode()}"
    return ScreenPicture(uri, width, height, drawn.screenshot)
