"""Size and shape of the package: files, code lines, the share of imports, and names with two meanings.

    python benchmarks/house.py                     # grace_irl and the baselines
    python benchmarks/house.py --room search       # one room
    python benchmarks/house.py --rooms             # one line for each room
    python benchmarks/house.py --names             # the class names with two meanings, and where they stand

A code line holds at least one token that is no comment, docstring or import. Generated protocol buffers
(`*_pb2.py`) count as files and lines like any other.
"""

from __future__ import annotations

import argparse
import ast
import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("grace_irl", "baselines/grace_irl_baselines")
PACKAGE = PACKAGES[0]
NEW = ("testing/", "methods/map_elites.py", "states/image.py", "states/record.py")
"""Parts that did not exist before the second plan; `--without-new` leaves them out."""
QUESTIONS = ("what", "who", "which", "how", "where", "when", "why", "whether")


@dataclass(frozen=True)
class Module:
    """A file's measures.

    Attributes:
        path: From the root of the repository.
        code: Lines with code, imports left out.
        imports: Lines of import statements.
        classes: Names of its classes at the top level, private ones left out.
        question: Whether its docstring opens with a question word.
    """

    path: str
    code: int
    imports: int
    classes: tuple[str, ...]
    question: bool


def measured(path: Path) -> Module:
    """The measures of one file."""
    tree = ast.parse(path.read_bytes())
    imports, texts, code = set[int](), set[int](), set[int]()
    for node in ast.walk(tree):
        lines = range(getattr(node, "lineno", 0), (getattr(node, "end_lineno", 0) or 0) + 1)
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.update(lines)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            texts.update(lines)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        bare = line.strip()
        if bare and not bare.startswith("#") and number not in imports and number not in texts:
            code.add(number)
    opening = (ast.get_docstring(tree) or " ").split(maxsplit=1)
    return Module(
        path.relative_to(ROOT).as_posix(),
        len(code),
        len(imports),
        tuple(node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")),
        bool(opening) and opening[0].lower().strip(",.:") in QUESTIONS,
    )


def modules(room: str = "", without_new: bool = False) -> Iterator[Module]:
    """All files of the package, or of one room."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            if room and not place.startswith(f"grace_irl/{room}"):
                continue
            if without_new and place.removeprefix("grace_irl/").startswith(NEW):
                continue
            yield measured(path)


def room_of(path: str) -> str:
    """The room of a file: its folder in the package; "" stands for files beside the rooms."""
    parts = path.split("/")
    return parts[0] if parts[0] != "grace_irl" else parts[1] if len(parts) > 2 else ""


def print_rooms(found: list[Module]) -> None:
    """One line for each room, and its fullest file."""
    rooms = defaultdict[str, list[Module]](list)
    for each in found:
        rooms[room_of(each.path)].append(each)
    print(f"{'room':<12} {'files':>5} {'code':>6} {'imports':>7} {'median':>6}  fullest file")
    for room, parts in sorted(rooms.items()):
        code, imports = sum(each.code for each in parts), sum(each.imports for each in parts)
        fullest = max(parts, key=lambda each: each.code)
        median = statistics.median(each.code for each in parts)
        print(
            f"{room or '(beside)':<12} {len(parts):>5} {code:>6} {imports / max(imports + code, 1):>7.1%} {median:>6g}"
            f"  {fullest.path} ({fullest.code})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--room", default="", help="one room of grace_irl, e.g. search")
    parser.add_argument("--names", action="store_true", help="list class names with two meanings")
    parser.add_argument("--rooms", action="store_true", help="print one line for each room")
    parser.add_argument("--without-new", action="store_true", help="leave out what the second plan added")
    options = parser.parse_args()
    found = list(modules(options.room, options.without_new))
    if options.rooms:
        print_rooms(found)
        return
    places = defaultdict[str, list[str]](list)
    for each in found:
        for name in each.classes:
            places[name].append(each.path)
    twice = {name: where for name, where in sorted(places.items()) if len(where) > 1}
    code, imports = sum(each.code for each in found), sum(each.imports for each in found)
    print(f"files                        {len(found)}")
    print(f"files under 25 code lines    {sum(each.code < 25 for each in found)}")
    print(f"median code lines of a file  {statistics.median(each.code for each in found):g}")
    print(f"code lines                   {code}")
    print(f"import lines, share          {imports}, {imports / (imports + code):.1%}")
    print(f"class names, two meanings    {len(twice)}")
    print(f"docstrings that ask          {sum(each.question for each in found) / len(found):.0%}")
    if options.names:
        for name, where in twice.items():
            print(f"  {name}: {', '.join(where)}")


if __name__ == "__main__":
    main()
