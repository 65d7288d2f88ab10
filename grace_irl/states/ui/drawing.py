"""Pictures of screens, drawn from the bounds, texts and flags of nodes. This module needs Pillow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grace_irl.states.ui.screen import Bounds, Node, Screen

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

LONGEST = 1_000
"""Maximum side of a picture in pixels."""

MOST = 600
"""Maximum number of nodes in a picture. Only the first nodes of the screen are drawn, because more would overlap."""

ROW = 26  # height of a line in pixels, for screens without bounds
SMALL, LARGE = 9, 22  # font sizes in pixels
LETTERS = 200  # maximum length of one text, in characters

PAPER, INK, PALE = "#ffffff", "#1a1a1a", "#8a8a8a"
LINES = {"plain": "#c8c8c8", "use": "#5b7db1", "selected": "#7a3fb5", "focused": "#d55e00"}
FILLS = {"use": "#eaf1fb", "checked": "#bfe8cf", "selected": "#ecdff7"}


def drawing(screen: Screen, longest: int = LONGEST) -> Image:
    """A picture of the screen in its own proportions, no side longer than `longest` pixels.

    Each frame is a node: blue if it can be used, purple if it is selected, orange if it has the focus. A checkable node
    has a box at the right. The box of a checked node is green with a tick. Grey text is a hint, or belongs to a
    disabled node.

    Args:
        screen: any screen. If no node has bounds, the picture lists the nodes from top to bottom.
        longest: maximum side in pixels.
    """
    from PIL import Image, ImageDraw

    nodes = [node for node in screen.visible if node.bounds is not None]
    places: dict[int, Bounds]
    if nodes:
        width, height = (max(1, side) for side in _size(nodes))
        scale = min(1.0, longest / max(width, height))
        places = {node.order: _scaled(node.bounds, scale) for node in nodes if node.bounds is not None}
        size = max(1, round(width * scale)), max(1, round(height * scale))
    else:
        nodes = [node for node in screen.visible or screen.nodes if node.label or node.interactive][: longest // ROW]
        size = longest // 2, max(1, len(nodes)) * ROW
        places = {
            node.order: (min(12 * node.depth, size[0] // 2), row * ROW, size[0], (row + 1) * ROW)
            for row, node in enumerate(nodes)
        }
    image = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(image)
    for node in nodes[:MOST]:
        above = screen.parent(node)
        # In a selected container, all nodes are selected. Only the container is drawn as selected.
        _frame(draw, node, places[node.order], node.selected and not (above and above.selected))
    for node in nodes[:MOST]:  # texts after all frames, so that no frame covers them
        _write(draw, screen, node, places[node.order])
    return image


def _size(nodes: Sequence[Node]) -> tuple[int, int]:
    bounds = [node.bounds for node in nodes if node.bounds is not None]
    return max(b[2] for b in bounds), max(b[3] for b in bounds)


def _scaled(bounds: Bounds, scale: float) -> Bounds:
    left, top, right, bottom = (max(-1, round(side * scale)) for side in bounds)
    return left, top, max(right, left + 1), max(bottom, top + 1)


def _frame(draw: ImageDraw, node: Node, place: Bounds, selected: bool) -> None:
    left, top, right, bottom = place
    used = node.clickable or node.long_clickable or node.checkable
    fill = FILLS["checked"] if node.checked else FILLS["selected"] if selected else FILLS["use"] if used else None
    kind = "focused" if node.focused else "selected" if selected else "use" if used else "plain"
    if not (node.label or node.scrollable or used or kind != "plain"):
        return  # a plain container would only add a frame around other frames
    thick = 2 if kind in ("focused", "selected") else 1
    draw.rectangle((left, top, right - 1, bottom - 1), fill=fill, outline=LINES[kind], width=thick)
    if node.checkable or node.checked:
        side = max(6, min(18, (bottom - top) // 2, right - left - 4))
        x, y = right - side - 3, (top + bottom - side) // 2
        draw.rectangle((x, y, x + side, y + side), fill=FILLS["checked"] if node.checked else PAPER, outline=INK)
        if node.checked:
            tick = [(1, 2.5), (2, 4), (4, 1)]  # fifths of a side
            draw.line([(round(x + a * side / 5), round(y + b * side / 5)) for a, b in tick], fill=INK, width=2)


def _write(draw: ImageDraw, screen: Screen, node: Node, place: Bounds) -> None:
    # The description of a container repeats the texts inside it.
    if not node.label or (not node.text and any(below.label for below in screen.below(node))):
        return
    left, top, right, bottom = place
    room = right - left - 6 - (24 if node.checkable and right - left > 60 else 0)
    font, lines = _fitted(" ".join(node.label.split()), room, bottom - top - 2)
    colour = INK if node.enabled and (node.text or node.content_desc) else PALE
    high = _height(font)
    y = max(top + 1, (top + bottom - high * len(lines)) // 2)
    for number, line in enumerate(lines):
        draw.text((left + 3, y + number * high), line, fill=colour, font=font)


def _fitted(text: str, width: int, height: int) -> tuple[FreeTypeFont, list[str]]:
    """The largest font in which the text fits, and the lines of the text.

    If the text does not fit even in the smallest font, the lines are cut.
    """
    for size in (LARGE, 18, 15, 12, 10):
        font = _font(size)
        lines = _wrapped(text, font, width)
        if len(lines) * _height(font) <= height and all(font.getlength(line) <= width for line in lines):
            return font, lines
    font = _font(SMALL)
    lines = _wrapped(text, font, max(width, 30))[: max(1, height // _height(font))]
    return font, [_cut(line, font, max(width, 30)) for line in lines]


def _wrapped(text: str, font: FreeTypeFont, width: int) -> list[str]:
    lines: list[str] = []
    for word in text[:LETTERS].split(" "):
        if lines and font.getlength(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _cut(line: str, font: FreeTypeFont, width: int) -> str:
    if font.getlength(line) <= width:
        return line
    while line and font.getlength(f"{line}…") > width:
        line = line[:-1]
    return f"{line}…"


def _height(font: FreeTypeFont) -> int:
    return round(1.25 * font.size)


_FONTS: dict[int, FreeTypeFont] = {}


def _font(size: int) -> FreeTypeFont:
    """Pillow's own font, because it is the same on every machine."""
    from PIL import ImageFont

    if size not in _FONTS:
        _FONTS[size] = ImageFont.load_default(size)  # type: ignore[assignment]
    return _FONTS[size]
