"""The tutorial's blocks, from the first to the last: Python is saved, commands run, and their output is the page's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frame.pages import pages

PAGE = Path("docs/tutorial.md")
LEFT_OUT = "…"
"""A line that stands for any lines of output."""
SECONDS = re.compile(r"\d+\.\d s of search")
TRAINED = re.compile(r"(?<=paid )-?[\d.]+(?= an episode)|\d+%(?= docked)|^positions of an episode: .*$", re.MULTILINE)
"""What a training prints. Its last digits depend on the processor, so only its end is compared."""
ROUNDS = "--expand"
"""The flag of commands that train a policy and search on: their output depends on the processor."""


def blocks() -> list[tuple[str, str]]:
    """Language and text of each block, in order."""
    return [(token.info, token.content) for token in pages()[PAGE] if token.type == "fence"]


def run(commands: str, folder: Path) -> str:
    """What commands print in a folder, less what they print about progress."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "GRACE_IRL_DEBUG")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", commands],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=folder,
        env=inherited | {"PATH": path},
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, commands + done.stderr
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"


def pattern(shown: str) -> str:
    """An expression that matches what a block shows."""
    lines = [".*" if line == LEFT_OUT else re.escape(line + "\n") for line in shown.splitlines()]
    return "".join(lines)


def masked(text: str) -> str:
    """A text without what differs between machines."""
    return TRAINED.sub("N", SECONDS.sub("S", text))


@pytest.mark.slow
def test_the_blocks_run_and_print_what_the_page_shows(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    found = blocks()
    assert len(found) > 12
    ends = []
    for place, (language, text) in enumerate(found):
        if language == "python":
            (tmp_path / text.partition("\n")[0].removeprefix("# ")).write_text(text)
        elif language == "sh":
            shown = found[place + 1][1] if found[place + 1 : place + 2] and found[place + 1][0] == "text" else LEFT_OUT
            printed = run(text, tmp_path)
            if ROUNDS not in text:
                assert re.fullmatch(pattern(masked(shown)), masked(printed), re.DOTALL), text + printed
            ends += re.findall(r"\d+%(?= docked)", printed)[-1:]
    assert ends == ["0%", "100%"]
    assert "position" in (tmp_path / "third" / "reward.py").read_text()


def test_a_block_shows_what_is_printed_but_for_lines_left_out() -> None:
    assert re.fullmatch(pattern("…\nb (1)\n…\n"), "a\nb (1)\nc\n", re.DOTALL)
    assert not re.fullmatch(pattern("…\nb (1)\n"), "a\nb (1)\nc\n", re.DOTALL)
    assert masked("8 steps: the reward paid -3.5 an episode, 70% docked") == (
        "8 steps: the reward paid N an episode, N docked"
    )
