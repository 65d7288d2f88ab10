"""Writes what `make fit` prints into README.md and docs/results.md, each between two marks.

    python docs/readme_example.py          fit, and write
    python docs/readme_example.py --check  fit, and compare with what the pages show

README.md shows the figures and the parts of the program that pay. docs/results.md shows the whole file. The line that
counts programs and seconds is not compared. A fit takes seconds and leaves no run behind.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEMOS = "datasets/babyai-go-to-obj"
BEGIN, END = "<!-- example: docs/readme_example.py -->\n", "<!-- end of example -->\n"
EFFORT = re.compile(r"^\d+ programs? in .*$", re.MULTILINE)
PAYS = ("GUESSES", "Reward")
"""Names of the program that README.md shows, but for the debug function."""


def fit() -> tuple[str, str]:
    """The reward file, and the figures printed after it."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [sys.executable, "cli.py", "fit", "--demos", DEMOS, "--out", str(run)]
        printed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
        reward = (run / "reward.py").read_text()
    figures = printed.removeprefix(reward).strip("\n").replace(str(run), "runs/babyai-go-to-obj-…")
    return reward, figures


def whole(reward: str, figures: str) -> str:
    """Both as Markdown."""
    return f"```python\n{reward.rstrip()}\n```\n\n```text\n{figures}\n```\n"


def short(reward: str, figures: str) -> str:
    """The figures, then the parts of the program that pay."""
    module = ast.parse(reward)
    parts = [
        ast.get_source_segment(reward, node)
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign) and _name(node) in PAYS
    ]
    shown = "\n\n\n".join(part.partition("\n\n    def debug_fn")[0] for part in parts if part)
    return f"```text\n{figures}\n```\n\nThe part of `reward.py` that pays:\n\n```python\n{shown}\n```\n"


def _name(node: ast.FunctionDef | ast.ClassDef | ast.Assign) -> str:
    """The name that a definition or an assignment defines."""
    return ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else node.name


PAGES: dict[str, Callable[[str, str], str]] = {"README.md": short, "docs/results.md": whole}


def main() -> int:
    """Writes or checks; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a page shows another")
    check = parser.parse_args().check
    reward, figures = fit()
    wrong = 0
    for page, form in PAGES.items():
        path, found = ROOT / page, form(reward, figures)
        before, begin, rest = path.read_text().partition(BEGIN)
        shown, end, after = rest.partition(END)
        if not (begin and end):
            print(f"{page}: expected the marks {BEGIN.strip()} and {END.strip()}", file=sys.stderr)
            return 1
        if not check:
            path.write_text(before + begin + found + end + after)
        elif EFFORT.sub("", shown) != EFFORT.sub("", found):
            print(f"{page} shows another reward than fit gives: run python docs/readme_example.py", file=sys.stderr)
            print(found)
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
