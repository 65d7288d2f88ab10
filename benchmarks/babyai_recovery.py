"""Recovery on BabyAI without a model: 8 expert and 8 negative trajectories for training, 100 + 100 held out.

The 17 public levels of GRACE's table 3, each fitted by the synthesiser on plain data and on a scrambled copy (codes,
axes and words permuted by one map per level). Labels are `last`: an expert's final state is positive, all its other
states and all states of random rollouts are negative. The fit sees the training trajectories only; the held-out ones
are scored afterwards and choose nothing. Nothing is chosen from several runs: one training draw per level, by the seed.

    python benchmarks/babyai_recovery.py                       # the whole table, about 25 minutes on 2 cores
    python benchmarks/babyai_recovery.py --levels GoToObj,PickupLoc --draws 5
    python benchmarks/babyai_recovery.py --levels PutNextLocal,GoToSeqS5R2  # beyond the table

It exits with 1 where a required level misses the goal.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import grace_irl
from grace_irl.demos import load, save
from grace_irl.demos.convert import scramble
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.evaluate.separation import Measurement
from grace_irl.rl.collect import collect

LEVELS = {  # GRACE's name -> registered id
    "GoToRedBallNoDist": "BabyAI-GoToRedBallNoDists-v0",
    **{
        name: f"BabyAI-{name}-v0"
        for name in (
            *("GoToRedBall", "GoToObj", "GoToObjS4", "GoToLocalS8N7", "GoToDoor", "OpenRedDoor", "OpenDoorColor"),
            *("OpenDoorLoc", "Pickup", "PickupLoc", "PickupDist", "GoToRedBlueBall", "GoToRedBallGrey", "Open"),
            *("OpenTwoDoors", "OpenRedBlueDoors"),
        )
    },
}
REQUIRED = tuple(list(LEVELS)[:12])
"""Levels on which held-out accuracy must be at least GOAL, and lose at most LOSS when scrambled."""
GOAL, LOSS = 0.99, 0.02
TRAIN, HELD_OUT = 8, 100


@dataclass(frozen=True)
class Row:
    """One fit: held-out metrics, what the search took.

    Attributes:
        accuracy, auc, separated: over states.
        hit, early: shares of expert episodes that are paid at their goal, and before it.
        false: share of random episodes that are paid anywhere.
        train_accuracy: over states of the training data.
        seconds, programs: time of the search, and number of programs that were scored.
    """

    accuracy: float
    auc: float
    separated: bool
    hit: float
    early: float
    false: float
    train_accuracy: float
    seconds: float
    programs: int


PARTS = {"train": (TRAIN, 0), "test": (HELD_OUT, 500)}
"""Episodes of each role and first seed, by part."""


def collected(level: str, folder: Path, seed: int, part: str) -> Path:
    """Folder with one part of the level's plain data; collected once."""
    target, (episodes, offset) = folder / f"{level}-{seed}" / part, PARTS[part]
    for role, policy in (("expert", "bot"), ("negative", "random")):
        path = target / f"{role}.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            first = 1_000_000 * (seed + 1) + offset + (250_000 if role == "negative" else 0)
            save(
                collect(LEVELS.get(level, f"BabyAI-{level}-v0"), policy, episodes, role, seed=first, alarm_s=5.0), path
            )
    return target


def data(level: str, folder: Path, seed: int) -> tuple[Path, Path]:
    """Folders with the level's training and held-out sets, plain; collected once."""
    return collected(level, folder, seed, "train"), collected(level, folder, seed, "test")


def scrambled(train: Path, test: Path, seed: int) -> tuple[Path, Path]:
    """Scrambled copies beside the plain folders, both by one map."""
    copies = train.with_name("train-scrambled"), test.with_name("test-scrambled")
    if not copies[1].exists():
        _, table = scramble([train], copies[0], seed)
        scramble([test], copies[1], seed, table)
    return copies


def recover(train: Demonstrations, test: Demonstrations, seed: int, max_seconds: float) -> Row:
    """Fits on the training set and scores the result on the held-out set."""
    with tempfile.TemporaryDirectory() as folder:
        run = grace_irl.fit(train, out=Path(folder) / "run", held_out=0.0, seed=seed, max_seconds=max_seconds)
        score = grace_irl.score(run.reward_path, test)
        over = score.metrics.episodes
        return Row(
            accuracy=score.metrics.accuracy,
            auc=score.metrics.auc,
            separated=score.metrics.separated,
            hit=share(over.hit),
            early=share(over.early),
            false=share(over.false),
            train_accuracy=run.best.train.accuracy,
            seconds=run.seconds,
            programs=run.programs,
        )


def share(measured: Measurement | None) -> float:
    """The value of a figure that label rule `last` always has."""
    assert measured is not None
    return measured.value


def episodes(row: Row) -> str:
    """The figures over episodes."""
    return f"{row.hit:4.2f} {row.early:5.2f} {row.false:5.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", default=",".join(LEVELS), help="comma-separated names; of any level of BabyAI")
    parser.add_argument("--seed", type=int, default=0, help="of the data and of the search (default 0)")
    parser.add_argument("--draws", type=int, default=1, help="draws per level, seeds from --seed on (default 1)")
    parser.add_argument("--max-seconds", type=float, default=120.0, help="search time per fit (default 120)")
    parser.add_argument("--data", type=Path, default=Path("out/babyai"), help="where collected data is kept")
    parser.add_argument("--json", type=Path, help="also write every row to this file")
    arguments = parser.parse_args()
    rows: dict[str, dict[str, dict[str, object]]] = {}
    failed = []
    print(
        f"{'level':18} {'seed':>4} | {'plain':>6}  hit early false {'s':>5} {'tried':>5} "
        f"| {'scrambled':>9}  hit early false"
    )
    for level in arguments.levels.split(","):
        for seed in range(arguments.seed, arguments.seed + arguments.draws):
            start = time.perf_counter()
            train, test = data(level, arguments.data, seed)
            collected = time.perf_counter() - start
            pair = []
            for one, other in ((train, test), scrambled(train, test, seed)):
                pair.append(recover(load([one]), load([other]), seed, arguments.max_seconds))
            plain, mixed = pair
            good = plain.accuracy >= GOAL and mixed.accuracy >= plain.accuracy - LOSS
            if level in REQUIRED and not good:
                failed.append(f"{level}/{seed}")
            print(
                f"{level:18} {seed:4d} | {plain.accuracy:6.4f} {episodes(plain)} {plain.seconds:5.1f} "
                f"{plain.programs:5d} | {mixed.accuracy:9.4f} {episodes(mixed)}   (data {collected:.0f} s)",
                flush=True,
            )
            rows.setdefault(level, {})[str(seed)] = {"plain": vars(plain), "scrambled": vars(mixed)}
    required = [level for level in arguments.levels.split(",") if level in REQUIRED]
    print(f"required: accuracy >= {GOAL} on {len(required)} levels, at most {LOSS} lost when scrambled:", end=" ")
    print("met" if not failed else f"missed on {', '.join(failed)}")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
