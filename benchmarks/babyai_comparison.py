"""Policies from 8 demonstrations: PPO on a recovered reward beside BC and PPO on the true one, and GAIL with 200.

For each level, 8 expert trajectories of the bot and 8 random ones are the demonstrations of GRACE and BC; GAIL and AIRL
learn from 200 experts, because with 8 they learn nothing. All have the same PPO, networks, steps and evaluation, and
every seed is a search and a training of its own (`grace-irl compare`).

    python benchmarks/babyai_comparison.py                                       # the whole table: hours on 2 cores
    python benchmarks/babyai_comparison.py --levels GoToObj --seeds 1 --steps 100000
    python benchmarks/babyai_comparison.py --levels GoToObj --transfer        # a small room's reward in a larger room
    python benchmarks/babyai_comparison.py --levels GoToObj --draw            # 8 of 200 trajectories for each seed

Without --draw all seeds have the same 8 trajectories. It goes on where it was stopped, and exits with 1 if the mean
success of GRACE's last policies is more than 0.02 below that of PPO on the true reward.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import get_args

from grace_irl.compare.comparison import Compared, resume, start
from grace_irl.compare.dispatch import ComparisonState
from grace_irl.compare.settings import Settings, comparison_of
from grace_irl.compare.standings import Oracle, Standing, standings
from grace_irl.compare.table import KEY, differences_of, rows_of
from grace_irl.demos import save
from grace_irl.rewards.scale import FormChoice
from grace_irl.rl.collect import collect
from grace_irl.runs.config import resolve

LEVELS = {
    "GoToRedBallNoDist": ("BabyAI-GoToRedBallNoDists-v0", 100_000, 0),
    "GoToObj": ("BabyAI-GoToObj-v0", 100_000, 0),
    "OpenRedDoor": ("BabyAI-OpenRedDoor-v0", 100_000, 0),
    "OpenDoorColor": ("BabyAI-OpenDoorColor-v0", 300_000, 3),
    "OpenTwoDoors": ("BabyAI-OpenTwoDoors-v0", 300_000, 3),
}
"""Level, environment steps of each run, and number of reshaped versions: if the goal is seldom met by
chance, GRACE's reward says how near it is, too. The last level takes two steps, in order."""
FEW, MANY = 8, 200
GROUPS = ((FEW, ("grace", "bc", "ppo-true")), (MANY, ("gail", "airl")))
"""Number of experts, and the methods that learn from them."""
SMALL = {"GoToObj": "BabyAI-GoToObjS4-v0"}
"""Smaller rooms of a level, from which rewards are carried to it."""
MARGIN = 0.02


def demonstrations(environment: str, count: int, folder: Path) -> Path:
    """Experts and random rollouts of a level, as many of each; collected once."""
    target = folder / f"demos-{count}"
    for role, policy, first in (("expert", "bot", 1_000_000), ("negative", "random", 1_250_000)):
        path = target / f"{role}.parquet"
        if not path.exists():
            save(collect(environment, policy, count, role, seed=first, alarm_s=5.0), path)
    return target


def compared(name: str, steps: int, options: argparse.Namespace) -> list[Compared]:
    """The comparisons of one level: one for each number of demonstrations."""
    environment, _, usual = LEVELS[name]
    reshape = usual if options.reshape is None else options.reshape
    found = []
    transfer = ()
    if options.transfer:
        environment, transfer = SMALL[name], (environment,)
    for count, methods in GROUPS:
        chosen = tuple(method for method in methods if method in options.methods.split(","))
        if not chosen:
            continue
        folder = options.out / (f"{name}-transfer" if options.transfer else name)
        draws = options.draw and count == FEW
        demos = demonstrations(environment, MANY if draws else count, folder)
        form = "" if options.form == "auto" else f"-{options.form}"
        shaped, drawn = "-reshaped" if reshape else "", "-drawn" if draws else ""
        place = folder / f"from-{count}-{steps}{shaped}{drawn}{form}"
        if (place / "compare.toml").exists():
            found.append(resume(place, methods=chosen, seeds=options.seeds, workers=options.workers, listener=say))
            continue
        asked: dict[str, object] = {"methods": chosen, "seeds": options.seeds, "steps": steps, "env": environment}
        asked |= {"transfer": transfer, "draw_demos": FEW if draws else 0}
        fit = {
            "data.demos": (str(demos),),
            "data.held_out": 0.0,
            "expand.trust": options.trust_reward,
            "search.reshape": reshape,
            "expand.form": options.form,
        }
        settings = Settings(comparison_of({**asked, "episodes": options.episodes}), resolve(flags=fit))
        found.append(start(settings, place, options.workers, say))
    return found


def say(progress: ComparisonState) -> None:
    """One line for each run that ends."""
    if progress.ended is not None:
        result = progress.ended
        successes = ", ".join(f"{each.environment} {each.success:.3f}" for each in result.outcomes)
        print(f"  {result.method} seed {result.seed}: {successes or result.failure}", flush=True)


def report(title: str, parts: list[Compared]) -> dict[str, Standing]:
    """Prints one level's table, and gives the standings in the last of its environments."""
    results = [result for part in parts for result in part.results]
    methods = [method for _, group in GROUPS for method in group]
    found = standings(results, methods, Oracle())
    for environment in dict.fromkeys(each.environment for each in found):
        head, rows = rows_of([each for each in found if each.environment == environment])
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        print(f"\n{title}, {environment}")
        for row in (head, *rows):
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        for row in differences_of([each for each in found if each.environment == environment])[1]:
            print("grace ahead of " + "  ".join(row))
    print(KEY)
    for note in dict.fromkeys(note for part in parts for note in part.notes):
        print(f"note: {note}")
    last = found[-1].environment if found else ""
    return {each.method: each for each in found if each.environment == last}


def mean_score(standing: Standing | None) -> float | None:
    """Of the last policies, over the seeds that ended well."""
    return None if standing is None or standing.last is None else standing.last.score.mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", default=",".join(LEVELS), help="comma-separated names")
    parser.add_argument("--methods", default="grace,bc,ppo-true,gail", help="of each level; airl is not among them")
    parser.add_argument("--seeds", type=int, default=5, help="of each method (default 5)")
    parser.add_argument("--steps", type=int, help="of each run, instead of the level's")
    parser.add_argument("--episodes", type=int, default=500, help="of the evaluation at the end (default 500)")
    parser.add_argument("--workers", type=int, help="runs at once (default: one per core)")
    parser.add_argument("--transfer", action="store_true", help="recover rewards in a smaller room")
    parser.add_argument("--draw", action="store_true", help="draw the 8 trajectories of each seed from 200")
    parser.add_argument("--reshape", type=int, help="versions asked for, instead of those of the level; 0: none")
    parser.add_argument("--form", default="auto", choices=get_args(FormChoice), help="form of GRACE's rewards")
    parser.add_argument("--trust-reward", action="store_true", help="run rewards in the trainings' processes")
    parser.add_argument("--out", type=Path, default=Path("out/babyai-comparison"), help="where everything is kept")
    options = parser.parse_args()
    names = [name for name in options.levels.split(",") if not options.transfer or name in SMALL]
    missed = []
    for name in names:
        steps = options.steps or LEVELS[name][1]
        print(f"{name}: {steps:,} steps of each run, {options.seeds} seeds", flush=True)
        found = report(name, compared(name, steps, options))
        ours, true = (mean_score(found.get(which)) for which in ("grace", "ppo-true"))
        if ours is None or true is None or ours < true - MARGIN:
            missed.append(name)
    if missed:
        print(f"\nmore than {MARGIN} below PPO on the true reward, or not measured: {', '.join(missed)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
