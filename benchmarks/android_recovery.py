"""Rewards from real Android screens: goals of `android/problems.py`, without a model and by a model's recorded answers.

The fit sees the training data only; held-out screens are scored afterwards and choose nothing.

    python benchmarks/android_recovery.py fit                # the synthesiser on every problem; a minute or two each
    python benchmarks/android_recovery.py step               # write prompts, read answers, say what waits
    python benchmarks/android_recovery.py table              # held-out results of the answers
    python benchmarks/android_recovery.py record             # one recording per run, for `fit --replay`
    python benchmarks/android_recovery.py replay             # held-out results of the recordings
    python benchmarks/android_recovery.py screens --problem alarm      # which screens are where

`positive` and `negative` are held-out states; `accuracy`, `auc` and `separated` are on them; `further` is the accuracy
of a reward from real screens on edited ones; `lines` are those of the program.

A prompt is out/android/answers/PROBLEM/NAME.prompt.md and its answer lies beside it, NAME.answer.md, by whoever
answers: a person with a chat window, or a script around any model that sees nothing but the prompt. `fit`, `table`
and `replay` exit with 1 where a required problem (alarm, reminder, two-tasks) is not separated on held-out screens.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from android.problems import Problem, problems
from large_model_recovery import Case, row, step

import grace_irl
from grace_irl.demos.scramble import ScrambleMap
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.runs.caller import Parts
from grace_irl.runs.fit import start
from grace_irl.runs.recording import recorded_config, write_recording
from grace_irl.runs.run import best_record, opened

SCRAMBLED = ("alarm", "reminder", "choice")
DATA = Path(__file__).parents[1] / ".." / "shared" / "data" / "android"


def cases(arguments: argparse.Namespace) -> Iterator[Problem]:
    """Every requested problem."""
    wanted = arguments.problem.split(",") if arguments.problem else None
    for problem in problems(arguments.data):
        if wanted and problem.name not in wanted:
            continue
        yield problem
        if problem.name in SCRAMBLED and arguments.scrambled:
            table = ScrambleMap.draw(arguments.seed, problem.train[0].trajectory)
            train, test = (_scrambled(part, table) for part in (problem.train, problem.test))
            name = f"{problem.name}-scrambled"
            yield replace(problem, name=name, train=train, test=test, required=False, further=None)


def _scrambled(demonstrations: Demonstrations, table: ScrambleMap) -> Demonstrations:
    return Demonstrations(table.metadata(demonstrations.metadata), tuple(table.apply(item) for item in demonstrations))


def fitted(problem: Problem, arguments: argparse.Namespace) -> dict[str, object]:
    """The synthesiser's result on a problem."""
    folder = arguments.runs / f"fit-{problem.name}"
    shutil.rmtree(folder, ignore_errors=True)
    settings = {"seed": arguments.seed, "max_seconds": arguments.max_seconds, "workers": arguments.workers}
    run = grace_irl.fit(problem.train, out=folder, held_out=0.0, **settings)
    return about(problem, folder) | {"seconds": run.seconds, "tried": run.programs}


def about(problem: Problem, run: Path) -> dict[str, object]:
    """Held-out results of a run."""
    found = row(Case(problem.name, problem.train, problem.test), run)
    further = None
    if problem.further is not None:
        further = grace_irl.score(run / "reward.py", problem.further, workers=1).metrics.accuracy
    with opened(run) as (store, _):
        lines = len(best_record(store, run).program.source.splitlines())
    marks = {"edited": problem.edited, "required": problem.required, "further": further, "lines": lines}
    counts = Counter(item.role for item in problem.test)
    return found | marks | {"positive": counts["expert"], "negative": _states(problem.test) - counts["expert"]}


def _states(demonstrations: Demonstrations) -> int:
    return sum(len(item.trajectory.states) for item in demonstrations)


def shown(one: dict[str, object], columns: tuple[str, ...]) -> str:
    """A row of the table."""

    def cell(name: str) -> str:
        value = one[name]
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, float):
            return f"{value:.1f}" if name == "seconds" else f"{value:.4f}"
        return "-" if value is None else str(value)

    return f"{one['run']!s:20}" + "".join(f"{cell(name):>10}" for name in columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("fit", "step", "table", "record", "replay", "screens"))
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the Android data")
    parser.add_argument("--problem", default="", help="comma-separated names (default: all)")
    parser.add_argument("--scrambled", action="store_true", help="scrambled copies, too, of alarm, reminder and choice")
    parser.add_argument("--seed", type=int, default=0, help="of the search and of the scrambling (default 0)")
    parser.add_argument("--max-seconds", type=float, default=120.0, help="search time per fit (default 120)")
    parser.add_argument("--workers", type=int, default=1, help="sandbox processes (default 1)")
    parser.add_argument("--runs", type=Path, default=Path("out/android"), help="where runs and prompts are kept")
    parser.add_argument("--recordings", type=Path, default=Path("tests/recordings/large_model_android"))
    parser.add_argument("--json", type=Path, help="also write every row to this file")
    arguments = parser.parse_args()
    rows: list[dict[str, object]] = []
    own = ("seconds", "tried") if arguments.verb == "fit" else ("answers",)
    columns = ("positive", "negative", "train", "accuracy", "auc", "separated", "further", "lines", *own)
    if arguments.verb in ("fit", "table", "replay"):
        print(f"{'':20}" + "".join(f"{name:>10}" for name in columns))
    for problem in cases(arguments):
        name = problem.name
        run = arguments.runs / name
        if arguments.verb == "screens":
            for side, part in (("train", problem.train), ("held out", problem.test)):
                for item in part:
                    print(f"{name:16} {side:8} {item.role:8} {item.trajectory.source}: {item.trajectory.extra_info}")
        elif arguments.verb == "fit":
            rows.append(fitted(problem, arguments))
            print(shown(rows[-1], columns), flush=True)
        elif arguments.verb == "step":
            waits = step(Case(name, problem.train, problem.test), arguments.runs, 1.0)
            print(f"{name:20} {'waits: ' + waits if waits else 'done'}", flush=True)
        elif arguments.verb == "replay":
            recording = arguments.recordings / f"{name}.jsonl"
            if recording.exists():
                shutil.rmtree(run, ignore_errors=True)
                start(recorded_config(recording), run, Parts(demonstrations=problem.train))
                rows.append(about(problem, run))
                print(shown(rows[-1], columns), flush=True)
        elif (run / "reward.py").exists():
            rows.append(about(problem, run))
            print(shown(rows[-1], columns), flush=True)
            if arguments.verb == "record":
                arguments.recordings.mkdir(parents=True, exist_ok=True)
                with opened(run) as (store, config):
                    write_recording(store, config, arguments.recordings / f"{name}.jsonl")
    if arguments.verb == "record":
        (arguments.recordings / "results.json").write_text(json.dumps(rows, indent=1) + "\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    if arguments.verb in ("fit", "table", "replay"):
        missed = [str(one["run"]) for one in rows if one["required"] and not one["separated"]]
        print("required: held-out screens separated:", "met" if not missed else f"missed on {', '.join(missed)}")
        if missed:
            sys.exit(1)


if __name__ == "__main__":
    main()
