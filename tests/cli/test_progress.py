"""The progress of a fit: live on a terminal, quiet in a log."""

from __future__ import annotations

import io
import re
import time
from dataclasses import replace

import pytest

from grace_irl.cli import progress as module
from grace_irl.cli.console import PlainConsole
from grace_irl.cli.progress import FitProgress, Stand, said
from grace_irl.evaluate.separation import Metrics, Separation
from grace_irl.methods.separated import SeparationAccount
from grace_irl.programs.program import Program
from grace_irl.runs.budget import Progress
from grace_irl.runs.engine import Live, Snapshot
from grace_irl.runs.record import Record
from tests.fakes.terminal import Terminal

METRICS = Metrics(fitness=-0.25, accuracy=0.875, auc=0.9, separated=False, experts=10, negatives=90)
BEST = Record(Program("a", "", 3), Separation(METRICS, METRICS).evaluation(), 0)
SAID = SeparationAccount().headline(BEST.evaluation)
ASKED = Live(in_flight=31, answers=12, tokens=34567, cost=1.25, seconds=2.5)
ANSWERED = Snapshot(
    Progress(calls=11, tokens=30000, seconds=9.0),
    9.0,
    BEST,
    SAID,
    9,
    ASKED,
    told=False,
    replayed=False,
    brief=SeparationAccount().brief(BEST.evaluation),
)
ENDED = replace(
    ANSWERED, progress=Progress(calls=20, seconds=12.5, generation=1, generation_ended=True), seconds=12.5, told=True
)


def shown(
    monkeypatch: pytest.MonkeyPatch,
    *snapshots: Snapshot,
    terminal: bool,
    notes: tuple[str, ...] = (),
    width: int = 200,
) -> str:
    """What stands on a console after these."""
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal() if terminal else io.StringIO()
    console = PlainConsole(file=out, width=width, color_system=None)
    monkeypatch.setattr(module, "PlainConsole", lambda **_: console)
    with FitProgress() as progress:
        for snapshot in snapshots:
            progress(snapshot)
        for note in notes:
            progress.note(note)
        if progress._live is not None:
            progress._live.refresh()
    return out.getvalue()


def test_a_terminal_shows_tokens_calls_and_cost_live(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, ANSWERED, terminal=True)
    assert "34567 tokens for 1.25 (31 asked, last call 2.5 s)" in text
    assert "best fitness -0.25, accuracy 0.8750 (held out 0.8750" in text
    later = replace(ANSWERED, live=replace(ASKED, tokens=40000, in_flight=32, cost=0.0))
    assert "40000 tokens (32 asked, last call 2.5 s)" in shown(monkeypatch, ANSWERED, later, terminal=True)


def test_a_terminal_keeps_notes_above_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "the server is [away]\n" in shown(monkeypatch, ANSWERED, terminal=True, notes=("the server is [away]",))


def test_a_log_has_one_line_for_a_generation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replayed = replace(ENDED, replayed=True)
    snapshots = [ANSWERED] * 5 + [replayed, ENDED, replace(ENDED, told=False), ANSWERED]
    assert shown(monkeypatch, *snapshots, terminal=False, notes=("a note",)) == ""
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("generation 0: 9 programs, 34567 tokens for 1.25 (31 asked, last call 2.5 s), best fitness")
    assert first.endswith(", 12.5 s")
    assert second == "a note"


def test_forced_colours_put_no_live_line_into_a_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with FitProgress() as progress:
        progress(ENDED)
        time.sleep(0.3)
    (said_,) = capsys.readouterr().err.splitlines()
    assert said_.startswith("generation 0: 9 programs")


def test_a_terminal_that_cannot_move_its_cursor_gets_the_lines_of_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(module, "EVERY", 0.2)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with FitProgress() as progress:
        time.sleep(0.3)
        progress(ENDED)
    first, second, *_ = terminal.getvalue().splitlines()
    assert first == "no answer yet, 0.2 s"
    assert second.startswith("generation 0: 9 programs")
    assert "\x1b" not in terminal.getvalue()


def test_a_run_without_a_model_does_not_speak_of_tokens() -> None:
    plain = replace(ANSWERED, live=Live(in_flight=8), best=None, headline="")
    assert said(Stand.of(plain)) == "9 programs, none valid yet"


OF_RICH = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LONG = replace(
    ENDED,
    progress=replace(ENDED.progress, generation=12),
    seconds=4000.0,
    generations=41,
    programs=1234,
    live=replace(ASKED, tokens=12_345_678, cost=123.4),
)


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (
            200,
            f"generation 12 of 40, {SAID}, 1:06:40, about 2:41:06 left, 1234 programs, 12345678 tokens for 123.4 (31",
        ),
        (80, "generation 12 of 40, best accuracy 0.8750, 1:06:40, about 2:41:06 left"),
        (60, "generation 12 of 40, best accuracy 0.8750, 1:06:40"),
    ],
)
def test_the_live_line_fits_and_drops_what_is_less_important(
    width: int, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = OF_RICH.sub("", shown(monkeypatch, LONG, terminal=True, width=width))
    last = [each for each in re.split(r"[\r\n]+", text) if "generation" in each][-1]
    assert last[2:].startswith(line)
    assert len(last) <= width
    assert last[2:].rstrip() == line or width == 200


def test_the_time_goes_on_between_two_results(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    progress = FitProgress()
    now += 60.0  # the search begins a minute after the display
    progress(LONG)
    now += 61.0
    assert "1:07:41, about 2:40:05 left" in progress.live(200)
    progress(replace(LONG, seconds=4061.0, told=False))  # an answer, long after the last result
    now += 1.0
    assert "1:07:42, about 2:40:04 left" in progress.live(200)
    progress(replace(LONG, progress=replace(LONG.progress, generation=0), seconds=3.0))  # the next search
    assert "generation 0 of 40, " in progress.live(200)
    assert ", 0:03, 1234 programs" in progress.live(200)


@pytest.mark.parametrize(
    ("generations", "generation", "shown"),
    [
        (41, 0, "generation 0 of 40"),
        (41, 40, "generation 40 of 40"),
        (41, 41, "generation 40 of 40"),  # after the last one, while programs are checked and reshaped
        (1, 1, "generation 0"),
        (None, 7, "generation 7"),
    ],
)
def test_generations_have_their_numbers(generations: int | None, generation: int, shown: str) -> None:
    progress = FitProgress()
    progress(replace(LONG, progress=replace(LONG.progress, generation=generation), generations=generations))
    assert progress.live(200).startswith(f"{shown}, ")
    assert progress.logged().startswith(f"in {shown.partition(' of ')[0]}: ")


def test_a_log_hears_of_a_run_that_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "EVERY", 0.2)
    console = PlainConsole(file=io.StringIO())
    monkeypatch.setattr(module, "PlainConsole", lambda **_: console)
    with FitProgress() as progress:
        time.sleep(0.3)
        progress(ANSWERED)
        time.sleep(0.5)
    time.sleep(0.3)
    first, second, *_ = said = capsys.readouterr().err.splitlines()
    assert first == "no answer yet, 0.2 s"
    assert second.startswith("in generation 0: 9 programs, 34567 tokens for 1.25 (31 asked")
    assert 2 <= len(said) <= 4
