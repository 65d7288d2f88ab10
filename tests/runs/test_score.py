"""Scores of reward files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grace_irl.demos.trajectory import Split
from grace_irl.runs.score import score
from tests.fakes.data import THRESHOLD, vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox

SOURCE = f"""class Reward:
    def reward_fn(self, state):
        return state[1] - {THRESHOLD}
"""


@pytest.mark.parametrize("split", [None, "held_out"])
def test_log_pi_is_estimated_from_all_demonstrations_of_a_score(split: Split | None, tmp_path: Path) -> None:
    (path := tmp_path / "reward.py").write_text(f"{SOURCE}\n\nSCALE = 3.0\nOFFSET = 0.5\n")
    whole = vector_set(actions=True)
    given = replace(whole, items=tuple(replace(item, split=split) for item in whole.items))
    with InProcessSandbox() as sandbox:
        uniform, constant = (score(path, given, choice=name, sandbox=sandbox) for name in ("uniform", "constant"))
    assert uniform.metrics == constant.metrics  # the offset of the file holds the mean of log pi
