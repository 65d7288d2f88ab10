"""Text of others where lines and tables are printed: harmless whichever way it comes."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.progress import Progress, TextColumn
from rich.table import Table
from rich.text import Text

from grace_irl.cli.console import PlainConsole
from grace_irl.cli.progress import ComparisonProgress, FitProgress
from grace_irl.compare.dispatch import ComparisonState as Standing
from grace_irl.compare.folder import JobResult
from grace_irl.errors import GraceError, InputError
from grace_irl.text import harmless, line
from tests.fakes.terminal import Terminal
from tests.hostile_files.texts import HOSTILE, OF_RICH, SHOWN, is_harmless

ROOT = Path(__file__).parents[2]
Capture = pytest.CaptureFixture[str]


def printed(show: Callable[[PlainConsole], object]) -> str:
    """What a terminal gets, less what Rich adds."""
    out = io.StringIO()
    console = PlainConsole(file=out, force_terminal=True, width=300, color_system="truecolor")
    show(console)
    return OF_RICH.sub("", out.getvalue())


def test_a_console_lets_nothing_through() -> None:
    table = Table(HOSTILE, title=HOSTILE, caption=HOSTILE)
    table.add_row(HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE, Text(HOSTILE, style="bold"))

    def live(console: PlainConsole) -> None:
        with Progress(TextColumn("{task.description}", markup=False), console=console) as bar:
            bar.add_task(HOSTILE)
            bar.refresh()
            print(HOSTILE)

    def status(console: PlainConsole) -> None:
        with console.status(Text(HOSTILE)) as line:
            line.update(Text(f"reading {HOSTILE}"))
            console.print(HOSTILE, soft_wrap=True)

    shown: list[Callable[[PlainConsole], object]] = [
        lambda console: console.print(table),
        lambda console: console.print(HOSTILE, Text(HOSTILE), [HOSTILE], {HOSTILE: HOSTILE}),
        lambda console: console.rule(HOSTILE),
        live,
        status,
    ]
    for show in shown:
        text = printed(show)
        assert is_harmless(text), text
        assert r"\x1b[2J\u202e[/b][red]" in text


def test_notes_and_lines_of_progress(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = JobResult(HOSTILE, 0, failure=HOSTILE + "\nsecond line")
    standing = Standing(1, 1, 1, ((HOSTILE, 0, 5),), ended)
    with FitProgress() as progress, ComparisonProgress() as comparison:
        progress.note(HOSTILE + "\nreward: forged")
        comparison(standing)
    said = capsys.readouterr().err
    assert said.count("\n") == 2
    assert is_harmless(said)
    monkeypatch.setenv("TERM", "xterm")
    for made in (FitProgress, ComparisonProgress):
        out = Terminal()
        console = PlainConsole(file=out, width=300)
        monkeypatch.setattr("grace_irl.cli.progress.PlainConsole", lambda console=console, **_: console)
        with made() as live:
            if isinstance(live, FitProgress):
                live.note(HOSTILE + "\nreward: forged")
            else:
                live(standing)
                live(replace(standing, ended=None))
        text = OF_RICH.sub("", out.getvalue())
        assert is_harmless(text), text
        assert "reward: forged" in text or "second line" in text


NOISY = """
import logging, sys, warnings
from grace_irl.cli import main, show
from grace_irl.errors import GraceError

def noisy(_):
    warnings.showwarning(UserWarning(sys.argv[1]), UserWarning, sys.argv[1], 1)
    logging.getLogger("other").warning(sys.argv[1])
    print(sys.argv[1])
    sys.stderr.writelines([sys.argv[1], chr(10)])
    raise GraceError(sys.argv[1])

show.opened = noisy
sys.exit(main(["show", "."]))
"""


def test_warnings_logs_and_prints_of_libraries_are_harmless_too(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOISY, HOSTILE],
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == 1
    assert SHOWN in out
    assert err.count(SHOWN) == 5  # a warning has a place, too
    assert is_harmless(out + err), err


@pytest.mark.parametrize("kind", [GraceError, InputError])
def test_errors_are_one_harmless_line(kind: type[GraceError]) -> None:
    said = str(kind(f"{HOSTILE}\r\nsecond"))
    assert said.isprintable()
    assert said.startswith(SHOWN)


def test_what_is_harmless_stays() -> None:
    for text in ("", "plain", "two\nlines\tand a tab", "Größe 5 µm · 日本語 · العربية · 🙂 ❤️", "[b]", "a  b"):
        assert harmless(text) == text
    assert harmless(harmless(HOSTILE)) == harmless(HOSTILE)
    assert line("a\r\n\tb  c") == "a b  c"
    assert harmless("\ud800\u3164\U000e0041\u00ad") == r"\ud800\u3164\U000e0041\xad"
