"""Prompts of methods in which trained policies judge programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grace_irl.demos.labels import Problem
from grace_irl.demos.trajectory import Metadata
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.propose.material import Workbench
from grace_irl.propose.prompter import Prompter, PromptSettings
from grace_irl.propose.protocol import Parent, Prompt
from grace_irl.search.protocol import Request
from grace_irl.tasks.operators import operators
from grace_irl.tasks.task import Task
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.tasks.test_policy_evaluator import TASK, UP

FAILED = Evaluation("runtime", "IndexError: index 9 is out of bounds", "Traceback (most recent call last):\n  line 7")
TIPS = "How to read the results"


def prompter(task: Task) -> Prompter:
    problem = Problem(Metadata("vector", ("x", "speed", "angle", "turn")), "all", ())
    settings = PromptSettings(operators=operators(task))
    return Prompter(Workbench(problem, InProcessSandbox()), settings, "code")


def failed() -> Parent:
    program = InProcessSandbox().inspect(UP).program(UP)
    return Parent(program, FAILED)


@pytest.mark.parametrize(
    ("sees", "contract"), [("transition", "def reward_fn(self, state, action, next_state)"), ("state", "(self, state)")]
)
def test_a_repair_asks_for_the_program_that_the_task_needs(sees: str, contract: str) -> None:
    task = replace(TASK, sees=sees)  # type: ignore[arg-type]
    prompt: Prompt = prompter(task).repair(Request(3, "mutate"), failed())
    assert "Balance a pole." in prompt.system
    assert contract in prompt.system
    assert "def terms_fn" in prompt.system
    assert "demonstrations" not in prompt.system + prompt.user
    assert "abs(float(next_state[2]))" in prompt.user
    assert "IndexError: index 9 is out of bounds" in prompt.user
    assert "line 7" in prompt.user
    assert "cannot be used" in prompt.user
    assert TIPS not in prompt.user


def test_tips_on_results_stand_beside_results() -> None:
    writer, parent = prompter(TASK), failed()
    good = replace(parent, evaluation=Evaluation("ok", score=2.0))
    assert TIPS in writer.write(Request(0, "mutate", ("a",), 0), [good]).user
    for operator in ("align", "verify"):
        prompt = writer.write(Request(0, operator, ("a",), 0), [good])
        assert TIPS not in prompt.user
        assert "rite no program" in prompt.user
        assert "How to answer" not in prompt.system
    assert "How to answer" in writer.write(Request(0, "mutate", ("a",), 0), [good]).system
