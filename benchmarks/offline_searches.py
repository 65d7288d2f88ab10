"""Searches over demonstrations from drafts, which no label has taught: how many programs does each of them need?

All searches get the same writer (`--proposer drafts`), the same data and the same number of programs. On levels of
BabyAI, a program's figures are those of `near_misses.py`, on 60 fresh episodes of each sort: hit at least 0.98, early,
false and near at most 0.02, contrast at least 0.95. Near misses are not in the training data, so the figures are also
taken without `near`. A row says how often all were met, after how many programs the fittest one so far first had them,
the mean figures of the last one, how far it follows the instruction (`follows`), and the difference of this number from
that of random search, or of the whole search, on the same draws. On classic control (`front_peers.py`), 12 + 12
episodes are searched, and the fittest program after 50, 400 and 2,000 programs is judged by its AUC between the states
of 12 + 12 fresh episodes: the mean over seeds, and the range; then the same difference, the mean size in bits, and the
AUC of the fittest programs of at most 500, 1,000 and 2,000 bits, with the number of draws that have one.

    python benchmarks/offline_searches.py                                 # all, days on one core
    python benchmarks/offline_searches.py --data GoToObj --seeds 2
    python benchmarks/offline_searches.py --ablations                     # searches without one of their parts
    python benchmarks/offline_searches.py --table                         # what was found so far
    python benchmarks/offline_searches.py --programs 400                  # all, some hours on one core
    python benchmarks/offline_searches.py --programs 400 --needed         # programs needed, a row for each level

Fresh data choose nothing. A finished search is a line of its data's file in `benchmarks/offline_results`: the benchmark
goes on with the others.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from front_peers import CONTROL, EPISODES, LONGEST, LUCK
from near_misses import LEVELS, TRAIN, Data, episodes, training
from scipy.stats import t
from sklearn.metrics import roc_auc_score

import grace_irl
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import GraceError
from grace_irl.evaluate.separation import Separation
from grace_irl.rewards.runner import InProcessRunner
from grace_irl.runs.record import candidate
from grace_irl.runs.run import opened
from grace_irl.search.ranks import Scored, merit

PROGRAMS = 2_000
FINISHED = Path(__file__).resolve().parent / "offline_results"
"""Folder of the finished searches, a file for each level or body."""
LOOKS = (50, 400, 2_000)
"""Numbers of programs after which rewards of classic control are judged."""
SIZES = (500, 1_000, 2_000)
"""Sizes in bits for which tables show the front."""
SEARCHES: Mapping[str, tuple[str, Sequence[str]]] = {
    "random": ("random", ("random.programs={programs}",)),
    "evolution": ("grace", ("search.population=20", "search.generations={generations}")),
    "evolution, T = 0.1": (
        "grace",
        ("search.population=20", "search.generations={generations}", "search.parent_temperature=0.1"),
    ),
    "MAP-Elites": ("map-elites", ("map_elites.programs={programs}",)),
    "tree (RF-Agent)": ("rf-agent", ("tree.programs={programs}",)),
    "pool (FORGE)": ("forge", ("forge.rounds={crossings}",)),
    "islands (REvolve)": ("revolve", ("revolve.programs={programs}",)),
    "greedy (Eureka)": ("eureka", ("eureka.rounds={rounds}",)),
}
"""Method and settings of each search, for a number of programs (`counts`)."""
_TREE, _POOL = "tree.programs={programs}", "forge.rounds={crossings}"
ABLATIONS: Mapping[str, tuple[str, Sequence[str]]] = {
    "tree, depth-first": ("rf-agent", (_TREE, "tree.rule=depth-first")),
    "tree, breadth-first": ("rf-agent", (_TREE, "tree.rule=breadth-first")),
    "tree, greedy": ("rf-agent", (_TREE, "tree.rule=greedy")),
    "tree without structure": ("rf-agent", (_TREE, 'tree.actions="0,2,2,1,1"')),
    "tree without weights": ("rf-agent", (_TREE, 'tree.actions="2,0,2,1,1"')),
    "tree without crossover": ("rf-agent", (_TREE, 'tree.actions="2,2,0,1,1"')),
    "tree without path": ("rf-agent", (_TREE, 'tree.actions="2,2,2,0,1"')),
    "tree without different": ("rf-agent", (_TREE, 'tree.actions="2,2,2,1,0"')),
    "pool without planner": ("forge", (_POOL, "forge.planner=false")),
    "pool, pairs at random": ("forge", (_POOL, "forge.choice=uniform")),
}
"""The same for searches without one of their parts."""
ALL = {**SEARCHES, **ABLATIONS}
WHOLE = {
    **dict.fromkeys(SEARCHES, "random"),
    **{name: "tree (RF-Agent)" if name.startswith("tree") else "pool (FORGE)" for name in ABLATIONS},
}
"""The search that each of them stands beside in a table: the whole search, or random search."""
CONTROLLED = tuple(CONTROL)
TRAINED = ("swap", "expert", "random")
"""Kinds of episodes that the training data hold, too."""


def counts(programs: int) -> dict[str, int]:
    """The numbers in the settings of searches: generations of 20 after the first, rounds of 16, rounds of crossings."""
    return {
        "programs": programs,
        "generations": programs // 20 - 1,
        "rounds": programs // 16,
        "crossings": programs // 16 - 1,
    }


def searched(name: str, data: Demonstrations, seed: int, programs: int, folder: Path) -> list[Scored]:
    """Run a search. Return its programs in the order of requests."""
    method, settings = ALL[name]
    shutil.rmtree(folder, ignore_errors=True)
    numbers = counts(programs)
    sets = (
        *(each.format(**numbers) for each in settings),
        "stop.target_accuracy=none",
        "stop.plateau=none",
        "sandbox.workers=1",
    )
    try:
        grace_irl.fit(data, method=method, proposer="drafts", out=folder, held_out=0.0, seed=seed, sets=sets)
    except GraceError:
        return []
    with opened(folder) as (store, _):
        return sorted(map(candidate, store.records().values()), key=lambda one: one.index)


def best_so_far(programs: Sequence[Scored]) -> list[tuple[int, Scored]]:
    """The fittest program after each program that is fitter than all before it, with the number of programs by then."""
    found: list[tuple[int, Scored]] = []
    for number, each in enumerate(programs, 1):
        if each.evaluation.valid and (not found or merit(each) > merit(found[-1][1])):
            found.append((number, each))
    return found


def front(programs: Sequence[Scored]) -> list[Scored]:
    """The programs that are fitter than all smaller ones, from the smallest to the largest."""
    found: list[Scored] = []
    for each in sorted(programs, key=lambda one: one.program.size):
        if each.evaluation.valid and (not found or merit(each) > merit(found[-1])):
            found.append(each)
    return found


def figures(one: Scored, fresh: Data, kinds: Sequence[str] = ("expert", "random", "near", "swap")) -> dict[str, float]:
    """The figures of a program on fresh episodes of a level, at the threshold of its training data.

    Args:
        one: the program.
        fresh: the episodes by kind.
        kinds: the kinds of episodes to judge; kinds without episodes are left out.
    """
    separation = Separation.of(one.evaluation)
    assert separation is not None
    found: dict[str, Any] = {}
    with InProcessRunner(one.program.source, "reward.py") as runner:
        for kind in (kind for kind in kinds if kind in fresh):
            rewards = runner.rewards([each.trajectory for each in fresh[kind]])
            paid = [values > separation.threshold for values in rewards]
            if kind == "expert":
                found["hit"] = np.mean([each[-1] for each in paid])
                found["early"] = np.mean([each[:-1].any() for each in paid])
            elif kind == "swap":
                found["contrast"] = np.mean([not each[-1] for each in paid])
            else:
                found["false" if kind == "random" else kind] = np.mean([each.any() for each in paid])
    return {key: float(value) for key, value in found.items()}


def good(one: Scored, fresh: Data, kinds: Sequence[str] = TRAINED) -> bool:
    """Whether a program's figures of these kinds are as they should be. The first wrong one ends the judgement."""
    return all(_right(figures(one, fresh, [kind])) for kind in kinds)


