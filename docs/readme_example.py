"""Puts what `make fit` prints into README.md, between its two marks.

    python docs/readme_example.py          fit, and write
    python docs/readme_example.py --check  fit, and say whether README.md shows the same file and figures

The line that counts programs and seconds is not compared. A fit takes seconds and leaves no run behind.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEMOS = "datasets/babyai-go-to-obj"
BEGIN, END = "<!-- example: docs/readme_example.py -->\n", "<!-- end of example -->\n"
EFFORT = re.compile(r"^\d+ programs? in .*$", re.MULTILINE)


def fit() -> tuple[str, str]:
    """The reward file, and the figures printed after it."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [sys.executable, "cli.py", "fit", "--demos", DEMOS, "--out", str(run)]
        printed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
        reward = (run / "reward.py").read_text()
    figures = printed.removeprefix(reward).strip("\n").replace(str(run), "runs/babyai-go-to-obj-…")
    return reward, figures


def example(reward: str, figures: str) -> str:
    """Both as Markdown."""
    return f"```python\n{reward.rstrip()}\n```\n\n```text\n{figures}\n```\n"


def main() -> int:
    """Writes or checks; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if README.md shows another")
    check = parser.parse_args().check
    path = ROOT / "README.md"
    before, begin, rest = path.read_text().partition(BEGIN)
    shown, end, after = rest.partition(END)
    if not (begin and end):
        print(f"README.md: expected the marks {BEGIN.strip()} and {END.strip()}", file=sys.stderr)
        return 1
    found = example(*fit())
    if not check:
        path.write_text(before + begin + found + end + after)
        return 0
    if EFFORT.sub("", shown) != EFFORT.sub("", found):
        print("README.md shows another reward than fit gives; renew it: python docs/readme_example.py", file=sys.stderr)
        print(found)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
