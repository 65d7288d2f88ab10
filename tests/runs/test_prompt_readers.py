"""Recorded first answers of a large model to six prompts: each replays to the same program, which fits its data.

`benchmarks/prompt_readers.py` made recordings, training data and results.json.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from grace_irl.demos import load
from grace_irl.evaluate.separation import Separation
from grace_irl.runs.caller import Parts
from grace_irl.runs.fit import start
from grace_irl.runs.recording import recorded_config

FOLDER = Path(__file__).parents[1] / "recordings" / "prompt_readers"
RESULTS = {entry["case"]: entry for entry in json.loads((FOLDER / "results.json").read_text())}


@pytest.mark.parametrize("case", RESULTS)
def test_a_first_answer_replays_to_the_program_that_was_judged(case: str, tmp_path: Path) -> None:
    demonstrations = load([FOLDER / f"{case}.parquet"])
    assert [each.role for each in demonstrations].count("expert") == 8
    config = recorded_config(FOLDER / f"{case}.jsonl")
    run = start(config, tmp_path / "run", Parts(demonstrations=demonstrations))
    assert run.best.program.id == RESULTS[case]["program"]
    separation = Separation.of(run.best.evaluation)
    assert separation is not None
    assert separation.train.separated


def test_no_prompt_names_a_level() -> None:
    for case in RESULTS:
        (answer,) = map(json.loads, (FOLDER / f"{case}.jsonl").read_text().splitlines()[1:])
        assert len(answer["prompt"]) == RESULTS[case]["prompt"]
        assert not re.search(rf"BabyAI|MiniGrid|{case}", answer["prompt"], re.IGNORECASE)
