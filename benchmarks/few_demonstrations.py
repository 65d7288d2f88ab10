"""Few demonstrations: held-out accuracy by the number of experts, and by the number of negatives.

GRACE's figure 4 for the synthesiser: of the 8 expert and 8 random trajectories of a level, the first n of one side are
kept, and all of the other. Accuracy is on 100 + 100 held-out trajectories, which choose nothing; nothing is chosen from
several runs.

    python benchmarks/few_demonstrations.py                               # 12 levels, seed 0: an hour on a free core
    python benchmarks/few_demonstrations.py --levels GoToObj,PickupLoc --seeds 3

What is done is kept under --out, and a benchmark that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from babyai_recovery import REQUIRED, TRAIN, data, recover

from grace_irl.atomic import write_atomically
from grace_irl.demos import load
from grace_irl.demos.trajectory import Demonstrations

COUNTS = (1, 2, 4)
SETS = (*((count, TRAIN) for count in COUNTS), (TRAIN, TRAIN), *((TRAIN, count) for count in reversed(COUNTS)))
"""Experts and negatives of each fit."""


def first(train: Demonstrations, experts: int, negatives: int) -> Demonstrations:
    """So many of either role."""
    by_role = ([item for item in train if item.role == role] for role in ("expert", "negative"))
    kept = [item for items, count in zip(by_role, (experts, negatives), strict=True) for item in items[:count]]
    return replace(train, items=tuple(kept))


def measured(level: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Results of all sets of one level and seed, by "experts+negatives"; those in its file are not made again."""
    path = options.out / f"{level}-{seed}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    sets: tuple[Demonstrations, Demonstrations] | None = None
    for experts, negatives in SETS:
        name = f"{experts}+{negatives}"
        if name in found:
            continue
        if sets is None:
            train, test = data(level, options.data, seed)
            sets = load([train]), load([test])
        row = recover(first(sets[0], experts, negatives), sets[1], seed, options.max_seconds)
        found[name] = asdict(row)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(found, indent=1))
        print(f"  {level}, seed {seed}, {name}: {row.accuracy:.4f} in {row.seconds:.1f} s", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", default=",".join(REQUIRED), help="comma-separated names, of any level of BabyAI")
    parser.add_argument("--seeds", type=int, default=1, help="of data and search, from 0 on (default 1)")
    parser.add_argument("--max-seconds", type=float, default=120.0, help="search time per fit (default 120)")
    parser.add_argument("--data", type=Path, default=Path("out/babyai"), help="where collected data is kept")
    parser.add_argument("--out", type=Path, default=Path("out/few-demonstrations"), help="where results are kept")
    options = parser.parse_args()
    names = [f"{experts}+{negatives}" for experts, negatives in SETS]
    levels = options.levels.split(",")
    table: dict[str, list[float]] = {}
    for level in levels:
        rows = [measured(level, seed, options) for seed in range(options.seeds)]
        table[level] = [statistics.mean(row[name]["accuracy"] for row in rows) for name in names]
    table["mean"] = [statistics.mean(column) for column in zip(*table.values(), strict=True)]
    print(f"held-out accuracy by experts + negatives, mean over {options.seeds} seeds")
    print(f"| level | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for level, values in table.items():
        print(f"| {level} | {' | '.join(f'{value:.3f}' for value in values)} |")


if __name__ == "__main__":
    main()
