"""Does expansion end with a reward that teaches? GoToLocalS5N2 from 8 + 8 trajectories, round by round.

The demonstrations never ask for a colour to be told apart. A reward that takes the wrong one for a goal is mended by
the rollouts. Success is the environment's own account of the rollouts, which no search sees. One run, with the seed
given:

    python benchmarks/expansion.py                        # 5 rounds of 60,000 steps at most; a few minutes
    python benchmarks/expansion.py --seed 1               # a reward that pays for the wrong thing
    python benchmarks/expansion.py --level GoToObj --rounds 2 --steps 120000

It exits with 1 where the last round's success is below 0.9.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import get_args

from babyai_recovery import data

import grace_irl
from grace_irl.rewards.scale import FormChoice

GOAL = 0.9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--level", default="GoToLocalS5N2", help="BabyAI's name of the level")
    parser.add_argument("--rounds", type=int, default=5, help="at most (default 5)")
    parser.add_argument("--steps", type=int, default=300_000, help="of all rounds (default 300,000)")
    parser.add_argument("--rollouts", type=int, default=60, help="of each round (default 60)")
    parser.add_argument("--seed", type=int, default=0, help="of data, search and training (default 0)")
    parser.add_argument("--form", default="auto", choices=get_args(FormChoice), help="form of the reward in training")
    parser.add_argument("--data", type=Path, default=Path("out/babyai"), help="where collected data is kept")
    arguments = parser.parse_args()
    train, _ = data(arguments.level, arguments.data, arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        run = grace_irl.fit(
            [train],
            out=Path(folder) / "run",
            held_out=0.0,
            seed=arguments.seed,
            expand=arguments.rounds,
            env_steps=arguments.steps,
            rollouts=arguments.rollouts,
            expand_form=arguments.form,
            trust_reward=True,  # the synthesiser's own program
            workers=1,
            note=lambda text: print(f"  {text}", flush=True),
        )
    print("round   steps rollouts alike on the rest reward    train success")
    for each in run.rounds:
        rest = "-" if each.new_accuracy is None else f"{each.new_accuracy:.4f}"
        success = "-" if each.success is None else f"{each.success:.2f}"
        reward = "searched" if each.changed else "kept"
        print(
            f"{each.number:5d} {each.steps:7d} {each.rollouts:8d} {each.alike:5d} {rest:>11} {reward:8} "
            f"{each.accuracy:6.4f} {success:>7}"
        )
    print(f"ended: {run.reason}")
    if (run.rounds[-1].success or 0.0) < GOAL:
        sys.exit(1)


if __name__ == "__main__":
    main()
