"""Reading a page as a reader does: its elements, texts and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lxml import html

from grace_irl.demos.trajectory import Demonstrations
from grace_irl.report.write import write_report


def page(run: Path, out: Path, demonstrations: Demonstrations | None = None) -> Any:
    """The report of a run as a tree; written to `out`."""
    return html.fromstring(write_report(run, out, demonstrations).read_text(encoding="utf-8"))


def said(element: Any) -> str:
    """Its text, white space made single."""
    return " ".join(element.text_content().split())


def table(tree: Any, caption: str) -> list[list[str]]:
    """The rows of the table whose caption begins so, head first."""
    for found in tree.iter("table"):
        if said(found.find("caption")).startswith(caption):
            return [[said(cell) for cell in row if cell.tag in ("th", "td")] for row in found.iter("tr")]
    raise AssertionError(f"no table {caption!r}")


def warnings(tree: Any) -> list[str]:
    """What the page warns of."""
    return [said(each) for each in tree.xpath("//ul[@class='warnings']/li")]
