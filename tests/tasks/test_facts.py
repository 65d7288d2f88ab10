"""Facts about the environments of tasks, which prompts tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("gymnasium", reason="grace-irl[rl] is not installed")

from grace_irl.search.protocol import Request
from grace_irl.tasks.facts import facts_of
from grace_irl.tasks.task import Task
from tests.tasks.test_operators import prompter
from tests.tasks.test_policy_evaluator import TASK

MADE = """
import gymnasium
import numpy as np


class Lamp(gymnasium.Env):
    observation_space = {states}
    action_space = {actions}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {{}}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, bool(self.np_random.random() < 0.2), {{}}


make = Lamp
"""
"""An environment whose states say nothing."""


def lamp(folder: Path, states: str = "Box(-1, 1, (2,))", actions: str = "Discrete(2)") -> Task:
    spaces = {"states": f"gymnasium.spaces.{states}", "actions": f"gymnasium.spaces.{actions}"}
    (folder / "own.py").write_text(MADE.format(**spaces))
    return replace(TASK, env=f"{folder / 'own.py'}:make")


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


@pytest.mark.parametrize(
    ("space", "form"),
    [
        ("Box(-2, 0.5, (), np.float32)", "a number from -2 to 0.5."),
        ("Box(np.float32([0, -1]), np.float32([1, 1]))", "(2,), action[0] from 0 to 1, action[1] from -1 to 1."),
        ("MultiDiscrete([3, 2])", "(2,), whole numbers: action[0] from 0 to 2, action[1] from 0 to 1."),
        ("MultiDiscrete([3, 3])", "(2,), whole numbers from 0 to 2."),
        ("MultiBinary(4)", "(4,), whole numbers from 0 to 1."),
        ("Box(np.linspace(-2, -1, 20), np.ones(20), dtype=np.float64)", "(20,), from -2 to 1 at most."),
    ],
)
def test_a_prompt_tells_the_range_of_each_number_of_an_action(space: str, form: str, tmp_path: Path) -> None:
    end = f"action is {'a numpy array of float64 with shape ' if form.startswith('(') else ''}{form}"
    assert facts_of(lamp(tmp_path, actions=space)).states.endswith(end)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (replace(TASK, score="/somewhere/own.py:height"), "a number that the task's code computes"),
        (replace(TASK, score="info:coverage"), "the number 'coverage' that the environment reports"),
        (replace(TASK, score="/somewhere/own.py:height", scored="highest point"), "highest point"),
    ],
)
def test_a_prompt_names_no_file(task: Task, said: str) -> None:
    system = prompter(task).write(Request(0, "initialise", (), 0), []).system
    assert f"The score of an episode: {said}. Higher is better." in system
    assert "own.py" not in system


def test_pictures_of_random_episodes_are_no_experts(tmp_path: Path) -> None:
    found = facts_of(lamp(tmp_path, "Box(0, 255, (64, 64, 3), np.uint8)")).random
    assert "States: mean of each channel" in found
    assert "xpert" not in found
    assert "training" not in found


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
