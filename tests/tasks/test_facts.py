"""Facts about the environments of tasks, which prompts tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("gymnasium", reason="grace-irl[rl] is not installed")

from grace_irl.search.protocol import Request
from grace_irl.tasks.facts import facts_of
from grace_irl.tasks.task import Task
from tests.tasks.test_operators import prompter
from tests.tasks.test_policy_evaluator import TASK


@pytest.mark.parametrize(
    ("task", "states", "limit"),
    [
        (TASK, "A state is a numpy array of float64 with shape (4,). action is a whole number from 0 to 1.", 500),
        (replace(TASK, sees="state", max_steps=90), "A state is a numpy array of float64 with shape (4,).", 90),
        (
            replace(TASK, env="Pendulum-v1"),
            "shape (3,). action is a numpy array of float64 with shape (1,), from -2 to 2.",
            200,
        ),
        (
            replace(TASK, env="MiniGrid-Empty-5x5-v0"),
            "Sizes (h, w) seen so far: 5 x 5; others may come. action is a whole number from 0 to 6.",
            100,
        ),
    ],
)
def test_a_prompt_says_what_states_actions_and_episodes_are(task: Task, states: str, limit: int) -> None:
    facts = facts_of(task)
    assert facts.states.endswith(states)
    system = prompter(task).write(Request(0, "initialise", (), 0), []).system
    assert f"\n{facts.states}\n" in system
    assert f"environment steps. An episode has at most {limit} steps." in system


def test_a_prompt_has_figures_of_random_episodes() -> None:
    prompt = prompter(replace(TASK, fields=("x", "speed", "angle", "turn"))).write(Request(0, "initialise", (), 0), [])
    lines = prompt.user.partition("# Random actions\n")[2].partition("\n\n")[0].splitlines()
    assert lines[0].startswith("8 episodes of ")
    assert sorted(line.partition("]")[0] for line in lines[2:]) == ["[0", "[1", "[2", "[3"]
    assert any(line.startswith("[2] angle: ") for line in lines)


def test_lengths_of_episodes_that_are_cut_are_not_told() -> None:
    lines = facts_of(replace(TASK, env="Acrobot-v1")).random.splitlines()
    assert lines[0] == "8 episodes, of which at most 199 steps are read; the last states are the last ones read."


def test_a_prompt_has_the_steps_that_ppo_takes() -> None:
    """PPO learns in whole rollouts."""
    short = replace(TASK, steps=100)
    assert "A training has 128 environment steps." in prompter(short).write(Request(0, "plan", (), 0), []).system
