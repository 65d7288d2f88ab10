"""A search for settings that make AIRL a fair opponent on locomotion: its own and others, on the comparison's experts.

AIRL is held against GRACE, so it gets what was looked for here. Prints the true return and the length of episodes
(likeliest actions) on the way, for each of the settings:

    python benchmarks/airl_settings.py                            # Hopper, 150,000 steps of each; 15 minutes on a core
    python benchmarks/airl_settings.py --bodies HalfCheetah --settings default --steps 500000
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from mujoco_comparison import demonstrations

from grace_irl.compare.contest import Contest
from grace_irl.compare.settings import Settings, comparison_of
from grace_irl.rl.evaluation import evaluate
from grace_irl.rl.learning import one_thread
from grace_irl.rl.method import Policy, PolicyProblem, load_method
from grace_irl.runs.config import resolve

ZOO = {"steps_per_disc_update": 512, "demo_batch_size": 1024, "buffer_steps": 8192}
"""imitation 1.0's tuned ones for seals/Hopper, with half their batch: 16 updates for 8,192 steps."""
OFTEN = {"steps_per_disc_update": 20, "demo_batch_size": 256, "disc_learning_rate": 1e-2}
"""Settings of a centred reward on CartPole (docs/baselines.md)."""
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "centred": {"pays": "centred"},
    "own reward": {"pays": "reward"},
    "imitation's, centred": {**ZOO, "pays": "centred"},
    "often": OFTEN,
    "often, centred": {**OFTEN, "pays": "centred"},
}


def look(problem: PolicyProblem, label: str, every: int) -> Callable[[int, Policy], None]:
    """A `Watch` that prints how a policy does, at regular steps."""
    due = every

    def watch(steps: int, policy: Policy) -> None:
        nonlocal due
        if steps >= due:
            due += every
            point = evaluate(policy, problem.make_env, 10, 1_000, deterministic=True).point(steps)
            print(f"{label}: {steps:9,} steps, return {point.mean:6.0f}, length {point.length:5.0f}", flush=True)

    return watch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bodies", default="Hopper", help="comma-separated: Hopper, HalfCheetah")
    parser.add_argument("--settings", default=";".join(SETTINGS), help="names, with semicolons between them")
    parser.add_argument("--steps", type=int, default=150_000, help="of each training (default 150,000)")
    parser.add_argument("--looks", type=int, default=5, help="evaluations of 10 episodes on the way (default 5)")
    parser.add_argument("--seed", type=int, default=0, help="of each training (default 0)")
    parser.add_argument("--out", type=Path, default=Path("out/mujoco-comparison"), help="where demonstrations are kept")
    options = parser.parse_args()
    for body in options.bodies.split(","):
        demos = str(demonstrations(body, options.out / body))
        asked = comparison_of({"methods": ("airl",), "steps": options.steps})
        contest = Contest.of(Settings(asked, resolve(flags={"data.demos": (demos,), "data.held_out": 0.0})))
        for name in options.settings.split(";"):
            method = load_method("airl", **SETTINGS[name])
            told = ", ".join(f"{each.name} {getattr(method, each.name)}" for each in fields(method))
            print(f"{body}, {name}: {told}")
            problem = contest.problem(options.seed)
            with one_thread():
                method.train(problem, options.seed, look(problem, f"{body}, {name}", options.steps // options.looks))


if __name__ == "__main__":
    main()
