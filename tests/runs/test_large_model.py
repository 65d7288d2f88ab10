"""Recorded answers of a large model to the prompts of this project: every run replays to the same program.

`benchmarks/large_model_recovery.py` made the recordings; results.json holds what it found. Training data are collected
anew, by the same seeds, so that this also tells when collecting or scrambling changes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from grace_irl.demos import load, save
from grace_irl.demos.convert import scramble
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.rl.collect import collect
from grace_irl.runs.caller import Parts
from grace_irl.runs.fit import start
from grace_irl.runs.recording import recorded_config
from grace_irl.runs.run import opened

FOLDER = Path(__file__).parents[1] / "recordings" / "large_model"
RESULTS = {entry["run"]: entry for entry in json.loads((FOLDER / "results.json").read_text())}
LEVELS = sorted({name.rpartition("-")[0] for name in RESULTS})
TRAIN, FIRST = 8, 1_000_000  # episodes of either role, and the first seed of the experts'


def test_no_recorded_prompt_names_a_level() -> None:
    """What docs/models.md says of the scrambled runs: nothing but the data was there to go by."""
    prompts = [
        str(answer.get("prompt") or answer.get("goals", {}).get("prompt", ""))
        for recording in FOLDER.glob("*.jsonl")
        for answer in map(json.loads, recording.read_text().splitlines()[1:])
    ]
    assert sum(map(bool, prompts)) >= len(RESULTS)
    for name in ("BabyAI", "MiniGrid", "## Task", *LEVELS):
        assert not [prompt for prompt in prompts if re.search(rf"\b{name}\b", prompt)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("babyai")


def demonstrations(level: str, folder: Path) -> tuple[Demonstrations, Demonstrations]:
    """The level's training set, plain and scrambled."""
    name = "GoToRedBallNoDists" if level == "GoToRedBallNoDist" else level
    plain = folder / level / "plain"
    plain.mkdir(parents=True)
    for role, policy, seed in (("expert", "bot", FIRST), ("negative", "random", FIRST + 250_000)):
        save(collect(f"BabyAI-{name}-v0", policy, TRAIN, role, seed=seed, alarm_s=5.0), plain / f"{role}.parquet")
    scramble([plain], folder / level / "scrambled", 0)
    return load([plain]), load([folder / level / "scrambled"])


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_a_recorded_run_replays_exactly(level: str, folder: Path) -> None:
    for variant, demos in zip(("plain", "scrambled"), demonstrations(level, folder), strict=True):
        recording = FOLDER / f"base-{level}-{variant}.jsonl"
        run = start(recorded_config(recording), folder / f"{level}-{variant}", Parts(demonstrations=demos))
        expected = RESULTS[f"{level}-{variant}"]
        assert run.best.program.id == expected["program"]
        assert run.best.fitness == pytest.approx(expected["fitness"], abs=1e-9)
        with opened(run.folder) as (store, _):
            assert len(list(store.proposals())) == expected["answers"]


def test_a_recorded_cleaning_finds_the_goal_states_that_are_known(tmp_path: Path) -> None:
    """Scrambled GoToObj, whose experts walk back once they are there: goal states 4, 4, 3 and 8 of 6, 6, 5 and 14."""
    demos = load([FOLDER / "clean-GoToObj-scrambled.parquet"])
    recording = FOLDER / "clean-GoToObj-scrambled.jsonl"
    run = start(recorded_config(recording), tmp_path / "run", Parts(demonstrations=demos))
    experts = demos.select(role="expert")
    assert [len(expert.trajectory.states) for expert in experts] == [6, 6, 5, 14]
    with opened(run.folder) as (store, _):
        found = {answer.digest: answer.indices for answer in store.goals()}
        assert [found[expert.trajectory.digest] for expert in experts] == [(4,), (4,), (3,), (8,)]
    assert run.best.program.id == "5e2a7507b9234afa"
