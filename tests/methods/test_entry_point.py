"""A method of another distribution, installed and found by its entry point, through the whole command line.

The toy needs no demonstrations, asks with two parents and an ancestor, follows each answer by a call for a text,
scores without a separation, and adds a panel to the report.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.propose.client.server import ChatServer

TOY = Path(__file__).parent / "toy"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the distribution as pip installs it."""
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"
    shutil.copytree(TOY, source, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index"]
    subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--target", folder / "site", source], check=True, timeout=300
    )
    return folder / "site"


class Model:
    """Answers "begin" with a new number, "cross" with the mean of the parents' and 4, and "opinion" with 7."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if "OPINION" in prompt:
            return "7"
        numbers = [float(each) for each in re.findall(r"return ([0-9.]+)", prompt.partition("CROSS")[2])]
        value = (sum(numbers) + 4) / (len(numbers) + 1) if numbers else float(len(self.prompts))
        value += len(self.prompts) / 1000  # no program twice
        return (
            "A number.\n\n```python\nclass Reward:\n    def __init__(self, extra_info=None):\n        pass\n\n"
            f"    def reward_fn(self, state):\n        return {value}\n```\n"
        )


@pytest.fixture
def model() -> Iterator[tuple[ChatServer, Model]]:
    answers = Model()
    with ChatServer(answer=answers) as server:
        yield server, answers


def called(installed: Path, *arguments: str, code: int = 0) -> str:
    """What a command prints, or its error."""
    command = [sys.executable, "-c", "from grace_irl.cli import main; import sys; sys.exit(main())", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), *sys.path])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def fitted(installed: Path, server: ChatServer, out: Path, *more: str) -> dict[str, object]:
    """The JSON of a fit with the toy."""
    asked = ("--method", "toy", "--llm-url", server.url, "--answer-format", "code")
    printed = called(installed, "fit", *asked, "--out", str(out), "--set", "search.lag=1", "--json", *more)
    found: dict[str, object] = json.loads(printed.splitlines()[-1])
    return found


def steps(run: Path) -> list[tuple[int, int, str, str]]:
    """Calls of a run: request, attempt, step, and the answer."""
    with closing(sqlite3.connect(run / "run.db")) as database:
        return list(database.execute("SELECT idx, attempt, step, raw FROM proposals ORDER BY idx, attempt"))


def requests(run: Path) -> list[tuple[str, int, int]]:
    """Operator, number of parents and of ancestors of each request."""
    with closing(sqlite3.connect(run / "run.db")) as database:
        rows = database.execute("SELECT operator, parents, ancestors FROM requests ORDER BY idx").fetchall()
    return [(operator, len(json.loads(parents)), len(json.loads(ancestors))) for operator, parents, ancestors in rows]


@pytest.mark.slow
def test_fit_show_and_report(installed: Path, model: tuple[ChatServer, Model], tmp_path: Path) -> None:
    server, answers = model
    run = tmp_path / "run"
    found = fitted(installed, server, run, "--tries", "5", "--aim", "3.0")
    assert found["nearness"] == pytest.approx(0.0, abs=0.7)
    assert "fitness" not in found
    assert requests(run) == [("begin", 0, 0), ("begin", 0, 0), ("cross", 2, 0), ("cross", 2, 1), ("cross", 2, 1)]
    assert [(attempt, step) for _, attempt, step, _ in steps(run)] == [(0, ""), (1, "opinion")] * 5
    assert any("CROSS 2 1" in prompt for prompt in answers.prompts)
    assert "opinion of itself 7" in called(installed, "show", str(run), "--fates")
    shown = called(installed, "show", str(run))
    assert "nearness" in shown
    assert "distance" in shown
    page = (run / "report.html").read_text()
    assert "Numbers of the toy" in page
    assert "The best returns" in page
    assert "discriminator" not in (run / "reward.py").read_text()
    called(installed, "report", str(run), "--out", str(tmp_path / "again.html"))
    assert "Numbers of the toy" in (tmp_path / "again.html").read_text()


@pytest.mark.slow
def test_resume_and_replay(installed: Path, model: tuple[ChatServer, Model], tmp_path: Path) -> None:
    server, answers = model
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    end = fitted(installed, server, whole, "--tries", "5")
    calls = len(answers.prompts)
    answers.prompts.clear()
    fitted(installed, server, parts, "--tries", "5", "--max-calls", "2")
    # As if it had been killed between an answer and the call that follows it.
    with closing(sqlite3.connect(parts / "run.db")) as database, database:
        database.execute("DELETE FROM proposals WHERE idx = 1 AND attempt = 1")
        database.execute("DELETE FROM results WHERE idx = 1")
    printed = called(installed, "fit", "--resume", str(parts), "--max-calls", "100", "--json")
    assert json.loads(printed.splitlines()[-1])["program"] == end["program"]
    assert len(answers.prompts) == calls + 1
    answers.prompts.clear()
    replayed = called(installed, "fit", "--replay", str(whole), "--out", str(tmp_path / "replayed"), "--json")
    assert json.loads(replayed.splitlines()[-1])["program"] == end["program"]
    assert steps(tmp_path / "replayed") == steps(whole)
    assert not answers.prompts


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--method", "toy", "--elite", "3"), "--elite has no effect with this method"),
        (("--method", "toi"), "method 'toi' is unknown; expected one of grace, map-elites, random, eureka, "),
        (("--tries", "3", "--demos", "x"), "--tries"),
    ],
)
def test_what_does_not_fit_is_one_line(installed: Path, words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    error = called(installed, "fit", *words, "--out", str(tmp_path / "run"), code=2)
    assert said in error
    assert not (tmp_path / "run").exists()
