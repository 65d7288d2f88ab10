"""Searches for rewards that are judged by trained policies, at equal numbers of requests for programs.

    python benchmarks/policy_search.py references --task reacher        # rewards by hand, five seeds each
    python benchmarks/policy_search.py search --task reacher --seeds 3  # every search, 32 programs each
    python benchmarks/policy_search.py search --task reacher --seeds 1 --programs 80
    python benchmarks/policy_search.py search --task snake --ablations  # RF-Agent and FORGE without one of their parts
    python benchmarks/policy_search.py recorded --task reacher          # the programs of a large model, 24 each
    python benchmarks/policy_search.py table --task reacher             # with --ablations, beside the whole searches
    python benchmarks/policy_search.py remarks --task reacher           # spreads, and winners beside rewards by hand
    python benchmarks/policy_search.py depths --task snake              # scores of FORGE's programs by depth
    python benchmarks/policy_search.py early --task snake               # what early evaluations tell, by runs in --out
    python benchmarks/policy_search.py overhead --task reacher --programs 80

The writer is the same for all searches: the one without a model. Recorded runs of a large model are replayed with their
recorded scores; Spearman's correlation says whether RF-Agent's opinions foretell the scores. Searches ask for eight
programs at a time. At 32 programs RF-Agent begins with four and expands a node into five, so that its tree has more
than two layers; at other numbers it has the paper's settings. A program that a search proposes twice is trained once;
FORGE, whose pairs often bring the same program again, goes on until it has trained as many programs as the others
requested. A winner is trained again with five seeds that its search did not use, so the table has the score of the
search and the fresh score side by side. A finished search is a line of a file in `benchmarks/policy_searches`, one for
each task and number of programs: the program that it found, its score in the search, and the scores of its fresh
trainings. Runs are kept under `--out`: a stopped one goes on where it was. A training depends on task, program and seed
alone, so a search takes over the finished trainings of other searches with its seed; their programs count all the same.
`references.jsonl` there has the scores of rewards by hand.

`overhead` measures what a run takes beside its trainings. Each search runs with very short trainings, and then again
with these trainings taken over, so that it trains nothing. The time of the second run is that of the search, the store,
the writer, and the dry runs in the sandbox. The share is that of this time in the whole, with the time of one training
of the task's own length, alone on this machine, for each program that was trained.
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from policy_searches.early import early
from policy_searches.results import (
    BY_HAND,
    BY_MODEL,
    FINISHED,
    PROGRAMS,
    Found,
    append,
    depths,
    file_of,
    finished,
    folder_of,
    recorded,
    references,
    remarks,
    table,
    told,
)
from scipy.stats import spearmanr

import grace_irl
from grace_irl.errors import GraceError
from grace_irl.methods.search_panels import scores_by_depth
from grace_irl.rl.curve import Point
from grace_irl.runs.record import candidate
from grace_irl.runs.run import opened
from grace_irl.search.tree import opinion
from grace_irl.tasks.task import Task, read_task
from grace_irl.tasks.training import TRAININGS, job, result_of
from grace_irl.work import LocalExecutor

RECORDINGS = Path(__file__).resolve().parent.parent / "tests" / "recordings" / "large_model_policies"
VERBS = ("references", "search", "recorded", "table", "remarks", "depths", "early", "overhead")
FRESH = tuple(range(9001, 9006))
"""Seeds of fresh trainings."""
ROOM = 10
"""Requests of FORGE, at most, for each program that it trains: its pairs often bring the same program again."""
NAMES = ("random", "rf-agent", "forge", "eureka", "revolve", "policy-evolution", "map-elites")
"""The methods of the searches."""
ABLATIONS: Mapping[str, tuple[str, Sequence[str]]] = {
    "forge-no-engineer": ("forge", ("forge.first={programs}", "forge.rounds=0")),
    "forge-no-planner": ("forge", ("forge.planner=false",)),
    "forge-pairs-at-random": ("forge", ("forge.choice=uniform",)),
    "rf-agent-depth-first": ("rf-agent", ("tree.rule=depth-first",)),
    "rf-agent-breadth-first": ("rf-agent", ("tree.rule=breadth-first",)),
    "rf-agent-greedy": ("rf-agent", ("tree.rule=greedy",)),
    "rf-agent-no-structure": ("rf-agent", ('tree.actions="0,1,1,1,1"',)),
    "rf-agent-no-weights": ("rf-agent", ('tree.actions="1,0,1,1,1"',)),
    "rf-agent-no-crossover": ("rf-agent", ('tree.actions="1,1,0,1,1"',)),
    "rf-agent-no-path": ("rf-agent", ('tree.actions="1,1,1,0,1"',)),
    "rf-agent-no-different": ("rf-agent", ('tree.actions="1,1,1,1,0"',)),
}
"""Searches without one of their parts: method, and settings for a number of programs. FORGE's Engineer makes all
programs but the first ones; in the paper's table 3, leaving it out is "without selective evolution"."""
REACHED = "float(np.hypot(next_state[8], next_state[9]))"
REFERENCES: Mapping[str, Mapping[str, str]] = {
    "reacher": {
        "native": "",
        "score": f"float({REACHED} <= 0.02)",
        "exp(-20 d)": f"float(np.exp(-20 * {REACHED}))",
        "exp(-20 d) - 0.02 a²": f"float(np.exp(-20 * {REACHED}) - 0.02 * np.sum(action**2))",
    },
    "snake": {
        "native": "",
        "score": "float(next_state[4] > state[4])",
        "score + nearer food": "float(next_state[4] > state[4]) + 0.1 * float(np.abs(state[:2] - state[2:4]).sum() "
        "- np.abs(next_state[:2] - state[2:4]).sum())",
    },
    "flappy-bird": {
        "native": "",
        "score": "float(np.any((state[:9:3] > 44 / 288) & (next_state[:9:3] <= 44 / 288)))",
    },
    "acrobot": {"native": ""},
}
"""Rewards by hand: expressions in state, action and next_state; "" for the environment's own reward."""
LONGER = PROGRAMS + 1
LONG = f"native, {LONGER} times as long"
"""The environment's own reward with as many steps as a search and one training on its winner have together."""
LONG_WINNER = f"best of the searches, {LONGER} times as long"
"""The winner with the highest score in its search, trained for as many steps, beside those of its search."""


