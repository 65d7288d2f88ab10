"""Rewards of BabyAI levels judged on near misses and by contrast: 17 public levels and 3 of our own.

The synthesiser fits 8 experts and 8 negatives of a level: "random", 8 episodes of random actions; "near", 4 of them and
4 near misses (`grace-irl collect --near-miss`; 8 random ones if the level has none); "swaps", those of "near" and each
expert with the instruction of another one (`fit --swaps`). Each draw of the data is fitted as it is and with its codes
and words renamed. Fresh episodes judge the reward at the threshold of its training data, and choose nothing:

    hit       experts that are paid at their goal             early     experts that are paid before it
    false     random episodes that are paid                   near      near misses that are paid
    contrast  experts' goals that are no longer paid under another expert's instruction, if they do not fulfil it

    python benchmarks/near_misses.py                                             # 20 levels, hours on one core
    python benchmarks/near_misses.py --levels GoToLocalS8N7 --draws 1 --renamings 1
    python benchmarks/near_misses.py --levels PickupLoc --train 64                # in place of 8 + 8 episodes
    python benchmarks/near_misses.py --levels PickupLoc --shown 2                 # judge only what the experts show

With `--shown 2` a fresh episode judges if each word of its instruction stands in the instructions of two training
experts: what eight experts do not say, no search can learn. `judges` in a fit's row.json counts these episodes.

Random episodes in which a box is opened judge nothing: the box goes from its cell, as if it were taken, and the states
do not tell one from the other.

`warned` counts the fits whose audit warned of something other than few or no held-out episodes. A fit is good if it has
a hit rate and a contrast of at least 0.98 and 0.95, and pays at most 0.02 of all else. A fit ends after a number of
programs, so that its result does not depend on how busy the machine is. The benchmark goes on where it was stopped:
finished fits are in `benchmarks/near_misses.jsonl`.
`same if renamed` counts the fits on renamed data that have the same figures as the data as they are. The simulator
cannot read renamed words, so the audit of such a fit has more warnings.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from babyai_recovery import LEVELS as PUBLIC

import grace_irl
from grace_irl.atomic import write_atomically
from grace_irl.demos import load, save
from grace_irl.demos.scramble import ScrambleMap
from grace_irl.demos.trajectory import Demonstration, Demonstrations
from grace_irl.errors import GraceError
from grace_irl.rl.collect import collect
from grace_irl.runs.swaps import with_swaps

LEVELS = (*PUBLIC, "PlaceBetween", "OpenMatchingDoor", "SortColors")
TRAIN, FRESH = 8, 60
NEGATIVES = ("random", "near", "swaps")
SHORTER = (None, 64, 16)
"""Time limits of random episodes, the first of which leaves out few of them because they reach the goal."""
BOX, TOGGLE = 7, 5
"""MiniGrid's code of a box in channel 0, and of the action that opens things."""
FINISHED = Path(__file__).resolve().parent / "near_misses.jsonl"
"""The finished fits, a line each, without their programs. Delete lines to make their fits again."""
USUAL = {"few-episodes", "nothing-held-out"}
"""Warnings that every fit of this benchmark has, because it holds nothing out."""
Data = Mapping[str, Demonstrations]
"""Episodes by kind: "expert", "random", "near" and "swap"; a kind that the level does not have is missing."""


@dataclass(frozen=True)
class Row:
    """One fit.

    Attributes:
        level, draw, negatives, renaming: which fit; renaming 0 is the data as they are.
        hit, early, false, near, contrast: shares of fresh episodes; None if the level has no such episodes, or if there
            is no program.
        warned: codes of the warnings, but for those in `USUAL`.
        seconds: of the search.
        program: the program; without one, why.
        judges: number of fresh episodes, with near misses and swaps.
    """

    level: str
    draw: int
    negatives: str
    renaming: int
    hit: float | None
    early: float | None
    false: float | None
    near: float | None
    contrast: float | None
    warned: tuple[str, ...]
    seconds: float
    program: str
    judges: int = 0

    @property
    def good(self) -> bool:
        """Whether all figures are as they should be."""
        wrong = (self.early, self.false, self.near)
        right = self.hit is not None and self.hit >= 0.98 and (self.contrast is None or self.contrast >= 0.95)
        return right and all(each is None or each <= 0.02 for each in wrong)


