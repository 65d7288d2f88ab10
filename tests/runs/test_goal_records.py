"""The label rule "goal" over episodes of a goal environment that the caller has in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import grace_irl
from grace_irl.runs.run import opened
from tests.propose.client.server import ChatServer
from tests.runs.goal_world import CLEANING

STEPS, NEAR = 9, 0.05
PROGRAM = f"""class Reward:
    def reward_fn(self, state):
        return float(np.abs(state["achieved_goal"] - state["desired_goal"]).max() < {NEAR})
"""


def episode(rng: np.random.Generator, ends: float) -> dict[str, np.ndarray]:
    """A straight way in the plane from a place to the goal, of which the share `ends` is gone at the end."""
    start, goal = rng.uniform(-1, 1, (2, 2))
    achieved = start + np.linspace(0, ends, STEPS)[:, None] * (goal - start)
    return {
        "observation": rng.normal(size=(STEPS, 3)),
        "achieved_goal": achieved,
        "desired_goal": np.tile(goal, (STEPS, 1)),
    }


def test_a_model_reads_both_goals_and_marks_the_states(tmp_path: Path) -> None:
    rng, asked = np.random.default_rng(0), []

    def answer(prompt: str) -> str:
        if CLEANING not in prompt:
            return f"```python\nimport numpy as np\n\n\n{PROGRAM}```\n"
        asked.append(prompt)
        return f"It reaches its goal at last.\n\ntrajectory 1: {STEPS}"

    with ChatServer(answer=answer) as server:
        run = grace_irl.fit(
            experts=[episode(rng, 1.0) for _ in range(4)],
            negatives=[episode(rng, 0.5) for _ in range(4)],
            out=tmp_path / "run",
            label="goal",
            held_out=0.0,
            llm_url=server.url,
            answer_format="code",
            population=2,
            generations=0,
        )
    assert len(asked) == 4
    assert all("1: achieved_goal=[" in prompt and "] desired_goal=[" in prompt for prompt in asked)
    with opened(run.folder) as (store, _):
        rows = store.trajectories()
    assert [row.positives for row in rows] == [1] * 4 + [0] * 4
    assert (run.best.train.experts, run.best.train.negatives) == (4, 4 * (STEPS - 1) + 4 * STEPS)
    assert run.best.train.separated
    assert run.best.train.episodes.early.value == 0
