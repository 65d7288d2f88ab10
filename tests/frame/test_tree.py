"""Rules for every file of the tree: no addresses, no paths of a machine, links that lead somewhere, a licence."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.frame.tree import ROOT, files, texts

# In pieces, so that this file does not hold what it looks for.
REGISTRIES = (
    "py" + "pi.org",
    "python" + "hosted",
    "arti" + "factory",
    "download." + "pytorch",
    "ana" + "conda",
    "/sim" + "ple/",
)
MACHINE = re.compile(r"(?<![\w.$}~-])/(?:work|root|home|Users|opt|mnt|srv)/[\w.-]+")
INVENTED = {"/home/someone"}  # a folder that tests name and no machine has
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)")
BENCHMARKS = sorted((ROOT / "benchmarks").glob("*.py"))


def test_the_walk_finds_the_project() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in files()}
    assert {"README.md", ".ci/run", "requirements/core.lock", "grace_irl/runs/run.py"} <= found
    assert not any(path.startswith((".venv/", ".git/", "runs/")) or "__pycache__" in path for path in found)


def test_no_file_names_a_registry() -> None:
    named = [f"{path}: {word}" for path, text in texts() for word in REGISTRIES if word in text]
    assert not named


def test_no_file_names_a_path_of_a_machine() -> None:
    found = {f"{path}: {hit}" for path, text in texts() for hit in set(MACHINE.findall(text)) - INVENTED}
    assert not found


@pytest.mark.parametrize("before", ["", "cd ", '"', "=", ":"])
@pytest.mark.parametrize("folder", ["home", "work", "root", "opt"])
def test_paths_of_machines_are_recognised(before: str, folder: str) -> None:
    assert MACHINE.search(f"{before}/{folder}/.cache/x")


@pytest.mark.parametrize("text", ["docs/home/page", "$HOME/home/x", "/etc/passwd", "~/opt/x", "https://a.b/home/x"])
def test_other_paths_are_let_be(text: str) -> None:
    assert not MACHINE.search(text)


def test_the_licence_is_named_everywhere() -> None:
    assert (ROOT / "LICENSE").read_text().lstrip().startswith("Apache License")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0"
    assert project["license-files"] == ["LICENSE"]
    assert "Apache-2.0" in (ROOT / "README.md").read_text()
    cards = [folder / "README.md" for folder in (ROOT / "datasets").iterdir() if folder.is_dir()]
    assert cards
    assert not [card for card in cards if "Licence" not in card.read_text()]


def test_docstrings_of_modules_open_with_no_question_word() -> None:
    """They open with a noun phrase or an imperative."""
    word = re.compile(r"(?:What|Who|Whose|Which|How|Where|When|Why|Whether)\b")
    opened = [(path, ast.get_docstring(ast.parse(text)) or "") for path, text in texts(".py")]
    assert not [f"{path}: {said.splitlines()[0]}" for path, said in opened if word.match(said)]


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{path}: {target}"
        for path, text in texts(".md")
        for target in LINK.findall(text)
        if not (ROOT / path).parent.joinpath(target).exists()
    ]
    assert not broken


def test_the_changelog_opens_with_this_version() -> None:
    from grace_irl import __version__

    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == __version__


def test_datasets_is_not_importable() -> None:
    """As a package it would hide the one of the same name that imitation imports."""
    assert not (ROOT / "datasets" / "__init__.py").exists()


def test_every_module_says_what_it_is() -> None:
    """A notebook says it in the title of its first cell."""
    title = "# %% [markdown]\n# # "
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in files(suffix=".py")
        if (text := path.read_text())
        and not (text.startswith(title) if path.parent.name == "notebooks" else ast.get_docstring(ast.parse(text)))
    ]
    assert not silent


def test_nothing_is_left_to_do() -> None:
    marks = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX|NotImplemented" + r"Error)\b")
    assert not [f"{path}: {hit}" for path, text in texts(".py") for hit in marks.findall(text)]


@pytest.fixture(scope="module")
def helps() -> dict[str, tuple[int, str]]:
    """Exit status and output of each benchmark's `--help`."""
    command = [sys.executable, Path(__file__).with_name("helps.py"), *BENCHMARKS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found: dict[str, tuple[int, str]] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("path", BENCHMARKS, ids=[path.stem for path in BENCHMARKS])
def test_benchmarks_say_how_they_are_run(path: Path, helps: dict[str, tuple[int, str]]) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))
    status, output = helps[str(path)]
    assert status == 0, output
    assert "usage:" in output


def test_python_is_parsed_in_one_place() -> None:
    """Two threads that parse at once trip Python 3.11 up: `grace_irl.programs.parsing` lets one at a time."""
    found = [path.as_posix() for path, text in texts(".py") if path.parts[0] == "grace_irl" and "ast.parse(" in text]
    assert found == ["grace_irl/programs/parsing.py"]


def test_style_is_checked_in_every_file() -> None:
    """A pattern of what ruff leaves out names one place, and no folder of the same name elsewhere."""
    command = [Path(sys.executable).with_name("ruff"), "check", "--show-files"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    seen = {Path(line).relative_to(ROOT) for line in shown.stdout.split()}
    ours = {path for path, _ in texts(".py") if "recordings" not in path.parts and not path.name.endswith("_pb2.py")}
    assert not ours - seen
