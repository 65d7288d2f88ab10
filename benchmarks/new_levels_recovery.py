"""Recovery of our own BabyAI levels without a model, judged by episode and on near misses.

PlaceBetween, OpenMatchingDoor and SortColors, each fitted by the synthesiser to 8 expert and 8 random trajectories
(misses: unseen), and to these with 8 near misses among the negatives (misses: shown), on plain data and on a scrambled
copy. Near misses are scripted (`grace_irl/rl/level_deviations.py`): the object dropped beside, an anchor moved so that
the object lies between, a wrong door opened, one ball sorted, both balls dropped in the rooms where they were. Held out
are 100 experts, 100 random episodes and 100 near misses, which choose nothing; no draw is chosen from others. A fit
ends after a number of programs, so that its result does not depend on how busy the machine is.

    python benchmarks/new_levels_recovery.py                                   # 36 fits, a minute or more each
    python benchmarks/new_levels_recovery.py --levels SortColors --draws 1 --source

A state is paid where its reward is above the threshold that is best on the training data. Shares of episodes: `hit`,
experts that are paid at their goal; `early`, experts that are paid before; `false`, negatives that are paid anywhere,
by kind (a random episode may open a wrong door, too). `accuracy` is by state, balanced, on all held-out data, `train`
on the training data. The benchmark goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from babyai.by_episode import Verdict, verdict

import grace_irl
from grace_irl.atomic import write_atomically
from grace_irl.demos import load, save
from grace_irl.demos.scramble import ScrambleMap
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import GraceError
from grace_irl.rl.collect import collect
from grace_irl.rl.level_deviations import SCRIPTS

TRAIN, HELD_OUT = 8, 100
MISSES = {level.__name__: tuple(scripts) for level, scripts in SCRIPTS.items()}
"""Kinds of near misses of each level."""
SEEN = {"unseen": False, "shown": True}
Data = Mapping[str, Demonstrations]
"""Episodes by kind: "expert", "random", and each near miss of the level."""


@dataclass(frozen=True)
class Row:
    """One fit: what it was given, how its reward does on held-out episodes, what the search took.

    Attributes:
        level, seed, misses, copy: which fit.
        verdict: None if no program was found.
        accuracy: by state, on training data.
        programs: tried.
        seconds: of the search.
        program: the program; without one, why.
    """

    level: str
    seed: int
    misses: str
    copy: str
    verdict: Verdict | None
    accuracy: float
    programs: int
    seconds: float
    program: str

    def line(self, draw: str = "") -> str:
        """The row of the table, of this draw."""
        head = f"{self.level:16} {self.misses:6} {self.copy:9} {draw or self.seed:>4} |"
        if self.verdict is None:
            return f"{head} no program: {self.program}"
        false = "  ".join(f"{kind} {share:.2f}" for kind, share in self.verdict.false.items())
        return (
            f"{head} {self.verdict.hit:4.2f}  {self.verdict.early:4.2f}  {false:38} |   {self.verdict.accuracy:6.4f} "
            f"{self.accuracy:5.3f} {self.seconds:5.0f} {self.programs:5d}"
        )

    @classmethod
    def read(cls, path: Path) -> Row:
        """A row that was written before."""
        fields = json.loads(path.read_text())
        return cls(**fields | {"verdict": Verdict(**fields["verdict"]) if fields["verdict"] else None})


def averaged(rows: Sequence[Row]) -> Row:
    """The mean of those that found a program, of rows that differ in their draw alone; the last one where none did."""
    good = [(row, row.verdict) for row in rows if row.verdict is not None]
    if not good:
        return rows[-1]
    verdicts = [one for _, one in good]
    false = {kind: float(np.mean([one.false[kind] for one in verdicts])) for kind in verdicts[0].false}
    numbers = {name: float(np.mean([getattr(one, name) for one in verdicts])) for name in ("accuracy", "hit", "early")}
    return replace(
        rows[-1],
        verdict=Verdict(**numbers, false=false),
        accuracy=float(np.mean([row.accuracy for row, _ in good])),
        programs=round(np.mean([row.programs for row, _ in good])),
        seconds=float(np.mean([row.seconds for row, _ in good])),
    )


def episodes(level: str, seed: int, part: str, folder: Path) -> Data:
    """The level's training or held-out episodes; collected once, near misses in equal shares."""
    count, offset = (TRAIN, 0) if part == "train" else (HELD_OUT, 500)
    first = 1_000_000 * (seed + 1) + offset
    found = {}
    for place, kind in enumerate(("expert", "random", *MISSES[level])):
        path = folder / f"{level}-{seed}" / part / f"{kind.replace(' ', '-')}.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            start = first + 125_000 * place
            name = f"BabyAI-{level}-v0"
            if kind in MISSES[level]:
                wanted = count // len(MISSES[level])
                save(collect(name, "bot", wanted, "negative", start, near_miss=kind), path)
            else:
                policy, role = ("bot", "expert") if kind == "expert" else ("random", "negative")
                save(collect(name, policy, count, role, seed=start), path)
        found[kind] = load([path])
    return found


