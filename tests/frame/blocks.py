"""The Python and shell blocks of a page: what they are, what they print, and whether the page shows that."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.frame.tree import ROOT

BLOCK = re.compile(
    r"(?P<mark><!-- not run: [^>]+ -->\n)?"
    r"^```(?P<language>python|sh)\n(?P<code>.*?)^```$"
    r"(?:\n\n```text\n(?P<output>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
SHOWN = re.compile(r"^```text$", re.MULTILINE)
ANY = "…"
"""Any text of a line, or any lines if it stands alone."""


@dataclass(frozen=True)
class Block:
    """A block of Python or of commands.

    Attributes:
        page: relative to the root.
        line: of the page, from 1.
        language: "python" or "sh".
        code: its text.
        runs: whether a page lets it run. A mark before it, `<!-- not run: reason -->`, says that it does not.
        output: what the page says that it prints; None if the page shows nothing.
    """

    page: Path
    line: int
    language: str
    code: str
    runs: bool
    output: str | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in order. `page` is relative to the root."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(page, text[: each.start("code")].count("\n"), each["language"], each["code"], not each["mark"],
              each["output"])
        for each in BLOCK.finditer(text)
    ]  # fmt: skip


def shown(page: Path) -> int:
    """Number of outputs that a page shows."""
    return len(SHOWN.findall((ROOT / page).read_text(encoding="utf-8")))


def run(block: Block, names: dict[str, Any], folder: Path) -> str:
    """Run a block in `folder`, which is the current one, and return what it prints.

    Args:
        block: the block.
        names: names of the page's Python blocks before it, and after the call also of this one.
        folder: folder of the page's files.

    Raises:
        AssertionError: a command of the block failed.
    """
    if block.language == "python":
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(block.code, str(block), "exec"), names)
        return printed.getvalue()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRACE_IRL_")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.code],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
    return done.stdout


def agrees(output: str, printed: str) -> bool:
    """Whether a page shows what a block printed, but for spaces at the ends of lines and what `ANY` stands for."""
    lines = [re.escape(line.rstrip()).replace(re.escape(ANY), ".*") for line in output.splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if line == ".*" else rf"{line}\n" for line in lines)
    told = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    return re.fullmatch(pattern, told) is not None