def settings(name: str, programs: int) -> Sequence[str]:
    """The settings of a search for a number of programs, eight at a time."""
    if name in ABLATIONS:
        method, own = ABLATIONS[name]
        return (*settings(method, programs), *(each.format(programs=programs) for each in own))
    rounds = programs // 8
    return {
        "random": (f"random.programs={programs}",),
        "rf-agent": (
            f"tree.programs={programs}",
            *(("tree.first=4", 'tree.actions="1,1,1,1,1"') if programs == PROGRAMS else ()),
        ),
        "forge": ("forge.first=8", f"forge.rounds={ROOM * rounds}", "forge.pairs=8", "forge.size=8"),
        "eureka": (f"eureka.rounds={rounds}", "eureka.samples=8"),
        "revolve": (f"revolve.programs={programs}", "revolve.islands=2", "revolve.size=8"),
        "policy-evolution": (
            "policy_evolution.population=8",
            f"policy_evolution.generations={rounds - 1}",
            "policy_evolution.parent_temperature=0.1",
        ),
        "map-elites": (f"map_elites.programs={programs}", "map_elites.first=8", "search.lag=8"),
    }[name]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("--task", default="reacher", help="name or file of the task (default reacher)")
    parser.add_argument("--seeds", type=int, default=3, help="search seeds (default 3)")
    parser.add_argument("--methods", default=",".join(NAMES), help="searches, by comma (default all)")
    parser.add_argument("--ablations", action="store_true", help="the searches without one of their parts")
    parser.add_argument("--programs", type=int, default=PROGRAMS, help=f"of each search (default {PROGRAMS})")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="trainings at once (default: cores)")
    parser.add_argument("--out", type=Path, default=Path("out/policy-search"), help="where all runs are kept")
    options = parser.parse_args()
    if options.ablations and options.programs != PROGRAMS:
        parser.error(f"--ablations: expected {PROGRAMS} programs, so that the whole tree has one child of each action")
    task = read_task(options.task)
    place = options.out / task.name
    names = list(ABLATIONS) if options.ablations else options.methods.split(",")
    if options.verb == "references":
        FINISHED.mkdir(exist_ok=True)
        for name, source in by_hand(task).items():
            if (scores := references(task).get(name)) is None:
                times = LONGER if name in (LONG, LONG_WINNER) else 1
                folder = place / "references" / name.replace("/", " ")
                scores = fresh(task, source, folder, options.workers, times=times)
                append(BY_HAND, {"task": task.name, "reward": name, "fresh": scores})
            print(f"{name}: {told(scores)}", flush=True)
    elif options.verb == "search":
        FINISHED.mkdir(exist_ok=True)
        for seed in range(options.seeds):
            for name in names:
                if (found := finished(task, options.programs).get((name, seed))) is None:
                    found = searched(task, name, seed, place, options)
                    append(file_of(task, options.programs), asdict(found))
                print(f"{name}, seed {seed}: search {found.score:.3f}, fresh {told(found.fresh)}", flush=True)
    elif options.verb == "recorded":
        for path in sorted(RECORDINGS.glob(f"*-{task.name}.jsonl")):
            again = recorded(task).get(path.stem)
            if again is None:
                again = replayed(task, options.task, path, place / f"recorded-{path.stem}", options.workers)
                append(BY_MODEL, {"task": task.name, **again})
            print(f"{path.stem}: search {again['score']:.3f}, fresh {told(again['fresh'])}", flush=True)
            if judged := again["opinions"]:
                rank = spearmanr(*zip(*judged, strict=True))
                print(f"  opinions and scores of {len(judged)} programs: {rank.statistic:+.2f}, p = {rank.pvalue:.2f}")
    elif options.verb == "remarks":
        print(remarks(task, names, options.programs))
    elif options.verb == "early":
        print(early(place))
    elif options.verb == "depths":
        runs = finished(task, options.programs).values()
        print(depths([each.depths for each in runs if each.search == "forge" and each.depths]))
    elif options.verb == "overhead":
        shutil.rmtree(place / "one", ignore_errors=True)
        begun = time.monotonic()
        fresh(task, reward("0.0"), place / "one", 1, FRESH[:1])
        training = time.monotonic() - begun
        print(f"one training: {training:.1f} s\n\n| search | trained | s beside trainings | share |\n|---|---|---|---|")
        for name in names:
            trained, took = overhead(task, name, place / "overhead", options)
            share = took / (took + trained * training)
            print(f"| {name} | {trained} | {took:.1f} | {share:.2%} |", flush=True)
    else:
        wholes = {name: ABLATIONS[name][0] for name in names if name in ABLATIONS}
        print(table(task, (*dict.fromkeys(wholes.values()), *names), options.programs, wholes))


