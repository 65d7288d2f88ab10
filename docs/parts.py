"""Draws the picture of docs/architecture.md: the rooms of the package, and what passes between them.

python docs/parts.py          write docs/pictures/parts.svg
python docs/parts.py --check  compare with that file
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from grace_irl.svg import text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "parts.svg"

WIDTH, HEIGHT = 900, 540
INK, PALE, RULE = "#24292f", "#57606a", "#d0d7de"
BLUE, GREEN, SAND, GREY = "#ddebf7", "#dff2e6", "#fdf1dc", "#f6f8fa"


@dataclass(frozen=True)
class Box:
    """A room or a file.

    Attributes:
        name: such as "demos/".
        lines: what it is for.
        left, top, width, height: pixels.
        fill: colour.
        file: drawn as a file, with a dashed frame.
    """

    name: str
    lines: tuple[str, ...]
    left: int
    top: int
    width: int
    fill: str
    height: int = 74
    file: bool = False

    def drawn(self) -> str:
        """The box with its texts."""
        dash = ' stroke-dasharray="4 3"' if self.file else ""
        middle = self.left + self.width / 2
        top = self.top + (8 if len(self.lines) == 1 else 0)
        parts = [
            f'<rect x="{self.left}" y="{self.top}" width="{self.width}" height="{self.height}" rx="7" '
            f'fill="{self.fill}" stroke="{INK}" stroke-opacity="0.45"{dash}/>',
            text(middle, top + 26, self.name, fill=INK, size=15, name="name"),
        ]
        for number, line in enumerate(self.lines):
            parts.append(text(middle, top + 46 + 16 * number, line, fill=PALE, size=12))
        return "".join(parts)


ROW1, ROW2, ROW3 = 92, 268, 396
BOXES = (
    Box("search/", ("which program next?", "ask, tell, best"), 56, ROW1, 190, BLUE),
    Box("propose/", ("prompts, models,", "answers"), 330, ROW1, 118, BLUE),
    Box("synthesis/", ("no model:", "rewards from data"), 456, ROW1, 124, BLUE),
    Box("evaluate/", ("how good is it?", "score and evidence"), 660, ROW1, 184, BLUE),
    Box("run.db, reward.py", ("the folder of a run",), 40, ROW2, 186, GREY, file=True),
    Box("states/", ("kinds of state",), 296, ROW2, 116, GREEN),
    Box("demos/", ("files, splits, labels",), 420, ROW2, 142, GREEN),
    Box("programs/", ("contract, checks",), 596, ROW2, 116, SAND),
    Box("sandbox/", ("runs programs,", "gives rewards"), 744, ROW2, 116, SAND),
    Box("report/", ("the page of a run",), 40, ROW3, 142, GREEN),
    Box("rewards/", ("a reward in use:", "wrappers"), 226, ROW3, 132, GREEN),
    Box("rl/", ("collecting, PPO",), 402, ROW3, 122, GREEN),
    Box("tasks/", ("policies judge", "programs"), 568, ROW3, 122, GREEN),
    Box("compare/", ("methods side by side",), 734, ROW3, 146, GREEN),
)
BAND = (
    ("cli/", "commands", 40, 32),
    ("work/", "jobs in processes of their own", 190, 54),
    ("audit/", "doubts about a reward", 474, 50),
    ("testing/", "suites for others' parts", 668, 72),
)
"""Rooms beside the way of the data: name, purpose, place, width of the name."""


def arrow(path: str, label: str = "", x: float = 0, y: float = 0) -> str:
    """A line with a head at its end, and what passes along it."""
    line = f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="1.5" marker-end="url(#head)"/>'
    return line + (text(x, y, label, fill=INK, size=12) if label else "")


def drawing() -> str:
    """The whole picture."""
    label = "The engine in runs/ passes requests, programs and scores between search, proposers and evaluators."
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{label}" font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8Z" fill="{INK}"/></marker></defs><style>.name{{font-weight:600}}</style>',
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8" fill="#fff" stroke="{RULE}"/>',
        f'<rect x="24" y="24" width="{WIDTH - 48}" height="176" rx="10" fill="#fbfcfd" stroke="{RULE}"/>',
        f'<rect x="322" y="{ROW1 - 8}" width="266" height="90" rx="9" fill="none" stroke="{RULE}"/>',
        text(42, 50, "runs/", anchor="start", fill=INK, size=15, name="name"),
        text(92, 50, "the engine of a search", anchor="start", fill=PALE, size=12),
        text(566, 50, "methods/", anchor="start", fill=INK, size=15, name="name"),
        text(650, 50, "choose search and evaluator", anchor="start", fill=PALE, size=12),
        *(each.drawn() for each in BOXES),
        arrow("M246 129H318", "request", 282, 121),
        arrow("M588 129H656", "program", 622, 121),
        arrow("M752 92V66H151V88", "score", 451, 60),
        arrow("M452 268V178", "training data", 404, 232),
        arrow("M530 268V240H690V170", "labelled states", 610, 232),
        arrow("M816 166V264"),
        arrow("M788 268V170"),
        text(824, 232, "states", anchor="start", fill=INK),
        text(780, 232, "rewards", anchor="end", fill=INK),
        arrow("M712 305H740"),
        arrow("M133 200V264", "results", 162, 232),
        arrow("M111 342V392"),
        arrow("M180 342V369H292V392"),
        arrow("M358 433H398"),
        arrow("M524 433H564"),
        arrow("M463 392V376H807V392"),
        f'<path d="M24 490H{WIDTH - 24}" stroke="{RULE}"/>',
    ]
    for name, purpose, left, width in BAND:
        parts.append(text(left, 519, name, anchor="start", fill=INK, size=15, name="name"))
        parts.append(text(left + width, 519, purpose, anchor="start", fill=PALE, size=12))
    return "\n".join([*parts, "</svg>", ""])


def main() -> int:
    """Writes or compares; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if the file differs")
    if not parser.parse_args().check:
        PICTURE.write_text(drawing(), encoding="utf-8")
    elif not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != drawing():
        print(f"{PICTURE.relative_to(ROOT)} is not what the script draws: run python docs/parts.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