def episodes(level: str, draw: int, folder: Path, train: int) -> tuple[Data, Data]:
    """`train` training episodes and fresh ones of a draw, collected once. Swaps are made of them each time."""
    found: list[dict[str, Demonstrations]] = []
    for part, count in (("train", train), ("fresh", FRESH)):
        kinds = {}
        for place, kind in enumerate(("expert", "random", "near")):
            size = "" if count in (TRAIN, FRESH) else f"-{count}"
            path = folder / f"{level}-{draw}" / f"{part}-{kind}{size}.parquet"
            start = 10_000_000 * (draw + 1) + 5_000_000 * (part == "fresh") + 1_000_000 * place
            made = collected(level, kind, count, start, path)
            if made is not None:
                kinds[kind] = without_opened_boxes(made) if (part, kind) == ("fresh", "random") else made
        experts = replace(kinds["expert"], items=tuple(replace(one, split="train") for one in kinds["expert"]))
        try:
            swaps = with_swaps(experts, "last")
            kinds["swap"] = swaps.select(role="negative")
        except GraceError:  # one instruction
            pass
        found.append(kinds)
    return found[0], found[1]


def collected(level: str, kind: str, count: int, seed: int, path: Path) -> Demonstrations | None:
    """Episodes of one kind; None if the level has no near misses."""
    if not path.exists() and not path.with_suffix(".none").exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        name, policy = PUBLIC.get(level, f"BabyAI-{level}-v0"), "random" if kind == "random" else "bot"
        role = "expert" if kind == "expert" else "negative"
        for limit in SHORTER if kind == "random" else (None,):
            try:
                save(collect(name, policy, count, role, seed, max_steps=limit, near_miss=kind == "near"), path)
                break
            except GraceError as error:
                if kind == "expert" or limit == SHORTER[-1]:
                    raise
                if kind == "near":
                    path.with_suffix(".none").write_text(str(error), encoding="utf-8")
    return load([path]) if path.exists() else None


def without_opened_boxes(episodes: Demonstrations) -> Demonstrations:
    """Those episodes in which no box goes when the agent toggles."""

    def opens(one: Demonstration) -> bool:
        boxes = (np.asarray(one.trajectory.states)[..., 0] == BOX).sum(axis=(1, 2))
        return bool((np.diff(boxes)[np.asarray(one.trajectory.actions) == TOGGLE] < 0).any())

    return replace(episodes, items=tuple(one for one in episodes if not opens(one)))


def training(data: Data, negatives: str) -> Demonstrations:
    """The experts and the negatives of a fit."""
    count = len(data["expert"])
    near = list(data["near"])[: count // 2] if "near" in data and negatives != "random" else []
    swaps = list(data["swap"]) if "swap" in data and negatives == "swaps" else []
    chosen = (*data["expert"], *list(data["random"])[: count - len(near)], *near, *swaps)
    return replace(data["expert"], items=chosen)


def shown(fresh: Data, experts: Demonstrations, times: int) -> Data:
    """The fresh episodes each word of whose instruction stands in the instructions of at least `times` experts."""
    counts = Counter(word for one in experts for word in set(one.trajectory.extra_info.split()))
    kept: dict[str, Demonstrations] = {}
    for kind, some in fresh.items():
        items = [one for one in some if all(counts[word] >= times for word in one.trajectory.extra_info.split())]
        if items:
            kept[kind] = replace(some, items=tuple(items))
    return kept


def renamed(items: Sequence[Demonstration], table: ScrambleMap | None) -> list[Demonstration]:
    return list(items) if table is None else list(map(table.apply, items))


def judged(level: str, draw: int, negatives: str, renaming: int, options: argparse.Namespace) -> Row:
    """Fits and judges; or reads what an earlier run found."""
    size = ("" if options.train == TRAIN else f"-{options.train}") + (
        f"-shown-{options.shown}" if options.shown else ""
    )
    folder = options.out / f"{level}-{draw}{size}" / f"{negatives}-{renaming}-{options.max_calls}"
    kept, name = folder / "row.json", str(folder.relative_to(options.out))
    if kept.exists() or name in (known := finished()):
        fields = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else known[name]
        return Row(**fields | {"warned": tuple(fields["warned"])})
    shutil.rmtree(folder, ignore_errors=True)
    train, fresh = episodes(level, draw, options.data, options.train)
    fresh = shown(fresh, train["expert"], options.shown)
    table = ScrambleMap.draw(renaming, train["expert"][0].trajectory) if renaming else None
    data = training(train, negatives)
    data = replace(data, items=tuple(renamed(list(data), table)))
    row = Row(level, draw, negatives, renaming, *(None,) * 5, (), 0.0, "")
    try:
        run = grace_irl.fit(data, out=folder, held_out=0.0, seed=draw, max_calls=options.max_calls)
    except GraceError as error:
        row = replace(row, program=str(error))
    else:
        reward = grace_irl.load_reward(run.reward_path)
        paid = {}
        for kind, some in fresh.items():
            values = reward.rewards([one.trajectory for one in renamed(list(some), table)])
            paid[kind] = [one > run.best.separation.threshold for one in values]

        def share(kind: str, found: Callable[[np.ndarray], bool]) -> float | None:
            """The share of the episodes of a kind of which this holds; None without such episodes."""
            return float(np.mean([found(one) for one in paid[kind]])) if kind in paid else None

        row = replace(
            row,
            hit=share("expert", lambda one: bool(one[-1])),
            early=share("expert", lambda one: bool(one[:-1].any())),
            false=share("random", lambda one: bool(one.any())),
            near=share("near", lambda one: bool(one.any())),
            contrast=share("swap", lambda one: not one[-1]),
            judges=sum(map(len, paid.values())),
            warned=tuple(sorted({each.code for each in run.warnings} - USUAL)),
            seconds=run.seconds,
            program=run.best.source,
        )
    write_atomically(kept, json.dumps(asdict(row), indent=1))
    with FINISHED.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"fit": name, **asdict(row), "program": ""}) + "\n")
    return row


