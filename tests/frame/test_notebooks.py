"""Notebooks: docs/notebooks.py executes scripts, and what it writes is the same on every machine and at every time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frame.test_site import alone
from tests.frame.tree import ROOT, files

SCRIPT = """\
# %% [markdown]
# # Tiny

# %%
import os
import tempfile
import time
import warnings

os.chdir(tempfile.mkdtemp())
print(os.getcwd() + "/run", object())
print(f"{time.perf_counter():.3f} s")
warnings.warn("mind")

# %%
import pandas

pandas.DataFrame({"a": [1, 2]})

# %%
DIFFERS
"""
NOTEBOOKS = list(files(ROOT / "docs" / "notebooks", ".py"))


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """docs/notebooks.py without a network."""
    command = [*alone(), sys.executable, ROOT / "docs" / "notebooks.py", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A small notebook as a script, without its .ipynb."""
    path = tmp_path / "tiny.py"
    path.write_text(SCRIPT.replace("DIFFERS", "1 + 1"))
    return path


def test_an_executed_notebook_holds_no_time_no_path_and_no_random_id(script: Path) -> None:
    assert run(script).returncode == 0
    text = script.with_suffix(".ipynb").read_text()
    notebook = json.loads(text)
    cells = notebook["cells"]
    assert [cell["id"] for cell in cells] == ["cell-0", "cell-1", "cell-2", "cell-3"]
    assert not [cell for cell in cells if cell["metadata"]]
    said, warned = ("".join(output["text"]) for output in cells[1]["outputs"])
    assert said.splitlines()[0] == "run <object object at 0x…>"
    assert warned.splitlines()[0] == "UserWarning: mind"
    assert list(cells[2]["outputs"][0]["data"]) == ["text/html"]
    assert "".join(cells[3]["outputs"][0]["data"]["text/plain"]) == "2"
    assert str(script.parent) not in text
    assert str(ROOT) not in text
    assert sys.version.split()[0] not in json.dumps(notebook["metadata"])


@pytest.mark.slow
def test_what_differs_by_its_time_alone_is_left_as_it_is(script: Path) -> None:
    run(script)
    before = script.with_suffix(".ipynb").read_bytes()
    assert run("--check", script).returncode == 0
    assert run(script).returncode == 0
    assert script.with_suffix(".ipynb").read_bytes() == before


@pytest.mark.slow
def test_a_check_shows_what_differs_and_writes_nothing(script: Path) -> None:
    missing = run("--check", script)
    assert missing.returncode == 1
    assert not script.with_suffix(".ipynb").exists()
    run(script)
    before = script.with_suffix(".ipynb").read_bytes()
    script.write_text(SCRIPT.replace("DIFFERS", "2 + 1"))
    differs = run("--check", script)
    assert differs.returncode == 1
    assert {"-1 + 1", "+2 + 1", "-2", "+3"} <= set(differs.stderr.splitlines())
    assert script.with_suffix(".ipynb").read_bytes() == before


def test_a_cell_that_fails_is_shown(script: Path) -> None:
    script.write_text(SCRIPT.replace("DIFFERS", "1 / 0"))
    failed = run(script)
    assert failed.returncode == 1
    assert "tiny.py: a cell fails" in failed.stderr
    assert "ZeroDivisionError" in failed.stderr
    assert not script.with_suffix(".ipynb").exists()


def test_every_notebook_has_its_script() -> None:
    executed = {path.with_suffix(".py") for path in files(ROOT / "docs", ".ipynb")}
    assert executed == set(NOTEBOOKS)


@pytest.mark.slow
@pytest.mark.skipif(not NOTEBOOKS, reason="there are no notebooks")
def test_the_notebooks_show_what_their_cells_give() -> None:
    done = run("--check")
    assert done.returncode == 0, done.stderr
