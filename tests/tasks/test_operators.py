"""Prompts of methods in which trained policies judge programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from grace_irl.demos.labels import Labelled, Problem, positive_states
from grace_irl.demos.trajectory import Demonstration, Metadata, Role, Trajectory
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.methods.registry import METHODS
from grace_irl.propose.briefing import PromptBudget
from grace_irl.propose.material import Workbench
from grace_irl.propose.prompter import Prompter, PromptSettings
from grace_irl.propose.protocol import Parent, Prompt, Step
from grace_irl.runs.config import resolve
from grace_irl.search.protocol import Request, Result
from grace_irl.tasks.facts import facts_of
from grace_irl.tasks.operators import ASKED, PLAN, operators
from grace_irl.tasks.task import Task
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.tasks.test_policy_evaluator import TASK, UP

FAILED = Evaluation("runtime", "IndexError: index 9 is out of bounds", "Traceback (most recent call last):\n  line 7")
TIPS = "How to read the results"


def prompter(task: Task, items: Sequence[Labelled] = (), budget: PromptBudget = PromptBudget()) -> Prompter:
    problem = Problem(Metadata("vector"), "last", tuple(items))
    settings = PromptSettings(budget, operators=operators(task, facts_of(task)))
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
    assert ("not only at the action" in prompt.system) == (sees == "transition")
    assert "demonstrations" not in prompt.system + prompt.user
    assert "abs(float(next_state[2]))" in prompt.user
    assert "IndexError: index 9 is out of bounds" in prompt.user
    assert "line 7" in prompt.user
    assert "cannot be used" in prompt.user
    assert TIPS not in prompt.user


DESIGNS = [name for name in ASKED if name not in ("initialise", "plan")]


@pytest.mark.parametrize("operator", DESIGNS)
def test_a_design_shows_parents_then_ancestors_with_results_and_ends_with_its_request(operator: str) -> None:
    numbers = (0.25, 0.5, 0.75)  # of two parents and an ancestor
    known = []
    for number in numbers:
        program = InProcessSandbox().inspect(UP).program(UP.replace("abs(float", f"{number} * abs(float"))
        known.append(Parent(replace(program, id=f"p{number}"), Evaluation("ok", score=100 * number)))
    request = Request(7, operator, ("p0.25", "p0.5"), 0, ancestors=("p0.75",))
    user = prompter(TASK).write(request, known).user
    places = [user.index(text) for n in numbers for text in (f"{n} * abs(float", f"\nScore {100 * n:g}\n")]
    assert places == sorted(places)
    assert [line for line in user.splitlines() if line.startswith("# Reward")] == [
        *("# Reward 1", "# Reward 2", "# Reward 3")
    ]
    assert user.endswith(f"# Your task\n{ASKED[operator]}")


def test_each_design_asks_for_something_else() -> None:
    assert len(set(ASKED.values())) == len(ASKED)


def test_a_plan_shows_the_programs_whose_components_it_must_not_repeat() -> None:
    writer, parent = prompter(TASK), replace(failed(), evaluation=Evaluation("ok", score=2.0))
    first = writer.write(Request(0, "plan"), [])
    later = writer.write(Request(4, "plan", ancestors=("a",)), [parent])
    assert UP.strip() not in first.user
    assert UP.strip() in later.user
    for prompt in (first, later):
        assert prompt.user.endswith(PLAN)
        assert "ONE component that none of the programs above, if there are any, has" in prompt.user


def test_the_path_of_a_first_program_is_a_change_of_structure() -> None:
    good = replace(failed(), evaluation=Evaluation("ok", score=2.0))
    user = prompter(TASK).write(Request(0, "path", ("a",), 0), [good]).user
    assert user.endswith(ASKED["structure"])


def test_tips_on_results_stand_beside_results() -> None:
    writer, parent = prompter(TASK), failed()
    good = replace(parent, evaluation=Evaluation("ok", score=2.0))
    shown = writer.write(Request(0, "mutate", ("a",), 0), [good])
    tips = shown.user.split(TIPS)[1].split("# Your task")[0].strip().splitlines()
    for tip, words in zip(tips, ("stays nearly constant", "far larger than the others", "low or falls"), strict=True):
        assert words in tip
    helps = shown.system.split("# What helps\n")[1].split("\n\n")[0].splitlines()
    said = ("terms_fn", "named temperature", "like sizes", "at every step", "that a step reaches", "by waiting")
    for tip, words in zip(helps, said, strict=True):
        assert words in tip
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
    points = [{"score": 0.5, "length": 20.0, "paid": None}, {"score": 1.5, "length": 12.25, "paid": 0.0}]
    evidence = {
        "policy": {"runs": [{"seed": 0, "curve": points}]},
        "components": {"tiny": {"values": [0.00004, None, 0.000052], "max": 0.000052, "mean": 0.000046, "min": 4e-5}},
    }
    found = Evaluation("ok", score=1.5, metrics={"success": 0.25}, evidence=evidence)
    prompt = prompter(TASK).write(Request(0, "mutate", ("a",), 0), [replace(failed(), evaluation=found)])
    for line in (
        "Score 1.5",
        "score along training: 0.5 1.5; max 1.5, mean 1, min 0.5",
        "episode length along training: 20 12.2; max 20, mean 16.1, min 12.2",
        "reward of an episode along training: - 0; max 0, mean 0, min 0",
        "success: 0.25",
        "components, each the mean per step since the evaluation before:",
        "tiny: 4e-05 - 5.2e-05; max 5.2e-05, mean 4.6e-05, min 4e-05",
    ):
        assert f"\n{line}\n" in f"{prompt.user}\n", line


def test_a_long_course_has_ten_values() -> None:
    points = [{"score": float(n), "length": 5.0, "paid": None} for n in range(50)]
    found = Evaluation("ok", score=49.0, evidence={"policy": {"runs": [{"seed": 0, "curve": points}]}})
    prompt = prompter(TASK).write(Request(0, "mutate", ("a",), 0), [replace(failed(), evaluation=found)])
    assert "\nscore along training: 0 5 11 16 22 27 33 38 44 49; max 49, mean 24.5, min 0\n" in prompt.user


@pytest.mark.parametrize("shows", [False, True])
def test_a_prompt_says_whether_programs_see_parts_of_the_score(shows: bool) -> None:
    prompt = prompter(replace(TASK, shows_score=shows)).write(Request(0, "initialise", (), 0), [])
    assert ("Programs can compute parts of it from what they see." in prompt.system) == shows


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


def episode(role: Role, rows: Sequence[float], instruction: str = "") -> Labelled:
    """An episode of CartPole in which only the angle, the third number, changes."""
    states = np.array([[0.5, 0.0, angle, 0.0] for angle in rows])
    found = Demonstration(Trajectory(states, actions=np.zeros(len(rows) - 1), extra_info=instruction), role)
    return Labelled(found, positive_states(found, "last"))


def demonstrations(items: Sequence[Labelled], budget: PromptBudget = PromptBudget()) -> list[str]:
    """The lines about demonstrations in a prompt."""
    names = replace(TASK, fields=("x", "speed", "angle", "turn"))
    prompt = prompter(names, items, budget).write(Request(0, "initialise", (), 0), [])
    return prompt.user.partition("# Demonstrations\n")[2].partition("\n\n# Your task")[0].splitlines()


HEAD = ["Constant in all data: [0]=0.5, [1]=0, [3]=0"]


def test_a_prompt_has_figures_of_experts_against_negatives_whatever_states_are_positive() -> None:
    experts = [episode("expert", [1.0, 1.0, 3.0]), episode("expert", [1.0, 3.0])]
    counted, other, *lines = demonstrations([*experts, episode("negative", [5.0, 7.0])])
    assert counted == "2 expert episodes of 1 to 2 steps."
    assert other == "1 negative episode of 1 step."
    assert lines[:1] == HEAD
    assert lines[1].startswith("Statistics of the states of experts against those of negatives")
    assert lines[2].startswith("[2] angle: 1.8, 0.98 (1 1 3) | 6, 1 (5.1 6 6.9) | -4.2")


@pytest.mark.parametrize("role", ["expert", "negative"])
def test_a_prompt_compares_all_states_of_one_role_with_the_last_ones(role: Role) -> None:
    counted, *lines = demonstrations([episode(role, [1.0, 1.0, 3.0]), episode(role, [1.0, 1.0, 5.0])])
    assert counted == f"2 {role} episodes of 2 steps."
    assert lines[:1] == HEAD
    assert lines[1].startswith("Statistics of all states against the last ones of episodes")
    assert lines[2].startswith("[2] angle: 2, 1.53 (1 1 4.5) | 4, 1 (3.1 4 4.9) |")


def test_a_prompt_lists_instructions_unless_it_is_to_be_short() -> None:
    items = [episode("expert", [1.0, 2.0], "Go up"), episode("expert", [1.0, 2.0], "Go up")]
    assert demonstrations(items)[-2:] == ["Their instructions:", "'Go up' x 2"]
    assert "Go up" not in "".join(demonstrations(items, PromptBudget(scale=0.25)))


def test_without_a_number_that_changes_there_is_no_table() -> None:
    assert demonstrations([episode("expert", [1.0, 1.0])])[1:] == ["Constant in all data: [0]=0.5, [1]=0, [2]=1, [3]=0"]
