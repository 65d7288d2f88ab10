"""Only `states/` knows what kinds of state there are; other rooms ask the kind, or hold a table by kind."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from grace_irl.cli.pictures import TERMINAL
from grace_irl.propose.pictures import PAINTERS
from grace_irl.propose.views.registry import VIEWS
from grace_irl.report.gallery import FIGURES
from grace_irl.rl.hyperparameters import TABLE
from grace_irl.rl.networks import NETWORKS
from grace_irl.rl.observers import OBSERVERS
from grace_irl.states import KINDS
from grace_irl.synthesis.synthesiser import SKETCHERS

ROOT = Path(__file__).parents[2] / "grace_irl"

OBJECTS = {"VECTOR", "GRID", "SCREEN", "RECORD", "IMAGE"}
"""Names of the kinds' objects in their modules."""

STATES = {"state", "states", "before", "after", "observation", "observations"}
"""Names that stand for states."""

EXCEPTIONS: dict[str, str] = {
    "synthesis/grid": "reads grids alone: its sketcher is in the table under their kind",
    "propose/views": "one view per kind, chosen by the table of views",
    "propose/pictures.py": "one painter per kind, chosen by a table",
    "rl/observers.py": "one observer per kind, chosen by a table",
    "rl/matching.py": "the layouts of MuJoCo's bodies are told by the width of vectors",
    "propose/goals.py": "numbers of states in an answer",
    "rl/episodes.py": "observations of policies, and no states",
    "tasks/environment.py": "observations before a view makes states of them",
    "rl/horizon.py": "observations of policies, which are vectors or not, and no states",
    "demos/npz/source.py": "arrays of an archive, before the kind is known",
    "demos/foreign": "arrays of other programs, before the kind is known",
    "demos/ui": "formats of screens alone",
    "rewards/view.py": "observations, which may hold the state under a key",
}
"""Files that look at the form of arrays, each with the reason."""


def files() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith("states/") and not name.endswith("_pb2.py"):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def root_of(node: ast.expr) -> str:
    """The last name before an attribute: `states` of `trajectory.states[0].ndim`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def branches_on_a_kind(tree: ast.Module) -> Iterator[int]:
    """Comparisons with the name of a kind or with a kind's object."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare | ast.MatchValue):
            continue
        for each in ast.walk(node):
            named = isinstance(each, ast.Constant) and each.value in KINDS
            if named or (isinstance(each, ast.Name) and each.id in OBJECTS):
                yield node.lineno


def looks_at_the_form(tree: ast.Module) -> Iterator[int]:
    """`.ndim`, `.dtype` and `.shape` of states, and `isinstance` of them."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr="ndim" | "dtype" | "shape", value=value) if root_of(value) in STATES:
                yield node.lineno
            case ast.Call(func=ast.Name(id="isinstance" | "type"), args=[value, *_]) if root_of(value) in STATES:
                yield node.lineno


def test_no_room_branches_on_a_kind() -> None:
    found = [f"{name}:{line}" for name, tree in files() for line in branches_on_a_kind(tree)]
    assert found == []


def test_no_room_looks_at_the_form_of_states() -> None:
    found = [
        f"{name}:{line}"
        for name, tree in files()
        if not any(name.startswith(each) for each in EXCEPTIONS)
        for line in looks_at_the_form(tree)
    ]
    assert found == []


BRANCHES = (
    'if kind == "ui": pass',
    'x = m.kind in ("grid", "ui")',
    "if kind is GRID: pass",
    'match k:\n case "grid": pass',
)


@pytest.mark.parametrize("code", BRANCHES)
def test_branches_are_found(code: str) -> None:
    assert list(branches_on_a_kind(ast.parse(code)))


@pytest.mark.parametrize("code", ["t.states.ndim", "states[0].dtype", "isinstance(state, str)", "type(state) is str"])
def test_looks_are_found(code: str) -> None:
    assert list(looks_at_the_form(ast.parse(code)))


def test_every_exception_is_needed() -> None:
    looking = {name for name, tree in files() if list(looks_at_the_form(tree))}
    assert [each for each in EXCEPTIONS if not any(name.startswith(each) for name in looking)] == []


def test_every_kind_has_a_view() -> None:
    assert set(VIEWS) == set(KINDS)


def test_other_tables_name_kinds_only() -> None:
    for table in (SKETCHERS, PAINTERS, FIGURES, TERMINAL, OBSERVERS, NETWORKS):
        assert set(table) <= set(KINDS)
    assert set(OBSERVERS) == set(NETWORKS)
    assert set(OBSERVERS) <= set(TABLE)
