"""The gain from a served model: fitness per program for a model, synthesis, both, and samples without evolution.

At equal seconds of search, on BabyAI GoToObj (8 + 8 trajectories, plain and scrambled) and on MuJoCo Hopper (one expert
trajectory against random and suboptimal ones). Arms:

- `0-shot`: the model's first programs, as many as the time gives, no evolution;
- `model`: GRACE's evolution, in steady state, with the model alone;
- `synthesis`: no model;
- `seeded`: the first population from the synthesiser, the model mutates it.

The held-out data choose nothing; each arm runs once, with the seed given. A small model is weak: its figures are
reported as they are. Needs a running server:

    grace-irl serve --model …                                        # or any OpenAI-compatible server
    python benchmarks/model_recovery.py --llm-url http://127.0.0.1:8000 --seconds 300
"""

from __future__ import annotations

import argparse
import json
import tempfile
import urllib.request
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from babyai_recovery import data, scrambled
from mujoco_recovery import halves

import grace_irl
from grace_irl.demos import load
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import GraceError
from grace_irl.runs.record import candidate
from grace_irl.runs.run import opened
from grace_irl.search.ranks import winner

ARMS = ("0-shot", "model", "synthesis", "seeded")
PROBLEMS = ("GoToObj plain", "GoToObj scrambled", "Hopper")
MARKS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Numbers of programs at which the best fitness so far is printed."""


@dataclass(frozen=True)
class Row:
    """One arm on one problem.

    Attributes:
        programs: asked for; of those valid: share that ran on every state.
        curve: best train fitness (the winner's) after each number of programs.
        better: how many programs of the model became the best of the run, by operator.
        failures: answers without a program, by kind.
    """

    problem: str
    arm: str
    programs: int
    valid: float
    repaired: int
    fitness: float | None
    train: float | None
    held_out: float | None
    auc: float | None
    seconds: float
    tokens: int
    curve: dict[int, float]
    better: dict[str, int]
    failures: dict[str, int]


def problem(name: str, folder: Path, seed: int) -> tuple[Demonstrations, Demonstrations]:
    """Training and held-out demonstrations."""
    if name == "Hopper":
        return halves("Hopper", seed)
    pair = data("GoToObj", folder, seed)
    if name.endswith("scrambled"):
        pair = scrambled(*pair, seed)
    return load([pair[0]]), load([pair[1]])


def settings(arm: str, arguments: argparse.Namespace) -> dict[str, object]:
    """Of a fit."""
    shared: dict[str, object] = {
        "held_out": 0.0,
        "seed": arguments.seed,
        "max_seconds": arguments.seconds,
        "population": arguments.population,
    }
    if arm == "synthesis":
        return shared
    shared |= {
        "llm_url": arguments.llm_url,
        "samples_per_call": arguments.samples,
        "answer_tokens": arguments.answer_tokens,
        "answer_format": "code",
        "concurrency": arguments.concurrency,
        "steady": True,
    }
    if arm == "0-shot":
        shared |= {"population": 1000, "generations": 0, "steady": False}
    if arm == "seeded":
        shared |= {"seed_synthesis": arguments.population, "target_accuracy": 1.0}
    return shared


def measure(name: str, arm: str, arguments: argparse.Namespace) -> Row:
    """Runs one arm."""
    train, test = problem(name, arguments.data, arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        lag = arguments.samples * arguments.concurrency
        sets = [f"search.lag={lag}", *([] if arm == "synthesis" else [f"model.prompt_scale={arguments.scale}"])]
        try:
            grace_irl.fit(train, out=run, sets=sets, **settings(arm, arguments))  # type: ignore[arg-type]
        except GraceError as error:
            print(f"  {error}", flush=True)
        if not run.exists():
            raise SystemExit(1)
        reward = run / "reward.py"
        score = grace_irl.score(reward, test).metrics if reward.exists() else None
        with opened(run) as (store, _):
            told, records = store.told(), store.records()
            best, curve, better = None, {}, Counter[str]()
            for count, entry in enumerate(told.values(), start=1):
                record = records.get(entry.program_id or "")
                if record is not None and record.evaluation.complete and record.evaluation.valid:
                    new = winner([candidate(record)] if best is None else [best, candidate(record)])
                    if best is None or (new is not best and new is not None and new.program.id != best.program.id):
                        better[record.program.operator] += 1
                    best = new
                if count in MARKS and best is not None:
                    curve[count] = best.evaluation.score
            programs = [records[t.program_id] for t in told.values() if t.program_id]
            return Row(
                problem=name,
                arm=arm,
                programs=len(told),
                valid=sum(r.evaluation.valid for r in programs) / max(len(told), 1),
                repaired=sum(bool(t.drafts) for t in told.values()),
                fitness=best.evaluation.score if best else None,
                train=best.evaluation.metrics.get("accuracy") if best else None,
                held_out=score.accuracy if score else None,
                auc=score.auc if score else None,
                seconds=max((t.seconds for t in told.values()), default=0.0),
                tokens=sum(sum(store.tokens(index)) for index in told),
                curve=curve,
                better=dict(better),
                failures=dict(Counter(t.failure.partition(":")[0] for t in told.values() if t.failure)),
            )


def cache_hits(url: str) -> str:
    """The server's own counter of its prefix cache, where it has one (vLLM)."""
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return "no counter"
    sums = {"hits": 0.0, "queries": 0.0}
    for line in lines:
        for name in sums:
            if line.startswith((f"vllm:prefix_cache_{name}_total", f"vllm:prefix_cache_{name}{{")):
                sums[name] += float(line.rpartition(" ")[2])
    return f"{sums['hits']:.0f} of {sums['queries']:.0f} prompt tokens from the prefix cache"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llm-url", default="http://127.0.0.1:8000")
    parser.add_argument("--seconds", type=float, default=300.0, help="of search per arm (default 300)")
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--population", type=int, default=8)
    parser.add_argument("--samples", type=int, default=8, help="per call (default 8)")
    parser.add_argument("--concurrency", type=int, default=2, help="calls in flight (default 2)")
    parser.add_argument("--answer-tokens", type=int, default=700)
    parser.add_argument("--scale", type=float, default=0.5, help="of prompts (default 0.5)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, default=Path("out/babyai"), help="where collected data is kept")
    parser.add_argument("--json", type=Path, help="also write every row to this file")
    arguments = parser.parse_args()
    rows = []
    print(
        f"{'problem':18} {'arm':10} {'asked':>5} {'valid':>5} {'mended':>6} {'fitness':>8} {'train':>6} "
        f"{'held out':>8} {'auc':>6} {'s':>5} {'tokens':>7}  "
        "best fitness after so many programs; new bests by operator; answers without a program"
    )
    for name in arguments.problems.split(","):
        for arm in arguments.arms.split(","):
            row = measure(name, arm, arguments)
            rows.append(row)
            curve = " ".join(f"{count}:{value:.3f}" for count, value in row.curve.items())
            print(
                f"{name:18} {arm:10} {row.programs:5d} {row.valid:5.2f} {row.repaired:6d} {_shown(row.fitness):>8} "
                f"{_shown(row.train):>6} {_shown(row.held_out):>8} {_shown(row.auc):>6} {row.seconds:5.0f} "
                f"{row.tokens:7d}  {curve}; {row.better}; {row.failures}",
                flush=True,
            )
            if arguments.json:
                arguments.json.write_text(json.dumps([asdict(one) for one in rows], indent=1))
    print(cache_hits(arguments.llm_url))


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


if __name__ == "__main__":
    main()
