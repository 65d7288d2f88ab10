"""The ways in: the console script, cli.py, make, the example, and the README's example."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

import grace_irl
from grace_irl.cli.app import COMMANDS, GROUPS
from tests.frame.tree import ROOT, texts


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """A real process, which does not know that make may have started this one."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        timeout=300,
        cwd=cwd,
        env=inherited,
        stdin=subprocess.DEVNULL,
    )


def test_the_console_script() -> None:
    (script,) = entry_points(group="console_scripts", name="grace-irl")
    assert script.value == "grace_irl.cli:main"
    done = run(Path(sys.executable).parent / "grace-irl", "--version")
    assert done.stdout.split() == ["grace-irl", grace_irl.__version__]
    assert version("grace-irl") == grace_irl.__version__


def test_the_command_line_from_a_checkout(tmp_path: Path) -> None:
    done = run(sys.executable, ROOT / "cli.py", "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not [name for name in [*COMMANDS, *GROUPS] if name not in done.stdout]


def test_the_example(tmp_path: Path) -> None:
    """Run as the file says, from anywhere: it finds its data, and the reward is 1 at the expert's end alone."""
    done = run(sys.executable, ROOT / "examples" / "recover_reward.py", tmp_path / "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "held-out accuracy 1.0000" in done.stdout
    *before, last = done.stdout.strip().splitlines()[-1].partition(": ")[2].split()
    assert before
    assert all(float(value) < float(last) for value in before)
    assert (tmp_path / "run" / "reward.py").is_file()


@pytest.mark.parametrize("script", ["readme_example.py", "picture.py"])
def test_the_readme_shows_what_fit_gives(script: str) -> None:
    done = run(sys.executable, ROOT / "docs" / script, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@needs_make
def test_make_lists_its_targets() -> None:
    done = run("make")
    assert done.returncode == 0, done.stderr
    shown = {line.split()[0] for line in done.stdout.splitlines()}
    assert {"fit", "test", "lint", "types", "bench", "clean", "help"} <= shown


@needs_make
@pytest.mark.parametrize("python", ["", "false", "python-that-is-not-there"])
def test_make_says_when_there_is_no_python(python: str, tmp_path: Path) -> None:
    done = run("make", f"VENV={tmp_path / 'venv'}", f"PYTHON={python}", "fit")
    assert done.returncode != 0
    assert f"{python or 'no Python'} found; expected Python 3.11 or newer" in done.stderr
    assert not (tmp_path / "venv").exists()


@needs_make
def test_a_room_is_checked_by_its_tests_the_suites_lint_and_types() -> None:
    done = run("make", "--dry-run", "check", "ROOM=search")
    assert done.returncode == 0, done.stderr
    steps = [line.split("/bin/", 1)[1] for line in done.stdout.splitlines() if "/bin/" in line][-4:]
    assert [step.split()[0] for step in steps] == ["ruff", "ruff", "mypy", "python"]
    tests = steps[-1].split()
    assert "tests/search" in tests
    suites = {
        str(path) for path, text in texts(".py") if path.name.startswith("test_") and "\nfrom grace_irl.testing" in text
    }
    assert suites == {path for path in tests if path.endswith(".py")}


@needs_make
@pytest.mark.parametrize("room", ["", "nowhere"])
def test_a_room_that_is_none_is_refused(room: str, tmp_path: Path) -> None:
    done = run("make", f"VENV={tmp_path / 'venv'}", f"ROOM={room}", "check")
    assert done.returncode == 2
    assert f"ROOM={room}; expected one of " in done.stderr
    assert " search " in done.stderr
    assert not (tmp_path / "venv").exists()


def test_ci_runs_tests_then_lint_then_types() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    lines = script.read_text().splitlines()
    assert "set -euo pipefail" in lines
    assert [line for line in lines if line.startswith("make")] == ["make test", "make slow", "make lint", "make types"]