def _right(found: Mapping[str, float]) -> bool:
    right = found.get("hit", 1.0) >= 0.98 and found.get("contrast", 1.0) >= 0.95
    return right and all(found.get(key, 0.0) <= 0.02 for key in ("early", "false", "near"))


def on_level(level: str, name: str, seed: int, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """A search on a level: when its figures are met, with near misses and without, and those of the last program."""
    train, fresh = episodes(level, seed, options.episodes, TRAIN)
    steps = best_so_far(searched(name, training(train, "swaps"), seed, options.programs, folder))
    but_near = [(number, one) for number, one in steps if good(one, fresh)]
    met = next((number for number, one in but_near if good(one, fresh, ["near"])), None)
    return {
        "met": met,
        "met_but_near": but_near[0][0] if but_near else None,
        "last": figures(steps[-1][1], fresh) if steps else {"hit": 0.0, "early": 0.0, "false": 0.0},
    }


def played(name: str, seed: int, luck: float) -> Trajectory:
    """An episode with its actions, of which this share is random."""
    task, expert, _ = CONTROL[name]
    environment, rng = gymnasium.make(task), np.random.default_rng(seed)
    environment.action_space.seed(seed)
    state, done = environment.reset(seed=seed)[0], False
    states, actions = [state], []
    while not done and len(states) < LONGEST:
        actions.append(environment.action_space.sample() if rng.random() < luck else expert(state))
        state, _, ended, cut, _ = environment.step(actions[-1])
        states.append(state)
        done = ended or cut
    return Trajectory(np.array(states), np.array(actions))


def control(name: str, first: int) -> Demonstrations:
    """Episodes whose seeds begin at `first`. Half of the negatives are random, and the others half random."""
    items = [Demonstration(played(name, first + n, LUCK["expert"]), "expert") for n in range(EPISODES)]
    for n in range(EPISODES, 2 * EPISODES):
        items.append(Demonstration(played(name, first + n, LUCK["half" if n % 2 else "random"]), "negative"))
    return Demonstrations(Metadata("vector", CONTROL[name][2], label="all"), tuple(items))


def on_control(name: str, search: str, seed: int, programs: int, folder: Path) -> dict[str, Any]:
    """A search on classic control: AUC on fresh episodes and size in bits, of the fittest program and of the front."""
    train, fresh = (control(name, 10_000 * (2 * seed + part)) for part in range(2))
    found = searched(search, train, seed, programs, folder)
    steps = best_so_far(found)
    looks: dict[str, Any] = {}
    for look in (look for look in LOOKS if look <= programs):
        best = [one for number, one in steps if number <= look]
        if best:
            looks[str(look)] = [judged(best[-1], fresh), best[-1].program.size]
    return {"looks": looks, "front": [[judged(one, fresh), one.program.size] for one in front(found)]}


def judged(one: Scored, fresh: Demonstrations) -> float:
    """The AUC of a program between the states of fresh experts and negatives."""
    sides: dict[str, list[np.ndarray[Any, Any]]] = {"expert": [], "negative": []}
    with InProcessRunner(one.program.source, "reward.py") as runner:
        for each in fresh:
            trajectory: Trajectory = each.trajectory
            (values,) = runner.rewards([trajectory])
            sides[each.role].append(values[~np.isnan(values)])
    experts, negatives = (np.concatenate(found) for found in sides.values())
    return float(roc_auc_score([1] * len(experts) + [0] * len(negatives), np.concatenate([experts, negatives])))


def file_of(place: str, programs: int) -> Path:
    """The file of the finished searches on a level or body with a number of programs."""
    return FINISHED / (f"{place}.jsonl" if programs == PROGRAMS else f"{place}-{programs}.jsonl")


def finished(place: str, programs: int) -> dict[tuple[str, int], dict[str, Any]]:
    """The results of the finished searches on a level or body, by name and seed."""
    path = file_of(place, programs)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    return {(each["search"], each["seed"]): each for each in rows}


def row(place: str, name: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """The result of a search, or what an earlier run found."""
    programs = options.programs
    known = finished(place, programs).get((name, seed))
    if known is not None:
        return known
    folder = options.out / place / f"{ALL[name][0]}-{list(ALL).index(name)}-{seed}-{programs}"
    if place in CONTROLLED:
        found = on_control(place, name, seed, programs, folder)
    else:
        found = on_level(place, name, seed, options, folder)
    found = {"search": name, "seed": seed, **found}
    FINISHED.mkdir(exist_ok=True)
    with file_of(place, programs).open("a", encoding="utf-8") as file:
        file.write(json.dumps(found) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    return found


def told(place: str, rows: Sequence[Mapping[str, Any]], others: Mapping[int, Mapping[str, Any]]) -> str:
    """The cells of a table.

    For levels: `met`, the last figures, and `follows` with its difference from `others`. For classic control: AUC after
    each of `LOOKS`, the difference of the last from `others`, its size in bits, and the AUC of the fittest program of
    at most each of `SIZES`.

    Args:
        place: level or body.
        rows: the results of a search, one for each seed.
        others: by seed, the results of the search that this one stands beside; none beside itself.
    """
    cells = []
    if place in CONTROLLED:
        for look in LOOKS:
            known = [each["looks"][str(look)] for each in rows if str(look) in each["looks"]]
            values = [value for value, _ in known]
            cells.append(f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})" if values else "-")
        cells.append(ahead(rows, others, lambda each: _last(each)[0]))
        cells.append(f"{np.mean([_last(each)[1] for each in rows]):,.0f}")
        for most in SIZES:
            fronts = [[value for value, size in each.get("front", ()) if size <= most] for each in rows]
            ends = [each[-1] for each in fronts if each]
            cells.append(f"{np.mean(ends):.3f} ({len(ends)})" if ends else "-")
        return " | ".join(cells)
    met = sorted(each["met"] for each in rows if each["met"] is not None)
    cells.append(f"{len(met)} of {len(rows)}" + (f" ({', '.join(map(str, met))})" if met else ""))
    for key in ("hit", "early", "false", "near", "contrast"):
        values = [each["last"][key] for each in rows if key in each["last"]]
        cells.append(f"{np.mean(values):.2f}" if values else "-")
    known = [value for value in map(follows, rows) if value is not None]
    cells.append(f"{np.mean(known):.2f}" if known else "-")
    cells.append(ahead(rows, others, follows))
    return " | ".join(cells)


def follows(found: Mapping[str, Any]) -> float | None:
    """The degree to which the last program follows the instruction: hit + contrast - 1; None on a level without swaps.

    Contrast alone rises if a reward pays less, whatever the instruction says: one that pays nothing has contrast 1.
    This number is 0 for all rewards that ignore the instruction, and 1 for the right one.
    """
    last = found["last"]
    return last["hit"] + last["contrast"] - 1 if "contrast" in last else None


def _last(found: Mapping[str, Any]) -> tuple[float | None, float]:
    """The AUC and the size of the fittest program at the last look of a search; None and NaN if it found none."""
    looks = found["looks"]
    return looks[max(looks, key=int)] if looks else (None, np.nan)


def ahead(
    rows: Sequence[Mapping[str, Any]],
    others: Mapping[int, Mapping[str, Any]],
    value: Callable[[Mapping[str, Any]], float | None],
) -> str:
    """The mean difference of a value between results of the same draw, with its 95 % interval (Student's t)."""
    pairs = [(value(each), value(others[each["seed"]])) for each in rows if each["seed"] in others]
    gains = np.array([one - other for one, other in pairs if one is not None and other is not None])
    if len(gains) < 2:
        return "-"
    half = t.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / np.sqrt(len(gains))
    return f"{gains.mean():+.3f} ± {half:.3f}"


def needed(programs: int) -> str:
    """The programs needed on each level: for each search the median over draws, and how many of them it met.

    The figures are those without near misses. If they are met with near misses, too, less often or later, a second pair
    of numbers says so. A row that an earlier version wrote has only the figures with near misses.

    A draw that is not met counts as more than all programs. A search without results for this number of programs is
    shown by its runs of `PROGRAMS`, up to this number.
    """
    results = {level: finished(level, PROGRAMS) | finished(level, programs) for level in LEVELS}
    names = [name for name in SEARCHES if any(name == search for found in results.values() for search, _ in found)]
    rows = [f"| level | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for level, found in results.items():
        cells = []
        for name in names:
            own = [each for (search, _), each in found.items() if search == name]
            known = [each.get("met_but_near", each["met"]) for each in own]
            but_near, met = _needed(known, programs), _needed([each["met"] for each in own], programs)
            cells.append(but_near if but_near == met else f"{but_near}; with near misses: {met}")
        if any(cells):
            rows.append(f"| {level} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _needed(met: Sequence[int | None], programs: int) -> str:
    """The median of the numbers, and how many there are of at most `programs`; "" without any draw."""
    soon = [number if number is not None and number <= programs else np.inf for number in met]
    median = np.median(soon) if soon else np.nan
    share = f"({np.isfinite(soon).sum()} of {len(soon)})"
    return f"{median:.0f} {share}" if np.isfinite(median) else f"> {programs} {share}" if soon else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", default=",".join((*LEVELS, *CONTROLLED)), help="levels and bodies, by comma (default all)"
    )
    parser.add_argument("--searches", default="", help="names of searches, by semicolon (default: all of a kind)")
    parser.add_argument("--ablations", action="store_true", help="searches without one of their parts")
    parser.add_argument("--seeds", type=int, default=5, help="seeds; each has a draw of a level's data (default 5)")
    parser.add_argument("--episodes", type=Path, default=Path("out/near-misses/data"), help="where episodes are kept")
    parser.add_argument("--out", type=Path, default=Path("out/offline-searches"), help="where runs are kept")
    parser.add_argument("--table", action="store_true", help="print what was found so far")
    parser.add_argument("--needed", action="store_true", help="print the programs needed on each level so far")
    parser.add_argument("--programs", type=int, default=PROGRAMS, help=f"of each search (default {PROGRAMS:,})")
    options = parser.parse_args()
    if options.programs < 80 or options.programs % 80:
        parser.error("--programs: expected a multiple of 80, which all searches divide into their rounds")
    if options.needed:
        print(needed(options.programs))
        return
    for place in options.data.split(","):
        for name in options.searches.split(";") if options.searches else ABLATIONS if options.ablations else SEARCHES:
            rows = []
            for seed in range(options.seeds):
                if not options.table or (name, seed) in finished(place, options.programs):
                    rows.append(row(place, name, seed, options))
            if rows:
                others = {
                    seed: found
                    for (other, seed), found in finished(place, options.programs).items()
                    if other == WHOLE.get(name) != name
                }
                print(f"| {place} | {name} | {told(place, rows, others)} |", flush=True)


if __name__ == "__main__":
    main()
