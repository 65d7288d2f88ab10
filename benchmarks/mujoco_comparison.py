"""Locomotion from real demonstrations: PPO on an expanded reward beside GAIL, AIRL, BC and PPO on the true reward.

Experts are the two trajectories of `../shared/data/mujoco` (CS285); negatives are D-REX's suboptimal trajectories and
random rollouts. The reward is recovered from all of them and expanded in M rounds within the same environment steps
that every other method has (`grace-irl compare --expand M`).

    python benchmarks/mujoco_comparison.py                                   # Hopper and HalfCheetah: hours on 2 cores
    python benchmarks/mujoco_comparison.py --bodies Hopper --seeds 1 --steps 300000
    python benchmarks/mujoco_comparison.py --bodies Hopper --reward tests/recordings/large_model_mujoco/Hopper.py
    python benchmarks/mujoco_comparison.py --bodies Hopper --transfer        # rewards carried to a lighter body

The third one trains on the best of a large model's first four answers, which are recorded beside that file.

It goes on where it was stopped. It exits with 1 if the last policies of GRACE are below 0.95 of those of PPO on the
true reward, or if those have not learnt (`grace_irl.compare.standings`), so that no fraction can be quoted. Every
method keeps its policy where GRACE's rounds end, and results are of last policies and of favourites.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mujoco_recovery import DATA, ROLLOUTS

from grace_irl.compare.comparison import Compared, resume, start
from grace_irl.compare.dispatch import ComparisonState
from grace_irl.compare.settings import Settings, comparison_of
from grace_irl.compare.standings import Oracle, standings
from grace_irl.compare.table import KEY, differences_of, rows_of
from grace_irl.demos import load, save
from grace_irl.demos.trajectory import Demonstration, Demonstrations
from grace_irl.rl.collect import collect
from grace_irl.runs.config import resolve

STEPS = {"Hopper": 1_000_000, "HalfCheetah": 500_000}
ROUNDS = {"Hopper": (5, 2.0), "HalfCheetah": (8, 1.4)}
"""Rounds M, and how many times the steps of the round before it each one takes."""
SEARCH = {"search.population": 12, "search.generations": 8, "expand.episodes": 4}
"""Short searches and few rollouts: each round begins with the last one's programs, and the last ones learn longest."""
GROUPS = (("grace",), ("gail", "airl", "bc", "ppo-true"))
"""Compared in folders of their own, so that another search leaves what the others learnt as it is."""
GOAL = 0.95
LIGHT = {"Hopper": "hopper", "HalfCheetah": "half_cheetah"}
"""Functions of examples/lighter_bodies.py."""
BODIES = Path(__file__).resolve().parents[1] / "examples" / "lighter_bodies.py"


def demonstrations(name: str, folder: Path) -> Path:
    """Experts and negatives in one form; written once."""
    target = folder / "demos"
    if not (target / "negative.parquet").exists():
        experts = load([DATA / f"cs285_2023_{name}-v4.npz"], role="expert")
        chance = collect(f"{name}-v5", "random", ROLLOUTS[name], "negative", seed=0)
        metadata = replace(experts.metadata, fields=chance.metadata.fields, environment=f"{name}-v5", label="all")
        others = [item.trajectory for item in (*load([], [DATA / f"drex_{name}.npz"]), *chance)]
        save(Demonstrations(metadata, tuple(experts)), target / "expert.parquet")
        negatives = tuple(Demonstration(trajectory, "negative") for trajectory in others)
        save(Demonstrations(metadata, negatives), target / "negative.parquet")
    return target


def compared(name: str, group: Sequence[str], options: argparse.Namespace) -> Compared | None:
    """The comparison of the requested methods of a group."""
    methods = tuple(method for method in options.methods.split(",") if method in group)
    if not methods:
        return None
    steps = options.steps or STEPS[name]
    folder = options.out / name
    usual, growth = ROUNDS[name]
    rounds = usual if options.expand is None else options.expand
    searched = f"grace-{options.reward.stem if options.reward else rounds}" if "grace" in group else "others"
    place = folder / f"{searched}-{steps}{'-transfer' if options.transfer else ''}"
    if (place / "compare.toml").exists():
        return resume(place, methods=methods, seeds=options.seeds, workers=options.workers, listener=say)
    carried = (f"{BODIES}:{LIGHT[name]}",) if options.transfer else ()
    reward = str(options.reward) if options.reward and "grace" in group else ""
    asked = {
        "reward": reward,
        "methods": methods,
        "seeds": options.seeds,
        "steps": steps,
        "transfer": carried,
        "looks": 20,
        "keep": rounds,
    }
    fit = {
        "data.demos": (str(demonstrations(name, folder)),),
        "data.held_out": 0.0,
        "expand.rounds": rounds if "grace" in group and not reward else 0,
        "expand.growth": growth,
        "expand.trust": options.trust_reward,
        **SEARCH,
    }
    settings = Settings(comparison_of({**asked, "episodes": options.episodes}), resolve(flags=fit))
    return start(settings, place, options.workers, say)


def say(progress: ComparisonState) -> None:
    """One line for each run that ends."""
    if progress.ended is not None:
        result = progress.ended
        returns = ", ".join(f"{each.environment} {each.mean:.0f}" for each in result.outcomes)
        print(f"  {result.method} seed {result.seed}: {returns or result.failure}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bodies", default=",".join(STEPS), help="comma-separated names")
    parser.add_argument("--methods", default="grace,gail,airl,bc,ppo-true", help="comma-separated names")
    parser.add_argument("--seeds", type=int, default=5, help="of each method (default 5)")
    parser.add_argument("--steps", type=int, help="of each run, instead of those of the body")
    parser.add_argument("--expand", type=int, help="rounds M of expansion, instead of those of the body; 0: none")
    parser.add_argument("--reward", type=Path, help="for grace: a reward that was recovered before, and no search")
    parser.add_argument("--episodes", type=int, default=50, help="of the evaluation at the end (default 50)")
    parser.add_argument("--workers", type=int, help="runs at once (default: one per core)")
    parser.add_argument("--transfer", action="store_true", help="carry the rewards to a lighter body, too")
    parser.add_argument("--trust-reward", action="store_true", help="run rewards in the trainings' processes")
    parser.add_argument("--out", type=Path, default=Path("out/mujoco-comparison"), help="where everything is kept")
    options = parser.parse_args()
    missed = []
    for name in options.bodies.split(","):
        print(f"{name}: {options.steps or STEPS[name]:,} steps of each run, {options.seeds} seeds", flush=True)
        parts = [found for group in GROUPS if (found := compared(name, group, options)) is not None]
        results = [result for part in parts for result in part.results]
        oracle = Oracle.of(load([demonstrations(name, options.out / name)]))
        placed = standings(results, [method for group in GROUPS for method in group], oracle)
        for environment in dict.fromkeys(each.environment for each in placed):
            head, rows = rows_of([each for each in placed if each.environment == environment])
            widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
            print(f"\n{environment}")
            for row in (head, *rows):
                print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
            for row in differences_of([each for each in placed if each.environment == environment])[1]:
                print("grace ahead of " + "  ".join(row))
        print(KEY)
        for note in dict.fromkeys(note for part in parts for note in part.notes):
            print(f"note: {note}")
        ours = [each.last for each in placed if each.method == "grace" and not each.transfer]
        if not any(last is not None and last.of_returns is not None and last.of_returns >= GOAL for last in ours):
            missed.append(name)
    if missed:
        print(f"\nbelow {GOAL} of PPO on the true reward, or not measured: {', '.join(missed)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
