"""A task on a pole that trains in a second, and small settings of every method that trains policies."""

from __future__ import annotations

from pathlib import Path

from grace_irl.runs.run import opened

TASK = """
env = "CartPole-v1"
text = "A cart shall keep a pole upright."
score = "tests.tasks.scores:length"
scored = "steps until the pole falls"
fields = ["x", "velocity", "angle", "angular velocity"]
[training]
steps = 128
evaluations = 2
episodes = 2
[ppo]
n_envs = 2
n_steps = 32
"""
PROGRAM = """class Reward:
    def reward_fn(self, state, action, next_state):
        self.up = {weight} * (1.0 - abs(float(next_state[2])))
        return self.up

    def terms_fn(self, state):
        return {{"up": self.up}}
"""
SMALL = {
    "random": ["--programs", "6"],
    "eureka": ["--rounds", "2", "--round-programs", "2"],
    "revolve": ["--programs", "5", "--islands", "1", "--island-programs", "4"],
    "rf-agent": ["--programs", "9", "--first-programs", "2", "--actions", "1,1,1,1,1"],
    "forge": ["--first-programs", "2", "--rounds", "1", "--pairs", "2", "--pool-programs", "2"],
    "policy-evolution": ["--population", "2", "--elite", "1", "--generations", "1"],
    "map-elites": ["--programs", "4", "--first-programs", "2"],
}


def stored(folder: Path) -> tuple[list[tuple[str, float]], str]:
    """The programs with their scores, in order, and the best one."""
    with opened(folder) as (store, _):
        records = store.records()
        return [(name, each.evaluation.score) for name, each in records.items()], store.meta("best")
