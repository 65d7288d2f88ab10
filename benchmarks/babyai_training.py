"""Does a recovered reward teach? PPO on rewards recovered from 8 demonstrations, and on the true reward, side by side.

For each level and seed: 8 expert trajectories of the bot and 8 random ones, a reward fitted to them by the synthesiser,
then two policies trained with the same PPO, networks, seed and steps, one on each reward. Both are evaluated on fresh
episodes of the level, by its own success. The search for the reward sees the 16 trajectories and nothing else.

    python benchmarks/babyai_training.py                                  # GoToObj, 1 seed, 80,000 steps: 3 minutes
    python benchmarks/babyai_training.py --levels GoToObj,OpenRedDoor --seeds 3 --steps 300000

It prints a table, and exits with 1 where success on the recovered reward is more than 0.02 below PPO on the true one.
Each training is kept under --out, and a benchmark that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import get_args

import numpy as np
from babyai_recovery import LEVELS

import grace_irl
from grace_irl.atomic import write_atomically
from grace_irl.demos import load, save
from grace_irl.rewards.scale import FormChoice
from grace_irl.rl.collect import collect
from grace_irl.rl.curve import Point
from grace_irl.rl.environments import make
from grace_irl.rl.learning import ProgramPay
from grace_irl.rl.ppo import train

TRAJECTORIES = 8
MARGIN = 0.02
GOOD = 0.9


def recovered(environment: str, seed: int, folder: Path) -> Path:
    """The reward file fitted to the level's demonstrations; made once."""
    path = folder / "reward.py"
    if not path.exists():
        data = folder / "demos"
        for role, policy in (("expert", "bot"), ("negative", "random")):
            first = 1_000_000 * (seed + 1) + (250_000 if role == "negative" else 0)
            save(collect(environment, policy, TRAJECTORIES, role, seed=first), data / f"{role}.parquet")
        with tempfile.TemporaryDirectory() as run:
            fitted = grace_irl.fit(load([data]), out=Path(run) / "fit", held_out=0.0, seed=seed, max_seconds=120.0)
            write_atomically(path, fitted.reward_path.read_text())
    return path


def trained(environment: str, reward: ProgramPay | None, seed: int, arguments: argparse.Namespace, out: Path) -> Point:
    """The last evaluation of one training, with its curve printed on the way."""

    def say(point: Point) -> None:
        print(f"    {out.name:9} {point.steps:8d} steps  success {point.success:.3f}", flush=True)

    training = train(
        lambda: make(environment),
        arguments.steps,
        reward=reward,
        seed=seed,
        evaluations=arguments.evaluations,
        episodes=arguments.episodes,
        out=out,
        progress=say,
    )
    reached = next((point.steps for point in training.curve if (point.success or 0) >= GOOD), None)
    last = training.curve[-1]
    print(f"    {out.name:9} success {GOOD} after {reached or 'no number of'} steps, {last.seconds:.0f} s", flush=True)
    return last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", default="GoToObj", help="comma-separated names, of any level of BabyAI")
    parser.add_argument("--seeds", type=int, default=1, help="how many, from 0 (default 1)")
    parser.add_argument("--steps", type=int, default=80_000, help="of each training (default 80,000)")
    parser.add_argument("--evaluations", type=int, default=8, help="of each training (default 8)")
    parser.add_argument("--episodes", type=int, default=100, help="of each evaluation (default 100)")
    parser.add_argument("--scale", default="auto", choices=get_args(FormChoice), help="form of the reward")
    parser.add_argument("--trust-reward", action="store_true", help="run rewards in this process, not in the sandbox")
    parser.add_argument("--out", type=Path, default=Path("out/babyai-training"), help="where everything is kept")
    arguments = parser.parse_args()
    form: FormChoice = arguments.scale
    rows, missed = [], []
    for level in arguments.levels.split(","):
        environment = LEVELS.get(level, f"BabyAI-{level}-v0")
        for seed in range(arguments.seeds):
            folder = arguments.out / f"{level}-{seed}"
            begun = time.perf_counter()
            path = recovered(environment, seed, folder)
            print(f"{level} seed {seed}: reward in {time.perf_counter() - begun:.0f} s", flush=True)
            spec = ProgramPay(grace_irl.load_reward(path, trust=arguments.trust_reward), form)
            name = f"{form}-{arguments.steps}"
            ours = trained(environment, spec, seed, arguments, folder / f"ours-{name}")
            true = trained(environment, None, seed, arguments, folder / f"true-{arguments.steps}")
            rows.append((level, seed, ours, true))
    print(
        f"\n{arguments.steps} steps each, {arguments.episodes} episodes, {TRAJECTORIES} + {TRAJECTORIES} trajectories"
    )
    print(f"{'level':20} {'seed':>4} {'recovered':>9} {'true':>6} {'length':>6} {'of true':>7} {'s':>5} {'s':>5}")
    for level, seed, ours, true in rows:
        print(
            f"{level:20} {seed:4d} {ours.success:9.3f} {true.success:6.3f} {ours.length:6.1f} {true.length:7.1f} "
            f"{ours.seconds:5.0f} {true.seconds:5.0f}"
        )
    for level in dict.fromkeys(row[0] for row in rows):
        ours_mean, true_mean = (
            np.mean([row[which].success for row in rows if row[0] == level])  # type: ignore[union-attr]
            for which in (2, 3)
        )
        print(f"{level}: {ours_mean:.3f} on the recovered reward, {true_mean:.3f} on the true one")
        if ours_mean < true_mean - MARGIN:
            missed.append(level)
    if missed:
        print(f"more than {MARGIN} below PPO on the true reward: {', '.join(missed)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
