"""Imports run downward, from room to room, and never in a circle.

Imports inside functions and those for type checkers count like all others: they say what a file knows of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "grace_irl"

ORDER: tuple[tuple[str, str], ...] = (
    ("version", "a number"),
    ("packages", "versions of installed packages"),
    ("text", "plain functions on texts"),
    ("pages", "addresses"),
    ("errors", "messages are texts"),
    ("keyworded", "errors in the words of Python"),
    ("notebook", "shows texts as HTML, and rows as a table"),
    ("atomic", "writes a file whole, or raises an error of ours"),
    ("contents", "reads a folder of somebody else's, or refuses it"),
    ("toml", "reads and writes settings and JSON"),
    ("work", "spreads jobs, and knows what none of them does"),
    ("svg", "draws, and escapes texts"),
    ("states", "kinds of state know of no file"),
    ("demos", "trajectories are made of states"),
    ("settings", "declarations of settings"),
    ("config", "sections of settings that every run has"),
    ("keywords", "types of the settings, as keywords"),
    ("programs", "sources, and what a program gets of a state"),
    ("sandbox", "runs programs over trajectories"),
    ("evaluate", "scores programs by what the sandbox gives"),
    ("search", "chooses among evaluations"),
    ("rewards", "uses of a program; no policy is needed"),
    ("audit", "experiments with a scored program"),
    ("propose", "writes programs for requests of a search"),
    ("synthesis", "a proposer"),
    ("rl", "policies that learn from rewards"),
    ("tasks", "environments with a score, and policies trained to judge programs"),
    ("methods", "choose a search, an evaluator and operators"),
    ("runs", "put all parts together"),
    ("testing", "suites for parts of other distributions"),
    ("compare", "runs of several methods, and policies on them"),
    ("report", "shows runs"),
    ("api", "what Python users call"),
    ("cli", "what everyone else calls"),
    ("__init__", "the door: hands out names of the API"),
    ("__main__", "python -m grace_irl"),
)
"""The rooms from the lowest to the highest, each with the reason for its place. A room imports only lower ones."""

EXCEPTIONS: dict[tuple[str, str], str] = {}
"""Rooms that import a higher one, each with the reason."""


def modules(package: Path) -> dict[str, Path]:
    """Every module of a package, by its name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)] = path
    return found


def imports(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The modules of ours that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            while name not in known and "." in name:
                name = name.rpartition(".")[0]
            if name in known:
                yield name


def graph(package: Path) -> dict[str, set[str]]:
    """What each module imports."""
    known = modules(package)
    return {name: {*imports(path, known)} - {name} for name, path in known.items()}


def room(module: str) -> str:
    """The room of a module."""
    return module.split(".")[1]


def upward(found: Mapping[str, set[str]], order: tuple[str, ...]) -> list[tuple[str, str]]:
    """Imports of a room that stands above the importer's."""
    place = {name: number for number, name in enumerate(order)}
    return sorted(
        (name, other) for name, others in found.items() for other in others if place[room(name)] < place[room(other)]
    )


def circle(found: Mapping[str, set[str]]) -> list[str]:
    """A circle of modules, or []."""
    try:
        TopologicalSorter(found).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


GRAPH = graph(ROOT / PACKAGE)


def test_every_room_has_its_place() -> None:
    names = [name for name, _ in ORDER]
    assert len(names) == len({*names})
    assert {room(name) for name in GRAPH} <= {*names}


def test_no_import_runs_upward() -> None:
    found = upward(GRAPH, tuple(name for name, _ in ORDER))
    assert [pair for pair in found if (room(pair[0]), room(pair[1])) not in EXCEPTIONS] == []
    assert {(room(name), room(other)) for name, other in found} == {*EXCEPTIONS}, "an exception that is none any more"


def test_no_imports_run_in_a_circle() -> None:
    kept = {
        name: {other for other in others if (room(name), room(other)) not in EXCEPTIONS}
        for name, others in GRAPH.items()
    }
    assert circle(kept) == []


@pytest.mark.parametrize(
    "text",
    [
        "from grace_irl.runs.fit import fit",
        "def late():\n    import grace_irl.runs.fit",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from grace_irl.runs import fit",
    ],
    ids=["plain", "inside a function", "for type checkers"],
)
def test_what_breaks_the_order_is_found(text: str, tmp_path: Path) -> None:
    package = tmp_path / PACKAGE
    for name, content in {"sandbox/pool.py": text, "runs/fit.py": "import grace_irl.sandbox.pool"}.items():
        (package / name).parent.mkdir(parents=True)
        (package / name).write_text(content)
    found = graph(package)
    assert upward(found, ("sandbox", "runs")) == [("grace_irl.sandbox.pool", "grace_irl.runs.fit")]
    assert set(circle(found)) == {"grace_irl.sandbox.pool", "grace_irl.runs.fit"}
