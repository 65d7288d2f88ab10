"""Figures on pages: a table names its script or says "by hand"; recordings, and what is quoted beside the paper."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from tests.frame.pages import Section, sections
from tests.frame.tree import ROOT, texts

FIGURES = 0.6
"""Share of cells that begin with a number, from which on a table is one of figures."""
NUMBER = re.compile(r"^\W*\d")
FIGURE = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
NUMBERS = re.compile(r"\d\.\d.*\s\d+\.\d")
STATED = {
    ("fidelity.md", "Tables 4 to 6: settings"),
    ("synthesis.md", "How a reading is scored"),
    ("synthesis.md", "How readings of screens are scored"),
    ("training.md", "PPO"),
    ("training.md", "Environments"),
}
"""Sections with tables of numbers that the code states: weights, settings, widths."""


def literal(path: Path, name: str) -> Any:
    """What a module assigns to a name."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and [name] == [getattr(each, "id", "") for each in node.targets]:
            return ast.literal_eval(node.value)
    raise AssertionError(f"{path} assigns nothing to {name}")


def of_figures(section: Section) -> bool:
    """Whether most of a table, or of a block that is neither code nor commands, is numbers."""
    tables = [[NUMBER.match(cell) for row in table.rows for cell in row[1:]] for table in section.tables]
    blocks = [[NUMBERS.search(line) for line in block.splitlines()] for block in section.blocks]
    return any(found and sum(map(bool, found)) >= FIGURES * len(found) for found in (*tables, *blocks))


def test_figures_have_a_script_or_say_that_they_are_by_hand() -> None:
    found = [section for section in sections() if of_figures(section)]
    measured = [section for section in found if (section.page.name, section.heading) not in STATED]
    assert len(measured) > 5
    for section in measured:
        named = re.findall(r"benchmarks/\w+\.py", section.text)
        assert named or "by hand" in section.text, f'{section.page}, {section.heading}: no script, and not "by hand"'
        assert all((ROOT / name).exists() for name in named), f"{section.page}, {section.heading}: {named}"


def test_recordings_ship_or_are_said_not_to() -> None:
    """Of every case of the benchmark that makes them; and what a large model gave stands beside which model it was."""
    page = (ROOT / "tests" / "recordings" / "README.md").read_text()
    absent = re.search(r"\*\*What does not ship\*\*: the answers of the cases (.*?) of", page, re.DOTALL)
    assert absent
    for case in literal(ROOT / "benchmarks" / "large_model_recovery.py", "CASES"):
        ships = any((ROOT / "tests" / "recordings" / "large_model").glob(f"{case}-*"))
        assert ships != (f"`{case}`" in absent[1]), case
        assert f"`{case}`" in page
    for path, text in texts(".md"):
        if re.search(r"large (?:language )?model(?:'s first answers?| that saw|, one prompt)", text):
            assert "unknown" in text, path


def test_figures_of_ours_beside_the_paper_are_those_of_other_pages() -> None:
    """Each number in a column of ours on docs/fidelity.md stands on one of the pages that it is quoted from."""
    page = Path("docs/fidelity.md")
    sources = [ROOT / "docs" / f"{name}.md" for name in ("results", "compare", "expansion", "models", "training")]
    printed = {number for source in sources for number in FIGURE.findall(source.read_text())}
    quoted = [
        (row[0], cell, number)
        for section in sections()
        if section.page == page
        for table in section.tables
        for row in table.rows
        for head, cell in zip(table.head, row, strict=True)
        if head.startswith("ours")
        for number in FIGURE.findall(cell)
    ]
    assert len(quoted) > 20
    assert not [each for each in quoted if each[2] not in printed]