def finished() -> dict[str, dict[str, Any]]:
    """The rows of `FINISHED`, by name of the fit."""
    lines = FINISHED.read_text(encoding="utf-8").splitlines() if FINISHED.exists() else []
    rows = [json.loads(line) for line in lines]
    return {row.pop("fit"): row for row in rows}


FIGURES = ("hit", "early", "false", "near", "contrast")


def cells(rows: Sequence[Row]) -> str:
    """The means of some fits, as cells of a Markdown table.

    The last cell counts the fits on renamed data, and those of them whose figures are the ones of the data as they are.
    """
    means = []
    for name in FIGURES:
        values = [value for row in rows if (value := getattr(row, name)) is not None]
        means.append(f"{np.mean(values):.3f}" if values else "")
    good, warned = (sum(each) for each in ([row.good for row in rows], [bool(row.warned) for row in rows]))
    silent = sum(not row.good and not row.warned for row in rows)
    plain = {(row.level, row.draw, row.negatives): row for row in rows if not row.renaming}
    pairs = [(row, plain[row.level, row.draw, row.negatives]) for row in rows if row.renaming]
    same = sum(all(getattr(row, name) == getattr(own, name) for name in FIGURES) for row, own in pairs)
    counts = [f"{good} of {len(rows)}", f"{warned}", f"{silent}", f"{np.mean([row.seconds for row in rows]):.1f}"]
    return " | ".join([*means, *counts, f"{same} of {len(pairs)}" if pairs else ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", default=",".join(LEVELS), help="comma-separated names")
    parser.add_argument("--negatives", default=",".join(NEGATIVES), help="comma-separated sorts of training negatives")
    parser.add_argument("--draws", type=int, default=5, help="number of draws of the data (default 5)")
    parser.add_argument("--first", type=int, default=0, help="the first draw (default 0)")
    parser.add_argument("--renamings", type=int, default=5, help="of each draw; the first is none (default 5)")
    parser.add_argument("--max-calls", type=int, default=20, help="programs per fit (default 20)")
    parser.add_argument("--train", type=int, default=TRAIN, help=f"experts, and as many negatives (default {TRAIN})")
    parser.add_argument("--shown", type=int, default=0, help="experts that say each word of a judge (default 0)")
    parser.add_argument("--data", type=Path, default=Path("out/near-misses/data"), help="where episodes are kept")
    parser.add_argument("--out", type=Path, default=Path("out/near-misses/runs"), help="where runs are kept")
    options = parser.parse_args()
    print(f"| level | negatives | {' | '.join(FIGURES)} | good | warned | silent | seconds | same if renamed |")
    print("|---" * 12 + "|")
    sorts: dict[str, list[Row]] = {}
    for level in options.levels.split(","):
        for negatives in options.negatives.split(","):
            rows = [
                judged(level, draw, negatives, renaming, options)
                for draw in range(options.first, options.first + options.draws)
                for renaming in range(options.renamings)
            ]
            sorts.setdefault(negatives, []).extend(rows)
            print(f"| {level} | {negatives} | {cells(rows)} |", flush=True)
    for negatives, rows in sorts.items():
        print(f"| **all** | {negatives} | {cells(rows)} |")


if __name__ == "__main__":
    main()
