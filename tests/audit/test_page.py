"""docs/warnings.md lists every warning of the audit, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def codes() -> set[str]:
    """The codes of all warnings: the first arguments of `RewardWarning`."""
    found = set()
    for path in (ROOT / "grace_irl").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "RewardWarning":
                first = node.args[0]
                found |= {first.value} if isinstance(first, ast.Constant) else set()
    return {str(each) for each in found} | {"time", "constants", "constant-field"}


def test_the_page_lists_every_warning() -> None:
    page = (ROOT / "docs" / "warnings.md").read_text(encoding="utf-8")
    cells = [row.split("|")[1] for row in page.splitlines() if row.startswith("| `")]
    assert {code for cell in cells for code in re.findall(r"`([a-z-]+)`", cell)} == codes()
