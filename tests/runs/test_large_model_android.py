"""Recorded answers of a large model to prompts with real Android screens: every run replays to the same program.

`benchmarks/android_recovery.py` made the recordings; results.json holds what it found.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from grace_irl.runs.caller import Parts
from grace_irl.runs.fit import start
from grace_irl.runs.recording import recorded_config

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "android"
FOLDER = ROOT / "tests" / "recordings" / "large_model_android"
if not FOLDER.is_dir():
    pytest.skip("recordings are made by benchmarks/android_recovery.py record", allow_module_level=True)
RESULTS = {entry["run"]: entry for entry in json.loads((FOLDER / "results.json").read_text())}

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="needs the real screens of ../shared/data/android")


@pytest.fixture(scope="module")
def problems() -> dict[str, Any]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from android_recovery import cases  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    everything = argparse.Namespace(problem="", scrambled=True, data=DATA, seed=0)
    return {problem.name: problem for problem in cases(everything)}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(RESULTS))
def test_a_recorded_run_replays_exactly(name: str, problems: dict[str, Any], tmp_path: Path) -> None:
    demos = problems[name].train
    run = start(recorded_config(FOLDER / f"{name}.jsonl"), tmp_path / "run", Parts(demonstrations=demos))
    assert run.best.program.id == RESULTS[name]["program"]
    assert run.best.fitness == pytest.approx(RESULTS[name]["fitness"], abs=1e-9)


def test_required_goals_are_separated() -> None:
    required = [entry for entry in RESULTS.values() if entry["required"]]
    assert {entry["run"] for entry in required} == {"alarm", "reminder", "two-tasks"}
    assert all(entry["separated"] for entry in required)
