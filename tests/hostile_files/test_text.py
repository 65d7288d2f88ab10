"""Text of others on a terminal: what a file, a model or a server says never steers it, and is never markup."""

from __future__ import annotations

import json
import os
import pty
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import grace_irl
from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata
from grace_irl.propose.protocol import Proposal
from grace_irl.runs.expand.round import Round, write_round
from grace_irl.search.protocol import Request
from tests.fakes.data import vector_set
from tests.hostile_files.texts import HOSTILE, ID, NAME, OF_RICH, SHOWN, is_harmless

ROOT = Path(__file__).parents[2]
FAILING = f"""
class Reward:
    def reward_fn(self, state):
        raise ValueError({HOSTILE!r})

    def debug_fn(self, state):
        return {HOSTILE!r}
"""
Capture = pytest.CaptureFixture[str]


def hostile_set() -> Demonstrations:
    """Numbers of two tasks, with hostile names wherever a set has any."""
    plain = vector_set(10, 10, 10, tasks=(HOSTILE, "other"))
    items = [
        Demonstration(replace(item.trajectory, extra_info=HOSTILE, source=HOSTILE), item.role, item.task)
        for item in plain
    ]
    about = Metadata("vector", label="all", environment=ID, fields=(HOSTILE, "y", "z"))
    return Demonstrations(about, tuple(items))


