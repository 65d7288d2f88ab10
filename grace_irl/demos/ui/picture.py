"""Pictures of screens: the screenshot if the source has one, else a drawing of the nodes. This module needs Pillow."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.states.ui.drawing import LONGEST, drawing
from grace_irl.states.ui.screen import Screen

if TYPE_CHECKING:
    from PIL import Image

MAX_PIXELS = 64_000_000
"""Maximum number of pixels of a screenshot that is decoded. Real screenshots have 1 to 8 million."""


@dataclass(frozen=True)
class Picture:
    """A picture of one state.

    Attributes:
        png: bytes of the PNG file.
        screenshot: whether the picture is a screenshot; False for a drawing.
    """

    png: bytes
    screenshot: bool


def picture(trajectory: Trajectory, step: int, longest: int = LONGEST) -> Picture:
    """The picture of one state in a trajectory of screens.

    Args:
        trajectory: trajectory of kind "ui".
        step: index of the state.
        longest: maximum length of the picture's longer side in pixels.

    Raises:
        InputError: a screenshot that is missing or cannot be decoded, or a state that is not the XML of a screen.
    """
    from PIL import Image

    where = f"{trajectory.source or 'trajectory'}, state {step % len(trajectory.states) + 1}"
    source = trajectory.screenshots[step] if trajectory.screenshots else None
    if source is None:
        return Picture(_png(drawing(Screen.parse(trajectory.states[step], where), longest)), False)
    data = source.read()
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP")) as image:
            if image.width * image.height > MAX_PIXELS:
                raise InputError(
                    f"{where}: a screenshot of {image.width} x {image.height} pixels; expected at most {MAX_PIXELS:,}: "
                    "scale it down"
                )
            image.draft("RGB", (longest, longest))
            shown = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError(
            f"{where}: the screenshot cannot be decoded ({' '.join(str(error).split())[:120]}); expected a whole PNG, "
            "JPEG or WebP"
        ) from None
    shown.thumbnail((longest, longest))
    return Picture(_png(shown), True)


def _png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, format="PNG", optimize=True)
    return file.getvalue()
