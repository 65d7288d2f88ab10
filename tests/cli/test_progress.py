"""The progress of a fit: live on a terminal, quiet in a log."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from grace_irl.cli import progress as module
from grace_irl.cli.console import PlainConsole
from grace_irl.cli.progress import FitProgress, said
from grace_irl.evaluate.separation import Metrics, Separation
from grace_irl.methods.separated import SeparationAccount
from grace_irl.programs.program import Program
from grace_irl.runs.budget import Progress
from grace_irl.runs.engine import Live, Snapshot
from grace_irl.runs.record import Record

METRICS = Metrics(fitness=-0.25, accuracy=0.875, auc=0.9, separated=False, experts=10, negatives=90)
BEST = Record(Program("a", "", 3), Separation(METRICS, METRICS).evaluation(), 0)
SAID = SeparationAccount().headline(BEST.evaluation)
ASKED = Live(in_flight=31, answers=12, tokens=34567, cost=1.25, seconds=2.5)
ANSWERED = Snapshot(Progress(calls=11, tokens=30000, seconds=9.0), BEST, SAID, 9, ASKED, told=False, replayed=False)
ENDED = replace(ANSWERED, progress=Progress(calls=20, seconds=12.5, generation=1, generation_ended=True), told=True)


def shown(monkeypatch: pytest.MonkeyPatch, *snapshots: Snapshot, terminal: bool, notes: tuple[str, ...] = ()) -> str:
    """What stands on a console after these."""
    out = io.StringIO()
    console = PlainConsole(file=out, force_terminal=terminal, width=200, color_system=None)
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
    assert first.startswith("generation 1: 9 programs, 34567 tokens for 1.25 (31 asked, last call 2.5 s), best fitness")
    assert first.endswith(", 12.5 s")
    assert second == "a note"


def test_a_run_without_a_model_does_not_speak_of_tokens() -> None:
    plain = replace(ANSWERED, live=Live(in_flight=8), best=None, headline="")
    assert said(plain) == "9 programs, none valid yet"