class Speaker:
    """A proposer whose answers say hostile things; some of its programs fail with them."""

    async def propose(self, request: Request, parents: object) -> Proposal:
        if request.index == 1:
            return Proposal("", failure=f"refusal: {HOSTILE}", reasoning=HOSTILE)
        if request.index == 2:
            return Proposal(FAILING, reasoning=HOSTILE, raw=HOSTILE)
        body = f"class Reward:\n    def reward_fn(self, state):\n        return state[1] + {request.index}\n"
        return Proposal(body + (f"# {HOSTILE}\n" if request.index == 3 else ""), reasoning=HOSTILE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set, a run whose texts are hostile, and a reward that fails with one."""
    made = tmp_path_factory.mktemp("text")
    save(hostile_set(), made / NAME)
    run = grace_irl.fit([str(made / NAME)], out=made / "run", proposer=Speaker(), max_calls=5, workers=1)
    with closing(sqlite3.connect(run.folder / "run.db")) as database:
        database.execute("INSERT INTO events (time, kind, detail) VALUES (?, 'note', ?)", (HOSTILE, HOSTILE))
        database.execute("UPDATE programs SET operator = ? WHERE idx = 2", (HOSTILE,))
        database.execute("UPDATE fates SET reason = reason || ?", (HOSTILE,))
        database.execute("UPDATE functions SET name = ?", (HOSTILE,))
        database.commit()
    (made / "expansion" / "rounds" / "0").mkdir(parents=True)
    write_round(made / "expansion" / "rounds" / "0" / "round.json", Round(0, program=HOSTILE, reward=HOSTILE))
    (made / "failing.py").write_text(FAILING)
    (made / "hidden.py").write_text(f"# {HOSTILE}\n{FAILING}", newline="")
    return made


def programs(run: Path) -> list[str]:
    with closing(sqlite3.connect(run / "run.db")) as database:
        return [str(row[0]) for row in database.execute("SELECT id FROM programs")]


COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "inspect": lambda at: ["demos", "inspect", str(at / NAME)],
    "goals": lambda at: ["demos", "inspect", str(at / NAME), "--goals", str(at / "goals.toml")],
    "convert": lambda at: ["demos", "convert", str(at / NAME), str(at / f"x{NAME}"), "--task", HOSTILE],
    "select": lambda at: ["demos", "select", "--from", str(at / NAME), "--from-task", HOSTILE, "--dry-run"],
    "select out": lambda at: [
        "demos",
        "select",
        "--from",
        str(at / NAME),
        "--goal",
        "a",
        "--out",
        str(at / f"y{NAME}"),
    ],
    "scramble": lambda at: ["demos", "scramble", str(at / NAME), str(at / "scrambled")],
    "fit": lambda at: ["fit", "--demos", str(at / NAME), "--out", str(at / "fit\x1b[2J[/b]"), "--max-calls", "2"],
    "estimate": lambda at: [
        *("fit", "--demos", str(at / NAME), "--estimate", "--llm-url", "http://127.0.0.1:9"),
        *("--set", f"model.name='''{HOSTILE[:4]}'''"),
    ],
    "show": lambda at: ["show", str(at / "run")],
    "fates": lambda at: ["show", str(at / "run"), "--fates"],
    "rounds": lambda at: ["show", str(at / "expansion")],
    "json": lambda at: ["show", str(at / "run"), "--json"],
    "report": lambda at: ["report", str(at / "run"), "--out", str(at / "\x1b[2J[/b].html")],
    "export": lambda at: ["export", str(at / "run"), "--out", str(at / "\x1b[2J[/b].py")],
    "recording": lambda at: ["export", str(at / "run"), "--recording", str(at / "\x1b[2J[/b].jsonl")],
    "library": lambda at: ["export", str(at / "run"), "--library", "--out", str(at / "library.py")],
    "score": lambda at: ["score", str(at / "run" / "reward.py"), "--demos", str(at / NAME)],
    "score failing": lambda at: ["score", str(at / "failing.py"), "--demos", str(at / NAME)],
    "score hidden": lambda at: ["score", str(at / "hidden.py"), "--demos", str(at / NAME)],
    "score absent": lambda at: ["score", HOSTILE, "--demos", str(at / NAME)],
    "serve": lambda at: ["serve", "--model", HOSTILE, "--vllm", str(at), "--dry-run"],
    "compare": lambda at: ["compare", "--demos", str(at / NAME), "--env", ID, "--out", str(at / "compared")],
    "methods": lambda at: ["compare", "--demos", str(at / NAME), "--methods", HOSTILE],
    "collect": lambda at: ["collect", "--env", ID, "--policy", HOSTILE, "--role", "expert", "--out", "x.npz"],
    "resume": lambda at: ["fit", "--resume", HOSTILE],
    "setting": lambda at: ["fit", "--demos", str(at / NAME), "--set", f"{HOSTILE}=1"],
    "value": lambda at: ["fit", "--demos", str(at / NAME), "--workers", HOSTILE],
    "choice": lambda at: ["fit", "--demos", str(at / NAME), "--label", HOSTILE],
    "option": lambda at: ["fit", f"--{HOSTILE}"],
    "command": lambda at: [HOSTILE],
    "command of a group": lambda at: ["demos", HOSTILE],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_but_text_reaches_standard_output_and_error(
    name: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    at = Path(shutil.copytree(folder, tmp_path / "copy"))
    (at / "goals.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    code = main(COMMANDS[name](at))
    said = capsys.readouterr()
    assert code in (0, 1, 2)
    assert "a defect of grace-irl" not in said.err
    assert said.out + said.err
    assert is_harmless(said.out), said.out
    assert is_harmless(said.err), said.err
    if code == 2:
        assert said.err.count("\n") == 1


def test_every_program_of_a_run_is_shown_as_it_is(folder: Path, capsys: Capture) -> None:
    """The one with hidden characters is refused, and shown with escapes in their places."""
    texts = []
    for program in programs(folder / "run"):
        capsys.readouterr()
        assert main(["show", str(folder / "run"), "--program", program]) == 0
        texts.append(capsys.readouterr().out)
        assert is_harmless(texts[-1])
    assert any(f"# {SHOWN}" in text and "in column 4: a reader does not see it" in text for text in texts)
    assert any(f"ValueError: {SHOWN[:1]}" in text for text in texts)
    assert all("reasoning: a\\x1b" in text for text in texts)


def test_texts_are_shown_and_not_swallowed(folder: Path, capsys: Capture) -> None:
    capsys.readouterr()
    assert main(["demos", "inspect", str(folder / NAME)]) == 0
    shown = "".join(capsys.readouterr().out.split())
    assert SHOWN.replace(" ", "")[:12] in shown
    assert main(["score", "absent[/b]\x1b[2J.py", "--demos", str(folder / NAME)]) == 2
    assert r"absent[/b]\x1b[2J.py" in capsys.readouterr().err


def test_a_task_that_looks_like_markup_is_a_task(tmp_path: Path, capsys: Capture) -> None:
    save(vector_set(6, 6, 6, tasks=("[/b]", "[red]x[/red]")), tmp_path / "set.parquet")
    arguments = ["fit", "--demos", str(tmp_path / "set.parquet"), "--out", str(tmp_path / "run"), "--max-calls", "2"]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "[/b], train" in shown
    assert "[red]x[/red], train" in shown


@pytest.mark.parametrize("name", ["inspect", "fit", "show", "score", "score failing", "select", "command", "value"])
def test_nothing_but_text_and_colours_reach_a_terminal(name: str, folder: Path, tmp_path: Path) -> None:
    at = Path(shutil.copytree(folder, tmp_path / "copy"))
    code, said = on_a_terminal([sys.executable, str(ROOT / "cli.py"), *COMMANDS[name](at)], tmp_path)
    assert code in (0, 1, 2), said
    assert said
    left = OF_RICH.sub("", said)
    assert is_harmless(left), left


def test_a_program_is_shown_harmless_on_a_terminal(folder: Path, tmp_path: Path) -> None:
    for program in programs(folder / "run"):
        command = [sys.executable, str(ROOT / "cli.py"), "show", str(folder / "run"), "--program", program]
        code, said = on_a_terminal(command, tmp_path)
        assert code == 0
        assert is_harmless(OF_RICH.sub("", said)), said


def on_a_terminal(command: list[str], where: Path) -> tuple[int, str]:
    """Exit code and everything that a terminal gets of a command."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    process = subprocess.Popen(
        command, cwd=where, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 1 << 16):
            said += part
    except OSError:  # how the other end of a terminal says that it is closed
        pass
    finally:
        os.close(ours)
    return process.wait(60), said.decode()


def test_a_defect_shows_its_traceback_harmless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def broken(_: object) -> None:
        raise RuntimeError(HOSTILE)

    monkeypatch.setattr("grace_irl.cli.show.opened", broken)
    monkeypatch.setenv("GRACE_IRL_DEBUG", "1")
    assert main(["show", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert SHOWN in said
    assert is_harmless(said)


def test_a_report_holds_nothing_that_hides_or_turns(folder: Path, tmp_path: Path) -> None:
    assert main(["report", str(folder / "run"), "--out", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert is_harmless(page)
    assert r"\u202e" in page


def test_a_recording_with_halves_of_characters_is_refused(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    """No database keeps them."""
    file = tmp_path / "recording.jsonl"
    assert main(["export", str(folder / "run"), "--recording", str(file)]) == 0
    first, *answers = file.read_text().splitlines()
    answer = json.loads(answers[0]) | {"reasoning": "\ud800"}
    file.write_text("\n".join([first, json.dumps(answer)]) + "\n")
    capsys.readouterr()
    assert main(["fit", "--replay", str(file), "--demos", str(folder / NAME), "--out", str(tmp_path / "again")]) == 2
    assert "line 2: not a recording" in capsys.readouterr().err
