"""Texts about trained policies, from evidence that somebody else may have written."""

from __future__ import annotations

from typing import Any

import pytest

from grace_irl.cli.show import remarks_of
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.methods.policy_account import PolicyAccount, panels
from grace_irl.programs.program import Program
from grace_irl.runs.record import Record, candidate

POINT = {"steps": 64, "score": 2.0, "length": 9.5, "mean": 1.0}
SOUND = {"task": "pole", "checkpoint": "best", "random": 1.5, "runs": [{"seed": 3, "curve": [POINT]}]}
COURSE = {"values": [0.5, None], "max": 0.5, "mean": 0.5, "min": 0.5}
WRONG: list[Any] = [
    [1],
    "abc",
    {**SOUND, "runs": "abc"},
    {**SOUND, "runs": [{"seed": 3}]},
    {**SOUND, "runs": [{"seed": 3, "curve": [{**POINT, "score": None}]}]},
    {**SOUND, "runs": [{"seed": 3, "curve": [{**POINT, "score": float("nan")}]}]},
    {**SOUND, "random": "many"},
    {**SOUND, "task": 7},
]


def record(evidence: dict[str, Any], score: float = 2.0, name: str = "0" * 16) -> Record:
    return Record(Program(name, "class Reward: ...", 9), Evaluation("ok", score=score, evidence=evidence), 0)


def texts(evidence: dict[str, Any]) -> str:
    found, account = record(evidence), PolicyAccount()
    said = [account.verdict(found.evaluation), *account.remarks(found.evaluation)]
    said += [f"{name}: {value}" for name, value in account.facts(found.evaluation, {"policy.task": "pole"})]
    return "\n".join([*said, *(str(panel) for panel in panels(candidate(found), ()))])


def test_trainings_and_components_are_told() -> None:
    said = texts({"policy": SOUND, "components": {"upright": COURSE}})
    for part in ("scores 2 on task pole (best evaluation, one training", "random actions: 1.5", "upright", "0.5 -"):
        assert part in said


@pytest.mark.parametrize("policy", WRONG, ids=str)
def test_evidence_of_another_form_is_left_out(policy: Any) -> None:
    said = texts({"policy": policy, "components": {"upright": COURSE}})
    assert "The evidence of its trainings cannot be read." in said
    assert "upright" in said


@pytest.mark.parametrize("components", [[1], {"a": "x"}, {"a": {"values": "x"}}, {"a": {"max": 1.0}}], ids=str)
def test_components_of_another_form_are_left_out(components: Any) -> None:
    assert "Mean of each component" not in texts({"policy": SOUND, "components": components})


def test_a_remark_on_some_programs_names_them() -> None:
    account = PolicyAccount()
    good, bad = (record({"policy": SOUND}, score, name) for score, name in ((2.0, "a" * 16), (1.0, "b" * 16)))
    chance = "That is no better than random actions, which score 1.5."
    assert remarks_of([good], account) == []
    assert remarks_of([good, bad], account) == [f"{'b' * 16}: {chance}"]
    assert remarks_of([bad], account) == [chance]
