"""Images as PNG files, and as characters in a terminal."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

COLOUR_TYPES = {1: 0, 3: 2, 4: 6}
"""PNG colour types for 8 bits per channel, by the number of channels."""

SHADES = " .:-=+*#%@"
"""Characters from dark to bright, for terminals without colours."""


def png(image: NDArray[Any]) -> bytes:
    """An image `(h, w, c)` of bytes as a PNG file.

    The report needs images even without the optional dependency Pillow, so this module has its own encoder.
    """
    height, width, channels = image.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # The first byte of a row is its filter type; 0 is none.
    rows[:, 1:] = image.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, COLOUR_TYPES[channels], 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )


def coloured(image: NDArray[Any]) -> NDArray[np.uint8]:
    """The image with three channels. Grey is repeated, and an alpha channel is dropped."""
    found: NDArray[np.uint8] = np.asarray(image, np.uint8)
    return found.repeat(3, axis=2) if found.shape[2] == 1 else found[..., :3]


def enlarged(image: NDArray[Any], longest: int) -> NDArray[np.uint8]:
    """A copy in which each pixel becomes a square of pixels.

    The longer side of the copy has between `longest` / 2 and `longest` pixels. An image with a side of more than
    `longest` pixels is not changed.
    """
    times = max(1, longest // max(image.shape[:2]))
    return np.asarray(image, np.uint8).repeat(times, axis=0).repeat(times, axis=1)


def reduced(image: NDArray[Any], height: int, width: int) -> NDArray[np.uint8]:
    """The image reduced to at most `height` x `width` pixels, each the mean of a square of the image.

    An image that is not larger is returned unchanged.
    """
    rows, columns = image.shape[:2]
    step = max(1, -(-rows // height), -(-columns // width))
    if step == 1:
        return np.asarray(image, np.uint8)
    return _means(image, step, step)


def characters(images: Sequence[NDArray[Any]], width: int = 24, gap: int = 3) -> Text:
    """Images side by side as text, each at most `width` characters wide.

    The images are reduced first, if necessary. Then a character stands for two rows and one column of pixels.
    """
    small = [reduced(image, 2 * width, width) for image in images]
    cells = [_means(image, 2, 1) for image in small]
    lines = []
    for row in range(max(len(cell) for cell in cells)):
        line = Text()
        for number, cell in enumerate(cells):
            line.append(" " * gap if number else "")
            if row >= len(cell):
                line.append(" " * cell.shape[1])
                continue
            for red, green, blue in coloured(cell)[row].tolist():
                shade = SHADES[(299 * red + 587 * green + 114 * blue) // 1000 * len(SHADES) // 256]
                line.append(shade, f"rgb({red},{green},{blue})")
        lines.append(line)
    return Text("\n").join(lines)


def _means(image: NDArray[Any], rows: int, columns: int) -> NDArray[np.uint8]:
    """The mean of each rectangle of `rows` x `columns` pixels. Rectangles at the bottom and right may be smaller."""
    tops, lefts = np.arange(0, image.shape[0], rows), np.arange(0, image.shape[1], columns)
    sums = np.add.reduceat(np.add.reduceat(image.astype(np.float64), tops, axis=0), lefts, axis=1)
    heights, widths = (
        np.diff([*starts.tolist(), size]) for starts, size in zip((tops, lefts), image.shape, strict=False)
    )
    means: NDArray[np.uint8] = (sums / (heights[:, None] * widths)[..., None]).astype(np.uint8)
    return means