def scrambled(data: Data, table: ScrambleMap) -> Data:
    """A copy of which one map says what replaces what."""
    return {kind: replace(one, items=tuple(map(table.apply, one))) for kind, one in data.items()}


def rewards(reward: Path, data: Data) -> dict[str, list[np.ndarray]]:
    """Of each state, by kind and episode."""
    found = iter(grace_irl.load_reward(reward).rewards([one.trajectory for some in data.values() for one in some]))
    return {kind: [next(found) for _ in some] for kind, some in data.items()}


def recovered(level: str, seed: int, misses: str, copy: str, arguments: argparse.Namespace) -> Row:
    """Fits a level and judges the reward; or reads what an earlier run found."""
    train, test = (episodes(level, seed, part, arguments.out) for part in ("train", "held-out"))
    if copy == "scrambled":
        table = ScrambleMap.draw(seed, train["expert"][0].trajectory)
        train, test = scrambled(train, table), scrambled(test, table)
    if not SEEN[misses]:
        train = {kind: train[kind] for kind in ("expert", "random")}
    folder = arguments.out / f"{level}-{seed}" / f"{misses}-{copy}-{arguments.max_calls}"
    kept = folder / "row.json"
    if kept.exists():
        return Row.read(kept)
    shutil.rmtree(folder, ignore_errors=True)
    everything = replace(train["expert"], items=tuple(one for some in train.values() for one in some))
    row = Row(level, seed, misses, copy, None, 0.0, 0, 0.0, "")
    try:
        run = grace_irl.fit(everything, out=folder, held_out=0.0, seed=seed, max_calls=arguments.max_calls)
    except GraceError as error:
        row = replace(row, program=str(error))
    else:
        held_out, threshold = rewards(run.reward_path, test), grace_irl.load_reward(run.reward_path).threshold
        assert threshold is not None  # `fit` exports it
        row = replace(
            row,
            verdict=verdict(held_out.pop("expert"), held_out, threshold),
            accuracy=run.best.train.accuracy,
            programs=run.programs,
            seconds=run.seconds,
            program=run.best.source,
        )
    write_atomically(kept, json.dumps(asdict(row), indent=1))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", default=",".join(MISSES), help="comma-separated names (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the data, the search and the scrambling (default 0)")
    parser.add_argument("--draws", type=int, default=3, help="draws per level, seeds from --seed on (default 3)")
    parser.add_argument("--max-calls", type=int, default=20, help="programs per fit (default 20)")
    parser.add_argument("--source", action="store_true", help="print the recovered programs")
    parser.add_argument("--out", type=Path, default=Path("out/new-levels"), help="where data and runs are kept")
    arguments = parser.parse_args()
    print(f"{'level':16} {'misses':6} {'data':9} seed |  hit early  {'false':38} | accuracy train     s tried")
    means = []
    for level in arguments.levels.split(","):
        for misses, copy in itertools.product(SEEN, ("plain", "scrambled")):
            rows = []
            for seed in range(arguments.seed, arguments.seed + arguments.draws):
                rows.append(recovered(level, seed, misses, copy, arguments))
                print(rows[-1].line(), flush=True)
                if arguments.source:
                    print(rows[-1].program)
            means.append(averaged(rows))
    print(f"means over {arguments.draws} draws, of those that found a program:")
    for row in means:
        print(row.line("mean"))


if __name__ == "__main__":
    main()
