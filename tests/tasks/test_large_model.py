"""Recorded runs of a large model over tasks, replayed with their recorded scores, up to the same winner.

Nothing is trained. The answers and scores are real (`tests/recordings/README.md`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")

import grace_irl
from grace_irl.errors import InputError
from grace_irl.runs.run import opened
from grace_irl.runs.store import Store

RECORDINGS = Path(__file__).resolve().parent.parent / "recordings" / "large_model_policies"
FOUND: dict[str, dict[str, Any]] = json.loads((RECORDINGS / "results.json").read_text(encoding="utf-8"))


def notes(store: Store) -> list[dict[str, str]]:
    return [dict(told.notes) for told in store.told().values()]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FOUND))
def test_a_replay_finds_the_same_winner(name: str, tmp_path: Path) -> None:
    known = FOUND[name]
    method, task = known["method"], known["task"]
    if task == "flappy-bird":
        pytest.importorskip("flappy_bird_gymnasium", reason="flappy-bird-gymnasium is not installed")
    recording = RECORDINGS / f"{name}.jsonl"
    run = grace_irl.fit(replay=recording, task=task, recorded_scores=True, out=tmp_path / "run")
    assert (run.method, run.task) == (method, task)
    assert (run.best.program.id, run.best.fitness, run.programs) == (known["winner"], known["score"], known["programs"])
    assert not list((tmp_path / "run").glob("trainings/*/*"))
    assert "not here: scores of recording" in run.reward_path.read_text(encoding="utf-8")
    assert not any("--validation" in line for line in run.notes)  # no data are set aside beside a task
    with opened(tmp_path / "run") as (store, _):
        said = notes(store)
    if method == "rf-agent":  # each program that runs has a description and an opinion, and the opinion has a number
        assert sum({"align", "verify"} <= each.keys() for each in said) >= known["programs"] // 2
        assert all("[" in each["verify"] for each in said if "verify" in each)


@pytest.mark.slow
def test_another_method_may_take_the_recorded_answers(tmp_path: Path) -> None:
    """Settings of the recorded method are no words of the user."""
    told: list[str] = []
    recording, known = RECORDINGS / "eureka-reacher.jsonl", FOUND["eureka-reacher"]
    run = grace_irl.fit(
        replay=recording, task="reacher", method="random", recorded_scores=True, out=tmp_path / "run", note=told.append
    )
    assert (run.best.program.id, run.programs) == (known["winner"], known["programs"])
    assert any("searches otherwise" in line and "method was 'eureka' and is 'random'" in line for line in told)
    for text in ("eureka.rounds=2", "eureka.rounds=3", "eureka=3"):
        with pytest.raises(InputError, match="'eureka' has no effect with method 'random'"):
            grace_irl.fit(replay=recording, task="reacher", method="random", sets=[text], out=tmp_path / "x")
    (tmp_path / "own.toml").write_text("[eureka]\nrounds = 3\n")  # what the recorded run had
    with pytest.raises(InputError, match="'eureka' has no effect with method 'random'"):
        grace_irl.fit(
            replay=recording, task="reacher", method="random", config=tmp_path / "own.toml", out=tmp_path / "x"
        )


def test_every_recording_has_its_result() -> None:
    assert {path.stem for path in RECORDINGS.glob("*.jsonl")} == FOUND.keys()
