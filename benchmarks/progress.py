"""Steadiness of rewards that the synthesiser reshapes, and the cost of a state: the tables of docs/synthesis.md.

For each level and seed: a reward is fitted to 8 expert and 8 random trajectories, and written again in the first three
of its nine versions that pay for progress (0.4 at most). Monotonicity is Kendall's tau of reward against time along 100
held-out experts; accuracy is on them and on 100 held-out random trajectories. Times are CPU time in this process, of
the four programs in turn on the same states, the median of turns. Nothing is chosen from several runs.

    python benchmarks/progress.py                      # six levels, seeds 0 to 2; about 20 minutes on a free core
    python benchmarks/progress.py --levels GoToLocalS8N7 --seeds 1

What is done is kept under --out, and a benchmark that was stopped goes on where it was. It exits with 1 where a
version has a lower accuracy than the reward that it was made of.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from babyai_recovery import data

import grace_irl
from grace_irl.atomic import write_atomically
from grace_irl.demos import load
from grace_irl.demos.labels import label
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.synthesis.grid.source import FORMS
from grace_irl.synthesis.reshaper import Reshaper

LEVELS = {
    "GoToLocalS8N7": "faced",
    "PickupLoc": "taken, sides",
    "OpenRedDoor": "changed",
    "OpenDoorColor": "changed, 22 x 22 cells",
    "OpenTwoDoors": "changed, two steps",
    "PutNextLocalS5N3": "placed",
}
"""Level, and what happens at its goals."""
PLAIN = "plain"
KINDS = (PLAIN, *FORMS)
TIMED = 2_000
"""States on which programs are timed, of whole trajectories."""

Row = dict[str, Any]


def programs(train: Demonstrations, seed: int, max_seconds: float) -> dict[str, str]:
    """Sources of the fitted reward and of its versions that pay for progress, by form."""
    with tempfile.TemporaryDirectory() as folder:
        run = grace_irl.fit(train, out=Path(folder) / "run", held_out=0.0, seed=seed, max_seconds=max_seconds)
        source = run.best.source
    reshaper = Reshaper(label(train, "last"))
    found = {PLAIN: source}
    for version, form in enumerate(FORMS):
        proposal = reshaper.reshape(source, version)
        if proposal.failure:
            raise SystemExit(proposal.failure)
        found[form] = proposal.source
    return found


def scores(sources: Mapping[str, str], test: Demonstrations) -> dict[str, dict[str, float | None]]:
    """Held-out monotonicity and accuracy of each program, from the sandbox."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind, source in sources.items():
            path = Path(folder) / "reward.py"
            path.write_text(source, encoding="utf-8")
            score = grace_irl.score(path, test)
            found[kind] = {"monotonicity": score.monotonicity, "accuracy": score.metrics.accuracy}
    return found


def microseconds(sources: Mapping[str, str], test: Demonstrations, turns: int) -> dict[str, float]:
    """CPU time for a state of each program: the synthesiser wrote them, so they run in this process."""
    played, states = [], 0
    for pair in zip(*([one for one in test if one.role == role] for role in ("expert", "negative")), strict=True):
        if states >= TIMED:
            break
        played += [(item.trajectory.extra_info, list(item.trajectory.states.astype("int64"))) for item in pair]
        states += sum(len(item.trajectory.states) for item in pair)
    makers: dict[str, Any] = {}
    for kind, source in sources.items():
        namespace: dict[str, Any] = {"__name__": "reward"}
        exec(compile(source, kind, "exec"), namespace)
        makers[kind] = namespace["Reward"]
    taken: dict[str, list[float]] = {kind: [] for kind in sources}
    for _ in range(turns):
        for kind, maker in makers.items():
            began = time.process_time()
            for said, trajectory in played:
                reward_fn = maker(said).reward_fn
                for state in trajectory:
                    reward_fn(state)
            taken[kind].append(1e6 * (time.process_time() - began) / sum(len(each) for _, each in played))
    return {kind: statistics.median(times) for kind, times in taken.items()}


def measured(level: str, seed: int, options: argparse.Namespace) -> Row:
    """One level and seed; from its file, where it was measured before."""
    path = options.out / f"{level}-{seed}.json"
    if not path.exists():
        train, test = (load([folder]) for folder in data(level, options.data, seed))
        sources = programs(train, seed, options.max_seconds)
        found = {"scores": scores(sources, test), "microseconds": microseconds(sources, test, options.turns)}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(found, indent=1))
        print(f"  {level}, seed {seed}: done", file=sys.stderr, flush=True)
    row: Row = json.loads(path.read_text())
    return row


def means(rows: list[Row], number: str) -> list[float]:
    """Of a score over seeds, for each kind of program."""
    return [statistics.mean(row["scores"][kind][number] for row in rows) for kind in KINDS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", default=",".join(LEVELS), help="comma-separated names, of any level of BabyAI")
    parser.add_argument("--seeds", type=int, default=3, help="of data and search, from 0 on (default 3)")
    parser.add_argument("--max-seconds", type=float, default=120.0, help="search time per fit (default 120)")
    parser.add_argument("--turns", type=int, default=7, help="of each program that is timed (default 7)")
    parser.add_argument("--data", type=Path, default=Path("out/babyai"), help="where collected data is kept")
    parser.add_argument("--out", type=Path, default=Path("out/progress"), help="where results are kept")
    options = parser.parse_args()
    levels = options.levels.split(",")
    table = {level: [measured(level, seed, options) for seed in range(options.seeds)] for level in levels}
    lower = []
    print(f"| level | what happens | {' | '.join(KINDS)} | accuracy |\n|---|---|{'---|' * len(KINDS)}---|")
    for level, rows in table.items():
        accuracy = means(rows, "accuracy")
        if min(accuracy) < accuracy[0]:
            lower.append(level)
        cells = " | ".join(f"{tau:.2f}" for tau in means(rows, "monotonicity"))
        said = f"{accuracy[0]:.4f}" if min(accuracy) == max(accuracy) else f"{min(accuracy):.4f} to {max(accuracy):.4f}"
        print(f"| {level} | {LEVELS.get(level, '')} | {cells} | {said} |")
    print(f"\n| microseconds a state | {' | '.join(KINDS)} |\n|---|{'---|' * len(KINDS)}")
    for level, rows in table.items():
        times = [statistics.median(row["microseconds"][kind] for row in rows) for kind in KINDS]
        print(f"| {level} | {' | '.join(f'{each:.1f}' for each in times)} |")
    if lower:
        print(f"a version has a lower accuracy: {', '.join(lower)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
