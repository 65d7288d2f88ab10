"""Prompts of methods in which trained policies judge programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grace_irl.demos.labels import Problem
from grace_irl.demos.trajectory import Metadata
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.methods.registry import METHODS
from grace_irl.propose.material import Workbench
from grace_irl.propose.prompter import Prompter, PromptSettings
from grace_irl.propose.protocol import Parent, Prompt, Step
from grace_irl.runs.config import resolve
from grace_irl.search.protocol import Request, Result
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


def test_an_opinion_is_asked_for_about_the_program_and_its_description() -> None:
    writer, parent = prompter(TASK), failed()
    good = replace(parent, evaluation=Evaluation("ok", score=2.0), notes={"align": "It pays for\nan upright pole."})
    prompt = writer.write(Request(0, "verify", ("a",), 0), [good])
    assert UP.strip() in prompt.user
    assert "Design idea: It pays for an upright pole." in prompt.user
    assert "Score 2" not in prompt.user  # an opinion is not to know the result
    assert "class Reward:\n    def reward_fn" not in prompt.system


def test_results_have_the_course_of_score_success_and_components() -> None:
    """A small component is not written as 0.00."""
    points = [{"score": 0.5, "length": 20.0}, {"score": 1.5, "length": 12.25}]
    evidence = {
        "policy": {"runs": [{"seed": 0, "curve": points}]},
        "components": {"tiny": {"values": [0.00004, None, 0.000052], "max": 0.000052, "mean": 0.000046, "min": 4e-5}},
    }
    found = Evaluation("ok", score=1.5, metrics={"success": 0.25}, evidence=evidence)
    prompt = prompter(TASK).write(Request(0, "mutate", ("a",), 0), [replace(failed(), evaluation=found)])
    for line in (
        "Score 1.5",
        "score along training: 0.5 1.5",
        "episode length along training: 20 12.2",
        "success: 0.25",
        "tiny: 4e-05 - 5.2e-05; max 5.2e-05, mean 4.6e-05, min 4e-05",
    ):
        assert f"\n{line}\n" in f"{prompt.user}\n", line


@pytest.mark.parametrize("shows", [False, True])
def test_a_prompt_says_whether_programs_see_parts_of_the_score(shows: bool) -> None:
    prompt = prompter(replace(TASK, shows_score=shows)).write(Request(0, "initialise", (), 0), [])
    assert ("Programs see no part of it." in prompt.system) == (not shows)


def test_repairs_by_rf_agent_stop() -> None:
    """A program that fails for ever gets as many repairs as the settings allow, and no opinions."""
    follow = METHODS["rf-agent"].following(resolve(sets=("method=rf-agent", "model.repairs=3")))
    request, parent = Request(0, "initialise"), failed()
    result, done = Result(request, parent.program, FAILED), list[Step]()
    while (step := follow(request, result, done)) is not None:
        done.append(step)
        assert len(done) < 10
    assert [each.operator for each in done] == ["repair"] * 3
    good = replace(result, evaluation=Evaluation("ok", score=2.0))
    while (step := follow(request, good, done)) is not None:
        done.append(step)
        assert len(done) < 10
    assert [each.operator for each in done] == ["repair"] * 3 + ["align", "verify"]
