"""The command line over real files, the real sandbox and the real synthesiser."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grace_irl.cli import main
from grace_irl.cli.app import COMMANDS, GROUPS, SECTIONS
from grace_irl.cli.show import _short
from grace_irl.runs.folder import RunLock, RunPaths
from grace_irl.runs.schema import FORMAT
from grace_irl.runs.store import Store
from tests.cli.commands import ROOT, command, last_object


def test_fit_answers_one_object(fitted: tuple[Path, dict[str, Any]]) -> None:
    folder, found = fitted
    assert found["run"] == str(folder)
    assert Path(found["reward_path"]).read_text().startswith('"""A reward recovered')
    assert Path(found["report_path"]).read_text().startswith("<!doctype html>")
    for split in ("train", "held_out"):
        assert {"auc", "accuracy", "separated", "fitness"} <= set(found[split])
    assert found["train"]["accuracy"] > 0.95
    assert found["proposer"] == "synthesis"
    assert found["programs"] >= 1
    assert found["seconds"] > 0


def test_forced_colours_leave_one_object_alone_in_a_file(fitted: tuple[Path, dict[str, Any]]) -> None:
    folder, found = fitted
    done = command("fit", "--resume", str(folder), "--json", env=os.environ | {"FORCE_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["program"] == found["program"]
    assert "\x1b" not in done.stderr


def test_fit_for_people(demos: Path, tmp_path: Path) -> None:
    done = command(
        "fit",
        "--demos",
        str(demos),
        "--out",
        str(tmp_path / "run"),
        "--set",
        "search.generations=0",
        "--max-calls",
        "4",
    )
    assert done.returncode == 0, done.stderr
    assert "class Reward" in done.stdout
    assert "held out" in done.stdout
    assert str(tmp_path / "run" / "reward.py") in done.stdout
    assert done.stdout.splitlines()[-1] == f"report: {tmp_path / 'run' / 'report.html'}"
    assert "\x1b" not in done.stdout + done.stderr


def test_a_run_whose_time_is_up_before_the_first_proposal_says_how_to_go_on(
    demos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert main(["fit", "--demos", str(demos), "--out", str(folder), "--max-seconds", "0.001", "--json"]) == 1
    rule, line = capsys.readouterr().err.splitlines()
    assert rule.startswith("label rule ")
    assert f"{folder}: the time was up before the first proposal (max_seconds: 0.0" in line
    assert f"go on with more: grace-irl fit --resume {folder} --max-seconds N" in line
    assert main(["fit", "--resume", str(folder), "--max-seconds", "120", "--json"]) == 0
    assert last_object(capsys.readouterr().out)["programs"] >= 1


def test_score(fitted: tuple[Path, dict[str, Any]], demos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, found = fitted
    assert main(["score", str(folder / "reward.py"), "--demos", str(demos), "--json"]) == 0
    scored = last_object(capsys.readouterr().out)
    assert scored["calibration"] == "file"
    assert scored["scale"] == found["scale"]
    assert scored["accuracy"] > 0.95
    assert {role["group"] for role in scored["roles"]} == {"expert, positive", "negative"}
    assert main(["score", str(folder / "reward.py"), "--demos", str(demos)]) == 0
    assert "accuracy" in capsys.readouterr().out


def test_negatives_alone_are_refused(
    fitted: tuple[Path, dict[str, Any]], demos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["score", str(fitted[0] / "reward.py")], ["fit", "--out", str(tmp_path / "run")]):
        assert main([*words, "--negatives", str(demos)]) == 2
        said = capsys.readouterr().err
        assert said.strip().endswith("negatives alone; expected experts, too: --demos PATH… or --experts PATH…")
    assert main(["score", str(fitted[0] / "reward.py")]) == 2
    assert "no demonstrations; expected --demos PATH…" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_show(fitted: tuple[Path, dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    folder, found = fitted
    assert main(["show", str(folder), "--json"]) == 0
    shown = last_object(capsys.readouterr().out)
    assert shown["best"] == found["program"]
    assert shown["calls"] == found["calls"]
    assert sum(row["calls"] for row in shown["generations"]) == found["calls"]
    told = {fate["program"] for fate in shown["fates"]}
    assert {entry["program"] for entry in shown["population"]} <= told
    assert main(["show", str(folder)]) == 0
    assert found["program"] in capsys.readouterr().out
    assert main(["show", str(folder), "--program", found["program"][:8]]) == 0
    assert "class Reward" in capsys.readouterr().out
    assert main(["show", str(folder), "--program", ""]) == 2  # a variable that is not set, most likely
    assert "starts with ''" in capsys.readouterr().err
    assert main(["show", str(folder), "--program", found["program"], "--json"]) == 0
    assert last_object(capsys.readouterr().out)["program"]["id"] == found["program"]


def test_resume_of_a_finished_run(fitted: tuple[Path, dict[str, Any]]) -> None:
    folder, found = fitted
    done = command("fit", "--resume", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    again = last_object(done.stdout)
    assert (again["program"], again["calls"]) == (found["program"], found["calls"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit"], "no demonstrations"),
        (["fit", "--demos", "absent.parquet"], "absent.parquet"),
        (["fit", "--demos", "{demos}", "--proposer", "oracle"], "'oracle' is unknown"),
        (["fit", "--demos", "{demos}", "--set", "search.popultion=3"], "'search.popultion' is unknown"),
        (["fit", "--demos", "{demos}", "--held-out", "1.5"], "data.held_out"),
        (["fit", "--demos", "{demos}", "--label", "first"], "data.label"),
        (["fit", "--demos", "{demos}", "--log-pi", "recorded"], "log-probabilities"),
        (["fit", "--resume", "absent"], "no such folder"),
        (["fit", "--resume", "absent", "--out", "x"], "--resume with --out"),
        (["score", "absent.py", "--demos", "{demos}"], "absent.py"),
        (["score", "absent.py"], "no demonstrations"),
        (["score", "absent.py", "--demos", "{demos}", "--label", "x"], "'data.label' is 'x'"),
        (["score", "{reward}", "--demos", "{demos}", "--workers", "0"], "'sandbox.workers' is 0"),
        (["show", "absent"], "no such folder"),
        (["show", "."], "expected the folder of a run"),
        (["show", "{demos}"], "set.parquet: a file; expected the folder of a run"),
        (["fit", "--resume", "{demos}"], "set.parquet: a file; expected the folder of a run"),
        (["fit", "--demos", "{demos}", "--out", "{demos}"], "exists already, as a file; expected a new folder"),
        (["fit", "--demos", "{demos}", "--out", "{data}"], "expected a new folder for --out: choose another\n"),
        (["export", "absent", "--out", "x.py"], "no such folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str],
    said: str,
    demos: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    places = {"demos": demos, "data": demos.parent, "reward": ROOT / "cli.py"}
    assert main([argument.format(**places) for argument in arguments]) == 2
    answer = capsys.readouterr()
    assert answer.out == ""
    assert said in answer.err
    assert answer.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_locked_or_newer(fitted: tuple[Path, dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = fitted
    with RunLock(RunPaths(folder).lock):
        assert main(["fit", "--resume", str(folder)]) == 2
    assert f"process {os.getpid()}" in capsys.readouterr().err
    store = Store(RunPaths(folder).database)
    store.set_meta("format", "9")
    assert main(["show", str(folder)]) == 2
    assert "format 9" in capsys.readouterr().err
    store.set_meta("format", str(FORMAT))
    store.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit", "--no-such"], "No such option: --no-such"),
        (["nothing"], "No such command 'nothing'; see grace-irl --help"),
        (["score"], "Missing argument"),
        (["fit", "--seed", "1.5"], "'--seed'"),
        (["demos", "scramble"], "see grace-irl demos scramble --help"),
        (["show", "run", "--top", "0"], "'--top'"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    answer = capsys.readouterr()
    assert said in answer.err
    assert answer.err.startswith("grace-irl: ")
    assert answer.err.count("\n") == 1
    assert answer.out == ""


@pytest.mark.parametrize("arguments", [[], ["demos"]])
def test_no_command_shows_what_there_is(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    answer = capsys.readouterr()
    assert "Commands:" in answer.out
    assert answer.err == ""


def test_the_module_exits_as_the_command_does() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "grace_irl", "show", "absent"], capture_output=True, cwd=ROOT, timeout=60
    )
    assert done.returncode == 2


def test_what_is_quoted_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "a\x1b[31mb\x07"]) == 2
    assert "a\\x1b[31mb\\x07: no such folder" in capsys.readouterr().err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("grace-irl ")
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    for name in ("fit", "score", "export", "show", "collect", "demos", "doctor"):
        assert name in said


def test_help_groups_every_command_and_cuts_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted([*COMMANDS, *GROUPS])
    for arguments in (["--help"], ["demos", "--help"]):
        assert main(arguments) == 0
        said = capsys.readouterr().out
        assert "..." not in said.partition("Commands:")[2]
        assert max(map(len, said.splitlines())) <= 80


def test_the_example_of_help_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--help"]) == 0
    commands = re.findall(
        r"grace-irl (\w+.*)", capsys.readouterr().out.partition("Options:")[0].partition("Example:")[2]
    )
    assert len(commands) == 2
    monkeypatch.chdir(tmp_path)
    for each in commands:
        assert main(each.split()) == 0, each


FAILING = """class Reward:
    def __init__(self, extra_info=None):
        pass

    def reward_fn(self, state):
        return state[9]
"""


def test_a_reward_that_fails_is_exit_code_1(demos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "failing.py"
    file.write_text(FAILING)
    assert main(["score", str(file), "--demos", str(demos)]) == 1
    assert "IndexError" in capsys.readouterr().err


def test_a_defect_shows_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("grace_irl.cli.show.opened", broken)
    monkeypatch.delenv("GRACE_IRL_DEBUG", raising=False)
    assert main(["show", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "defect" in said
    assert said.count("\n") == 1


def test_environment_mirrors_a_flag(
    demos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRACE_IRL_PROPOSER", "oracle")
    assert main(["fit", "--demos", str(demos)]) == 2
    assert "'oracle' is unknown" in capsys.readouterr().err


HEAVY = """
import sys
from grace_irl.cli import main
code = main(sys.argv[1:])
print(sorted({"torch", "gymnasium", "minigrid", "minari", "stable_baselines3", "mujoco"} & set(sys.modules)))
sys.exit(code)
"""


@pytest.mark.slow
def test_fit_imports_no_simulator_and_no_torch(demos: Path, tmp_path: Path) -> None:
    arguments = ["fit", "--demos", str(demos), "--out", str(tmp_path / "run"), "--generations", "0", "--max-calls", "2"]
    done = subprocess.run([sys.executable, "-c", HEAVY, *arguments], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_importing_the_package_imports_next_to_nothing() -> None:
    code = "import sys, grace_irl; print(sorted({'numpy', 'scipy', 'pyarrow', 'typer'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("replay", [["--replay", "absent.jsonl"], ["--replay=absent.jsonl"]], ids=len)
def test_a_recording_that_is_not_there_is_named_before_its_methods_flags(
    replay: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", *replay, "--task", "reacher"]) == 2
    assert "absent.jsonl: no such file; expected the folder of a run, or a recording" in capsys.readouterr().err


def test_a_reason_that_is_cut_says_so() -> None:
    assert _short("a\n b") == "a b"
    assert _short("x" * 120) == "x" * 120
    assert _short("x" * 121) == "x" * 119 + "…"


@pytest.mark.parametrize(
    "closed",
    [pytest.param(">&-", marks=pytest.mark.slow), pytest.param("2>&-", marks=pytest.mark.slow), "<&- >&- 2>&-"],
)
def test_closed_streams_are_the_null_device(closed: str, demos: Path, tmp_path: Path) -> None:
    fit = ["fit", "--demos", str(demos), "--out", str(tmp_path / "run"), "--max-calls", "2"]
    line = shlex.join([sys.executable, str(ROOT / "cli.py"), *fit])
    done = subprocess.run(["sh", "-c", f"{line} {closed}"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert (done.stdout == "") is (closed != "2>&-")
    assert RunPaths(tmp_path / "run").report.exists()
