"""First answers of a large model to prompts about levels and worlds that the prompts were not written for.

    python benchmarks/prompt_readers.py step     # writes prompts, reads answers, says which prompts wait
    python benchmarks/prompt_readers.py replay   # or: the answers of the recordings in place of files
    python benchmarks/prompt_readers.py table    # judges the programs of the answers
    python benchmarks/prompt_readers.py record   # a recording and the training data of each case, for `fit --replay`

Whoever answers must see nothing but the prompt: PROMPT.prompt.md is answered by PROMPT.answer.md beside it. A program
that fails goes back once with its error, as in any run. Each case has 8 experts and 8 negatives, of which 4 are near
misses; levels are scrambled, so that memory of MiniGrid is worth nothing. 60 fresh episodes of each sort judge the
program at the threshold of its training data, and choose nothing:

    hit      experts that are paid at their goal       early    experts that are paid before it
    false    other negatives that are paid             near     near misses that are paid

Of worlds of vectors and records, `false` counts all negatives, half of which are near misses. `prompt` is the length
of the prompt in characters.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path

import goal_recovery
import near_misses
import numpy as np
from large_model_recovery import Case, step

import grace_irl
from grace_irl.demos import save
from grace_irl.demos.scramble import ScrambleMap
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.evaluate.separation import Separation
from grace_irl.runs import fit as fits
from grace_irl.runs.caller import Parts
from grace_irl.runs.recording import recorded_config, write_recording
from grace_irl.runs.run import best_record, opened

LEVELS = ("PickupLoc", "OpenDoorsOrderN2", "PlaceBetween", "GoToSeqS5R2")
WORLDS = ("crane", "tank")
DRAW = 20
"""Draw of the data; other benchmarks and the search's development have draws below it."""
ANSWERS = 1


@dataclass(frozen=True)
class Judged:
    """A case with its fresh episodes by sort."""

    case: Case
    fresh: Mapping[str, Demonstrations]


def cases(names: list[str], data: Path) -> Iterator[Judged]:
    """The named cases, with data that are collected once."""
    for name in names:
        if name in WORLDS:
            train = goal_recovery.episodes(name, DRAW, near_misses.TRAIN, near_misses.TRAIN)
            fresh = goal_recovery.episodes(name, goal_recovery.APART + DRAW, near_misses.FRESH, near_misses.FRESH)
            sorts = {"expert": fresh.select(role="expert"), "random": fresh.select(role="negative")}
            yield Judged(Case(name, train, fresh), sorts)
            continue
        shown, kept = near_misses.episodes(name, DRAW, data, near_misses.TRAIN)
        table = ScrambleMap.draw(1, shown["expert"][0].trajectory)
        train = near_misses.training(shown, "near")
        train = replace(train, items=tuple(near_misses.renamed(list(train), table)))
        sorts = {
            sort: replace(some, items=tuple(near_misses.renamed(list(some), table)))
            for sort, some in kept.items()
            if sort != "swap"
        }
        yield Judged(Case(name, train, sorts["expert"]), sorts)


@dataclass(frozen=True)
class Found:
    """The program of a case, judged.

    Attributes:
        case: name of the case.
        hit, early, false, near: shares of fresh episodes; near is None if the case has no near misses of its own.
        prompt: length of the prompt in characters.
        answers: number of answers.
        program: id of the program.
    """

    case: str
    hit: float
    early: float
    false: float
    near: float | None
    prompt: int
    answers: int
    program: str


def found(judged: Judged, run: Path) -> Found:
    """Judge the program of a run."""
    with opened(run) as (store, _):
        best = best_record(store, run)
        prompts = [proposal.prompt for _, _, proposal in store.proposals()]
    reward = grace_irl.load_reward(run / "reward.py")
    separation = Separation.of(best.evaluation)
    assert separation is not None
    assert separation.threshold is not None
    paid = {
        sort: [values > separation.threshold for values in reward.rewards([one.trajectory for one in some])]
        for sort, some in judged.fresh.items()
    }
    return Found(
        judged.case.name,
        hit=float(np.mean([one[-1] for one in paid["expert"]])),
        early=float(np.mean([one[:-1].any() for one in paid["expert"]])),
        false=float(np.mean([one.any() for one in paid["random"]])),
        near=float(np.mean([one.any() for one in paid["near"]])) if "near" in paid else None,
        prompt=len(prompts[0]),
        answers=len(prompts),
        program=best.program.id,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("step", "replay", "table", "record"))
    parser.add_argument("--cases", default=",".join((*LEVELS, *WORLDS)), help="comma-separated names")
    parser.add_argument("--data", type=Path, default=Path("out/near-misses/data"), help="where episodes are kept")
    parser.add_argument("--folder", type=Path, default=Path("out/prompt_readers"), help="where runs are kept")
    parser.add_argument(
        "--recordings", type=Path, default=Path("tests/recordings/prompt_readers"), help="for `record` and `replay`"
    )
    parser.add_argument("--json", type=Path, help="for `table`: also write the rows to this file")
    options = parser.parse_args()
    rows: list[Found] = []
    if options.verb == "table":
        print("| case | hit | early | false | near | prompt | answers | program |\n|---|---|---|---|---|---|---|---|")
    for judged in cases(options.cases.split(","), options.data):
        run = options.folder / judged.case.name
        if options.verb == "step":
            waits = step(judged.case, options.folder, 1.0, ANSWERS)
            print(f"{judged.case.name:20} {'waits: ' + waits if waits else 'done'}", flush=True)
        elif options.verb == "replay":
            shutil.rmtree(run, ignore_errors=True)
            recording = options.recordings / f"{judged.case.name}.jsonl"
            fits.start(recorded_config(recording), run, Parts(demonstrations=judged.case.train))
            print(f"{judged.case.name:20} replayed", flush=True)
        elif not (run / "reward.py").exists():
            continue
        elif options.verb == "record":
            options.recordings.mkdir(parents=True, exist_ok=True)
            with opened(run) as (store, config):
                write_recording(store, config, options.recordings / f"{judged.case.name}.jsonl")
            save(judged.case.train, options.recordings / f"{judged.case.name}.parquet")
        else:
            rows.append(found(judged, run))
            cells = (f"{value:.3f}" if isinstance(value, float) else str(value or "-") for value in astuple(rows[-1]))
            print(f"| {' | '.join(cells)} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in rows], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
