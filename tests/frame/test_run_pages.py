"""The blocks of these pages run as they stand there, one after the other, and print what the pages show."""

from pathlib import Path
from typing import Any

import pytest

from tests.frame.blocks import agrees, blocks, run, shown
from tests.frame.tree import ROOT

PYTHON = Path("docs/python.md")
TRAP = ("Symptom", "Example", "What the tool says", "Remedy", "More")
"""Headings of a page about a trap, in order."""
PAGES = [
    PYTHON,
    Path("docs/which-tool.md"),
    Path("docs/faq.md"),
    *(path.relative_to(ROOT) for path in sorted((ROOT / "docs" / "traps").glob("*.md"))),
]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for extra in ("tensorboard", "torch", "gymnasium"):
        pytest.importorskip(extra)
    monkeypatch.chdir(tmp_path)
    found, names = blocks(page), dict[str, Any]()
    assert sum(each.output is not None for each in found) == shown(page), "an output without a block before it"
    for each in found:
        if each.runs:
            printed = run(each, names, tmp_path)
            assert each.output is None or agrees(each.output, printed), f"{each} printed:\n{printed}"
        else:
            assert each.output is None, f"{each}: the output of a block that does not run"
    if page == PYTHON:
        assert (len(found), sum(each.runs for each in found)) == (5, 4)
        assert names["run"].best.held_out.accuracy > 0.9
        assert len(list((tmp_path / "logs").glob("events.*"))) == 1


def test_every_trap_shows_itself_and_its_remedy() -> None:
    traps = [page for page in PAGES if page.parent.name == "traps"]
    assert len(traps) == 6
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for page in traps:
        text = (ROOT / page).read_text(encoding="utf-8")
        places = [text.index(f"\n## {head}\n") for head in TRAP]
        assert places == sorted(places), page
        assert shown(page) >= 2, page
        assert f"](traps/{page.name})" in index, page
        assert len(text.splitlines()) <= 110, page


@pytest.mark.parametrize(
    ("output", "printed", "same"),
    [
        ("a 0.5\n", "a 0.5\n", True),
        ("a 0.5\n", "a 0.6\n", False),
        ("a 0.5\n", "a 0.5\nb\n", False),
        ("a …\nb\n", "a 7 s\nb  \n", True),
        ("…\nb\n", "x\ny\nb\n", True),
        ("…\nb\n", "x\ny\n", False),
        ("(a)\n", "a\n", False),
    ],
)
def test_outputs_are_compared_line_by_line(output: str, printed: str, same: bool) -> None:
    assert agrees(output, printed) is same
