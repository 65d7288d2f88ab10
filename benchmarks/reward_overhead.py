"""The cost of a recovered reward in training: steps per second of PPO and of bare stepping, three rewards in one run.

In GoToObj and Hopper the environment's own reward, a recovered one that runs in this process (trusted) and the same one
in the sandbox take turns, a few rollouts each, over and over; the figure is the median over turns of the ratio to the
environment's own reward in the same turn, so that other work on the machine slows all three alike. Training is rollouts
and updates, with the settings that `train` uses. The rewards are recovered by the synthesiser: GoToObj's from the set
that ships, Hopper's from the real trajectories of `../shared/data/mujoco`.

    python benchmarks/reward_overhead.py                # about 3 minutes on 2 free cores

It exits with 1 where training on a trusted reward runs at less than 0.9 of the native steps per second, or training on
a sandboxed one at less than 0.95 of the trusted ones.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mujoco_recovery import DATA, halves

import grace_irl
from grace_irl.demos import load
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.rl.environments import make
from grace_irl.rl.hyperparameters import hyperparameters
from grace_irl.rl.learning import ProgramPay, learning_venv, make_learner, normalised, true_pay
from grace_irl.rl.observed import observed
from grace_irl.rl.settling import settling

GOAL, SANDBOXED_GOAL = 0.9, 0.95
KINDS = ("native", "trusted", "sandboxed")
SHIPPED = Path(__file__).resolve().parents[1] / "datasets" / "babyai-go-to-obj"
ROLLOUTS = {"BabyAI-GoToObj-v0": 1, "Hopper-v5": 4}
"""Rollouts of PPO in one turn: about 2,000 steps."""


def demonstrations(environment: str) -> Demonstrations:
    """Demonstrations from which the environment's reward is recovered."""
    return load([SHIPPED]) if environment.startswith("BabyAI") else halves("Hopper", 0)[0]


@dataclass
class Speeds:
    """Steps per second of every turn, by kind of reward: of wall time, and of this process's CPU time."""

    wall: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    cpu: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    def time(self, kind: str, steps: int, call: Callable[[], Any]) -> None:
        """One turn."""
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        self.wall[kind].append(steps / (time.perf_counter() - wall))
        self.cpu[kind].append(steps / (time.process_time() - cpu))


def ratio(speeds: dict[str, list[float]], kind: str) -> float:
    """Median over turns of the ratio to the native reward."""
    return float(np.median(np.array(speeds[kind]) / np.array(speeds["native"])))


def measure(environment: str, path: Path, turns: int) -> tuple[Speeds, Speeds]:
    """Speeds of training and of bare stepping."""
    first = observed(lambda: make(environment))
    # A learning rate of 0 costs what any other does, and keeps the three policies, and so their episodes, the same.
    settings = replace(hyperparameters(environment, first.view.metadata.kind), learning_rate=0.0)
    training, stepping = Speeds(), Speeds()
    rng = np.random.default_rng(0)
    with ExitStack() as stack:
        parts: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {}
        chunk = ROLLOUTS[environment] * settings.rollout
        first.action_space.seed(0)
        shape = (chunk // settings.n_envs, settings.n_envs)
        actions = np.array([first.action_space.sample() for _ in range(chunk)])
        actions = actions.reshape(*shape, *actions.shape[1:])
        for kind in KINDS:
            pay = (
                true_pay
                if kind == "native"
                else ProgramPay(grace_irl.load_reward(path, trust=kind == "trusted"), "raw")
            )
            paid, bare = (
                stack.enter_context(
                    learning_venv(
                        lambda: observed(lambda: make(environment), first.observer),
                        settings.n_envs,
                        0,
                        pay,
                        settings.gamma,
                    )
                )
                for _ in range(2)
            )
            venv = normalised(paid, settings.gamma, norm_reward=settings.norm_reward)
            learner = make_learner(first.observer, settings, device="cpu")(venv, 0)

            def learn(learner: Any = learner, callback: Any = settling(learner, paid, venv)) -> None:
                torch.manual_seed(0)
                learner.env.seed(0)
                learner._last_obs = None
                learner.learn(chunk, callback=callback, reset_num_timesteps=False)

            def step(venv: Any = bare) -> None:
                venv.seed(0)
                venv.reset()
                for each in actions:
                    venv.step(each)

            parts[kind] = (learn, step)
            learn()
            step()
        for _ in range(turns):
            for kind in rng.permutation(KINDS).tolist():
                for found, call in zip((training, stepping), parts[kind], strict=True):
                    found.time(kind, chunk, call)
    return training, stepping


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", default=",".join(ROLLOUTS), help="comma-separated ids")
    parser.add_argument("--turns", type=int, default=15, help="of each reward (default 15)")
    arguments = parser.parse_args()
    if "Hopper-v5" in arguments.environments and not DATA.exists():
        raise SystemExit(f"{DATA}: not found; expected the real MuJoCo trajectories there, or --environments without")
    torch.set_num_threads(1)
    missed = []
    print(
        "steps per second, medians of turns; ratio: median of the ratios to native, by wall and by this process's CPU"
    )
    print(f"{'':28} {'native':>8} {'trusted':>8} {'ratio':>6} {'CPU':>6} {'sandboxed':>9} {'ratio':>6} {'CPU':>6}")
    for environment in arguments.environments.split(","):
        with tempfile.TemporaryDirectory() as folder:
            data = demonstrations(environment)
            run = grace_irl.fit(data, out=Path(folder) / "run", held_out=0.0, max_seconds=60.0)
            training, stepping = measure(environment, run.reward_path, arguments.turns)
        for what, found in (("training", training), ("stepping", stepping)):
            cells = [f"{environment + ', ' + what:28} {np.median(found.wall['native']):8.0f}"]
            for kind, width in (("trusted", 8), ("sandboxed", 9)):
                wall, cpu = ratio(found.wall, kind), ratio(found.cpu, kind)
                cells.append(f"{np.median(found.wall[kind]):{width}.0f} {wall:6.3f} {cpu:6.3f}")
            print(" ".join(cells), flush=True)
        if ratio(training.wall, "trusted") < GOAL:
            missed.append(f"{environment}, trusted")
        if ratio(training.wall, "sandboxed") < SANDBOXED_GOAL * ratio(training.wall, "trusted"):
            missed.append(f"{environment}, sandboxed")
    print(
        f"goals in training, trusted at least {GOAL} of native and sandboxed {SANDBOXED_GOAL} of trusted: "
        f"{'missed in ' + '; '.join(missed) if missed else 'met'}"
    )
    if missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