def by_hand(task: Task) -> dict[str, str]:
    """The programs to compare searches with, by name: rewards by hand, then `LONG` and, if there is one, `LONG_WINNER`.

    "" stands for the environment's own reward.
    """
    found = {name: reward(expression) for name, expression in REFERENCES[task.name].items()} | {LONG: ""}
    winners = finished(task, PROGRAMS).values()
    return found | ({LONG_WINNER: max(winners, key=lambda each: each.score).source} if winners else {})


def reward(expression: str) -> str:
    """A reward program of one expression."""
    if not expression:
        return ""
    head = "import numpy as np\n\n\nclass Reward:\n    def reward_fn(self, state, action, next_state):\n"
    return f"{head}        return {expression}\n"


def fresh(
    task: Task, source: str, folder: Path, workers: int, seeds: Sequence[int] = FRESH, *, times: int = 1
) -> list[float]:
    """The scores of the best evaluations of fresh trainings on a reward, `times` as long as the task says."""
    places = [folder / f"fresh-{seed}" for seed in seeds]
    with LocalExecutor(workers) as executor:
        futures = [
            executor.submit(job(task, place, source, seed, times * task.steps, task.evaluations))
            for place, seed in zip(places, seeds, strict=True)
            if result_of(place) is None
        ]
        for future in futures:
            future.result()
    return [best(result_of(place) or ()) for place in places]


def best(curve: Sequence[Point]) -> float:
    """The highest score of a learning curve."""
    return max(point.score for point in curve if point.score is not None)


