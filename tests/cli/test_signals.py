"""Signals: a run is saved, its end is said in a line, and the exit code is that of the signal."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.runs.folder import RunPaths
from tests.cli.commands import ROOT, command, last_object
from tests.fakes.data import vector_set


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "ignored"),
    [(signal.SIGINT, 130, False), (signal.SIGTERM, 143, False), (signal.SIGTERM, 143, True)],
    ids=["ctrl-c", "sigterm", "sigterm in the background of a script"],
)
def test_signals_save_and_exit_with_their_code(tmp_path: Path, number: int, code: int, ignored: bool) -> None:
    folder = tmp_path / "run"
    hard = tmp_path / "hard.parquet"
    save(vector_set(10, 10, 20, noise=0.3), hard)
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "cli.py"), "fit", "--demos", str(hard), "--out", str(folder), "--plateau", "100"],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_IGN) if ignored else None,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not RunPaths(folder).reward.exists():
        time.sleep(0.05)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    assert f"--resume {folder}" in said
    assert "Traceback" not in said
    assert "interrupted: after" in RunPaths(folder).report.read_text()
    done = command("fit", "--resume", str(folder), "--max-calls", "40", "--json")
    assert done.returncode == 0, done.stderr
    assert last_object(done.stdout)["calls"] >= 20


SIGNALLED = """
import atexit, os, sys
from grace_irl.cli import main

class Sends:
    def find_spec(self, name, path=None, target=None):
        if name == "grace_irl.cli.app":
            exec("os.kill(os.getpid(), NUMBER)")

if AT_END:
    atexit.register(os.kill, os.getpid(), NUMBER)
else:
    sys.meta_path.insert(0, Sends())
sys.argv[1:] = ["fit", "--demos", "absent"]
sys.exit(main())
"""


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM])
def test_signals_at_the_beginning_and_at_the_end_are_no_sudden_death(number: int) -> None:
    for at_end, code, said in ((False, 128 + number, "interrupted"), (True, 2, "absent: no such file")):
        program = SIGNALLED.replace("NUMBER", str(int(number))).replace("AT_END", str(at_end))
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == code, done.stderr
        assert done.stderr.startswith(f"grace-irl: {said}")
        assert done.stderr.count("\n") == 1


def test_ctrl_c_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def pressed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("grace_irl.cli.demos.summarise", pressed)
    assert main(["demos", "inspect", str(ROOT / "datasets" / "babyai-go-to-obj")]) == 130
    assert capsys.readouterr().err == "grace-irl: interrupted\n"


def test_ctrl_c_while_the_report_is_written_says_what_is_there(
    demos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("grace_irl.report.write.report", pressed)
    folder = tmp_path / "my run"
    arguments = ["fit", "--demos", str(demos), "--out", str(folder), "--generations", "0", "--max-calls", "2"]
    assert main(arguments) == 130
    reward, said = RunPaths(folder).reward, capsys.readouterr().err.splitlines()[-1]
    assert said == (
        f"grace-irl: interrupted; the reward is complete: {reward}. Make the report with: grace-irl report '{folder}'"
    )
    assert reward.is_file()
