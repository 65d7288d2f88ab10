"""Recorded first answers of a large model on real locomotion data: the run replays to the same programs and scores.

`benchmarks/mujoco_comparison.py --reward` trains on the best of them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from grace_irl.demos import load
from grace_irl.programs.export import program_of
from grace_irl.runs.caller import Parts
from grace_irl.runs.fit import start
from grace_irl.runs.recording import recorded_config
from grace_irl.runs.run import opened

ROOT = Path(__file__).parents[2]
DATA = ROOT / ".." / "shared" / "data" / "mujoco"
FOLDER = ROOT / "tests" / "recordings" / "large_model_mujoco"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the real MuJoCo trajectories are not beside the project")


@pytest.fixture(scope="module")
def comparison() -> Any:
    pytest.importorskip("mujoco")
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import mujoco_comparison  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return mujoco_comparison


@pytest.mark.parametrize(
    ("body", "fitness", "accuracy"), [("Hopper", -0.73697, 0.9067), ("HalfCheetah", -0.055793, 0.9922)]
)
def test_a_recorded_run_replays_exactly(
    body: str, fitness: float, accuracy: float, comparison: Any, tmp_path: Path
) -> None:
    demonstrations = load([comparison.demonstrations(body, tmp_path)])
    config = recorded_config(FOLDER / f"{body}.jsonl")
    run = start(config, tmp_path / "run", Parts(demonstrations=demonstrations))
    assert run.best.fitness == pytest.approx(fitness, abs=1e-5)
    assert run.best.train.accuracy == pytest.approx(accuracy, abs=1e-4)
    with opened(run.folder) as (store, _):
        assert len(list(store.proposals())) == 4
    # The file that the comparison trains on is the best of these programs.
    kept = program_of((FOLDER / f"{body}.py").read_text(encoding="utf-8"))
    assert kept == program_of(run.reward_path.read_text(encoding="utf-8"))