def searched(task: Task, name: str, seed: int, place: Path, options: argparse.Namespace) -> Found:
    """Run a search, or go on with a stopped one. Then train on the program that it has found."""
    programs, workers = options.programs, options.workers
    folder = place / f"{folder_of(name, programs)}-{seed}"
    run = completed(name, seed, folder / "run", options, place.glob(f"*-{seed}/run"))
    source, score = run.best.source, run.best.fitness
    known = next((each.fresh for each in finished(task, programs).values() if each.source == source), None)
    scores = known or fresh(task, source, folder, workers)
    by_depth = scores_of_depths(folder / "run") if name.startswith("forge") else ()
    return Found(name, seed, run.programs, run.seconds, score, scores, source, run.calls, by_depth)


def completed(
    name: str, seed: int, folder: Path, options: argparse.Namespace, others: Iterable[Path], sets: Sequence[str] = ()
) -> grace_irl.Run:
    """Run a search to its end in a folder, or go on with a stopped one, with the finished trainings of other runs."""
    programs, named = options.programs, f"policy.task={options.task}"
    if not (folder / "run.db").exists():
        own = (named, f"policy.trainings={options.workers}", f"search.lag={programs}", *settings(name, programs))
        try:  # the time is up before the first training, so that trainings can be taken over
            grace_irl.fit(
                method=ABLATIONS[name][0] if name in ABLATIONS else name,
                out=folder,
                seed=seed,
                workers=options.workers,
                sets=(*own, *sets),
                max_calls=programs,
                max_seconds=1e-3,
            )
        except GraceError:
            if not (folder / "run.db").exists():
                raise
    take_over(folder, others)
    run = grace_irl.fit(resume=folder, max_seconds=1e9, sets=(named,))
    while run.programs < programs and run.reason.startswith("max_calls"):
        run = grace_irl.fit(resume=folder, max_calls=run.calls + programs - run.programs, sets=(named,))
    return run


def overhead(task: Task, name: str, place: Path, options: argparse.Namespace) -> tuple[int, float]:
    """The number of trainings of a search, and the seconds that it takes if it does none of them."""
    folder, short = place / folder_of(name, options.programs), (f"policy.train_steps={task.settings.rollout}",)
    completed(name, 0, folder / "trained", options, (), short)
    shutil.rmtree(folder / "again", ignore_errors=True)
    begun = time.monotonic()
    completed(name, 0, folder / "again", options, [folder / "trained"], short)
    return len(list((folder / "again" / TRAININGS).glob("*/*/result.json"))), time.monotonic() - begun


def take_over(run: Path, others: Iterable[Path]) -> None:
    """Copy finished trainings of other runs into a run that has not done them yet."""
    for other in others:
        for training in (other / TRAININGS).glob("*/*"):
            here = run / TRAININGS / training.relative_to(other / TRAININGS)
            if result_of(training) is not None and result_of(here) is None:
                shutil.rmtree(here, ignore_errors=True)
                shutil.copytree(training, here)


def replayed(task: Task, named: str, path: Path, folder: Path, workers: int) -> dict[str, Any]:
    """Replay a recording with its scores, and train on its best program with fresh seeds."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    sets = (f"policy.task={named}", "policy.recorded_scores=true")
    run = grace_irl.fit(replay=path, out=folder / "run", workers=workers, sets=sets)
    scores = fresh(task, run.best.source, folder, workers)
    return {
        "recording": path.stem,
        "programs": run.programs,
        "requests": run.calls,
        "calls": calls(folder / "run"),
        "score": run.best.fitness,
        "fresh": scores,
        "source": run.best.source,
        "opinions": opinions(folder / "run"),
    }


def calls(folder: Path) -> int:
    """The number of a model's answers in a run: programs, repairs, descriptions and opinions."""
    with opened(folder) as (store, _):
        return sum(1 for _ in store.proposals())


def opinions(folder: Path) -> list[tuple[float, float]]:
    """The model's opinion on each valid program of a run of RF-Agent, and the program's score."""
    with opened(folder) as (store, _):
        records = store.records()
        judged = [(told.notes.get("verify"), told.program_id) for told in store.told().values()]
    return [(opinion(said), records[name].evaluation.score) for said, name in judged if said and name in records]


def scores_of_depths(run: Path) -> list[list[float]]:
    """The scores of the programs of each depth in a run of FORGE, from depth 0."""
    with opened(run) as (store, _):
        programs = [candidate(record) for record in store.records().values()]
    return list(scores_by_depth(sorted(programs, key=lambda each: each.index)).values())


if __name__ == "__main__":
    main()
