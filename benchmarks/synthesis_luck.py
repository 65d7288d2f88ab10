"""Dependence of the synthesiser's reading of instructions on luck, on BabyAI.

Each draw is 8 expert and 8 random trajectories of a level. The answer is the reading that the synthesiser finds with
seed 0. Its cost (docs/synthesis.md) is compared with those of other searches on the same data:

* ten: a search with ten times the effort
* codes: on 5 copies with other integer codes, axes and words
* seeds: with the seeds 1 to 5

A cost counts as found if it is at most 1e-6 nats above the lowest of all these searches. `s` is the CPU time in seconds
of perception and search. With `--times`, also the CPU time to the first program is measured, which is an early one if
the search is long.

    python benchmarks/synthesis_luck.py                                  # 20 levels, hard ones first; about an hour
    python benchmarks/synthesis_luck.py --levels PutNextLocal,PickupLoc --draws 5
    python benchmarks/synthesis_luck.py --times --levels GoToSeqS5R2,SynthS5R2 --draws 3   # only the two times

Every search is kept under --out. A benchmark that was stopped goes on with the next search.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

from babyai_recovery import LEVELS, collected

from grace_irl.atomic import write_atomically
from grace_irl.demos import load
from grace_irl.demos.labels import label
from grace_irl.demos.scramble import ScrambleMap
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.synthesis.grid.search import search, view
from grace_irl.synthesis.grid.sketcher import GridSketcher

OWN = ("PlaceBetween", "OpenMatchingDoor", "SortColors")
HARD = ("PickupLoc", "OpenTwoDoors", "OpenRedBlueDoors", *OWN)
NAMES = tuple(dict.fromkeys([*HARD, *LEVELS]))
COPIES, SEEDS = 5, 5
EFFORT = 10.0
SAME = 1e-6  # in nats

Found = dict[str, tuple[float, float]]
"""Cost in nats and CPU seconds of each search, by its name: "answer", "ten", "codes 1", "seed 1", …"""


def searched(demonstrations: Demonstrations, seed: int, effort: float = 1.0) -> tuple[float, float]:
    """Cost of the best reading in nats, and CPU seconds of the search; infinity if no event happens at the goals."""
    start = time.process_time()
    found = search(view(label(demonstrations, "last").train), seed, effort)
    return (found[0].cost if found else float("inf")), time.process_time() - start


def copied(demonstrations: Demonstrations, seed: int) -> Demonstrations:
    """A copy with other codes, axes and words."""
    table = ScrambleMap.draw(seed, demonstrations.items[0].trajectory)
    return replace(demonstrations, items=tuple(map(table.apply, demonstrations)))


def measured(level: str, draw: int, options: argparse.Namespace) -> Found:
    """All searches of one draw; those in its file are not made again."""
    path = options.out / f"{level}-{draw}.json"
    found: Found = json.loads(path.read_text()) if path.exists() else {}
    plain = load([collected(level, options.data, draw, "train")])
    searches: dict[str, tuple[int, int, float]] = {"answer": (0, 0, 1.0), "ten": (0, 0, EFFORT)}
    searches |= {f"codes {i}": (i, 0, 1.0) for i in range(1, COPIES + 1)}
    searches |= {f"seed {i}": (0, i, 1.0) for i in range(1, SEEDS + 1)}
    for name, (copy, seed, effort) in searches.items():
        if name not in found:
            found[name] = searched(copied(plain, copy) if copy else plain, seed, effort)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(found, indent=1))
    return found


def times(level: str, draw: int, options: argparse.Namespace) -> tuple[float, float]:
    """CPU seconds to the first program of a draw, and to the end of its search."""
    items = label(load([collected(level, options.data, draw, "train")]), "last").train
    start = time.process_time()
    sketcher = GridSketcher(items, 0)
    sketches = iter(sketcher.initial())
    sketcher.source(next(sketches))
    first = time.process_time() - start
    for _ in sketches:
        pass
    return first, time.process_time() - start


def best(found: Found, prefix: str = "") -> list[bool]:
    """Whether each search whose name begins with `prefix` found the lowest cost of all."""
    least = min(cost for cost, _ in found.values())
    return [cost <= least + SAME for name, (cost, _) in found.items() if name.startswith(prefix)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", default=",".join(NAMES), help="comma-separated names, of any level of BabyAI")
    parser.add_argument("--draws", type=int, default=1, help="draws per level, from --first on (default 1)")
    parser.add_argument("--first", type=int, default=0, help="number of the first draw (default 0)")
    parser.add_argument("--data", type=Path, default=Path("out/babyai"), help="where collected data is kept")
    parser.add_argument("--out", type=Path, default=Path("out/synthesis-luck"), help="where results are kept")
    parser.add_argument("--times", action="store_true", help="only the times to the first program and of the search")
    options = parser.parse_args()
    if options.times:
        print("| level | draw | first program, s | whole search, s |\n|---|---|---|---|")
        for level in options.levels.split(","):
            for draw in range(options.first, options.first + options.draws):
                first, whole = times(level, draw, options)
                print(f"| {level} | {draw} | {first:.1f} | {whole:.1f} |", flush=True)
        return
    print(f"{'level':18} draw | {'answer':>8} {'ten':>8} {'lowest':>8} | codes seeds |     s", flush=True)
    rows: list[Found] = []
    for level in options.levels.split(","):
        for draw in range(options.first, options.first + options.draws):
            found = measured(level, draw, options)
            rows.append(found)
            costs = (found["answer"][0], found["ten"][0], min(cost for cost, _ in found.values()))
            print(
                f"{level:18} {draw:4d} | {' '.join(f'{cost:8.3f}' for cost in costs)} "
                f"| {sum(best(found, 'codes'))}/{COPIES}   {sum(best(found, 'seed'))}/{SEEDS}   "
                f"| {found['answer'][1]:5.1f}",
                flush=True,
            )
    alike = sum(found["answer"][0] <= found["ten"][0] + SAME for found in rows)
    print(f"draws whose answer costs no more than with ten times the effort: {alike} of {len(rows)}")
    print(f"draws on which all searches find one cost: {sum(all(best(found)) for found in rows)} of {len(rows)}")
    for name, prefix in (("answers", "answer"), ("renamed copies", "codes"), ("other seeds", "seed")):
        one = [hit for found in rows for hit in best(found, prefix)]
        print(f"{name} with the lowest cost: {sum(one)} of {len(one)}")


if __name__ == "__main__":
    main()
