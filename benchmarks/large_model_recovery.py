"""Results of a large model on the prompts: BabyAI's 17 public levels from 8 + 8 trajectories, at most 3 answers each.

The model is whoever answers the prompt files: a person with a chat window, or a script around any model. It must see
nothing but the prompt. Each run goes as far as its answers; the prompts that wait are listed, and the same command
goes on once their answers lie beside them (PROMPT.prompt.md is answered by PROMPT.answer.md):

    python benchmarks/large_model_recovery.py step    --case base     # write prompts, read answers, say what waits
    python benchmarks/large_model_recovery.py table   --case base     # held-out results of what is done
    python benchmarks/large_model_recovery.py record  --case base     # one recording per run, for `fit --replay`
    python benchmarks/large_model_recovery.py replay  --case base     # the runs of the recordings, for `table`

Cases: `base` (8 + 8), `one` (one expert and one negative trajectory), `noisy` (2 of the 8 negative trajectories are
labelled expert), `quarter` (prompts of a quarter of the tokens), `all` (one program for all levels, 2 + 2 of each),
`clean` (4 + 4; the experts walk back once they are done, and the model names goal states first).
Every case runs on plain and on scrambled data. 100 + 100 held-out trajectories per level are scored afterwards and
choose nothing; nothing is chosen from several runs. Recordings of `base`, and of `clean` on scrambled GoToObj, ship in
tests/recordings, whose README says what is known of the model that answered; write down which one yours is.
Prompts call the levels of `all` task A, B, …; when it was measured they named them (docs/models.md).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from babyai_recovery import LEVELS, data, scrambled

import grace_irl
from grace_irl.demos import load, save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Trajectory
from grace_irl.errors import GraceError
from grace_irl.methods.grace_operators import OPERATORS
from grace_irl.propose.briefing import PromptBudget
from grace_irl.propose.llm import LlmProposer
from grace_irl.propose.manual import ANSWER, PROMPT
from grace_irl.propose.prompter import PromptSettings
from grace_irl.propose.protocol import Completion, Question
from grace_irl.runs import fit as fits
from grace_irl.runs import proposers
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.recording import recorded_config, write_recording
from grace_irl.runs.run import best_record, opened

ANSWERS = 3
GOAL = 0.999
"""Held-out accuracy; what a state does not show (what is carried) keeps PickupLoc's best rule at 0.9997."""
NOISY = 2  # of 8 negative trajectories
EACH, HELD_OUT_EACH = 2, 20  # trajectories of either role per level, in the program for all levels
WALKING = 4  # trajectories of either role whose experts walk back
CASES = ("base", "one", "noisy", "quarter", "all", "clean")


class Waits(GraceError):  # noqa: N818  says what happened, as a name
    """A prompt has no answer yet."""


class Files:
    """Obeys `Chat`: answers that lie in the folder, and an error where one is missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def answer_format(self) -> str:
        return "code"

    async def room(self) -> None:
        return None

    async def ask(self, question: Question) -> tuple[Completion, ...]:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{question.name}{PROMPT}"
        path.write_text(question.prompt.text, encoding="utf-8")
        answer = self.folder / f"{question.name}{ANSWER}"
        if not answer.exists():
            raise Waits(str(path))
        return (Completion(answer.read_text(encoding="utf-8")),)

    async def close(self) -> None:
        return None


@dataclass(frozen=True)
class Case:
    """One run: its name, training data and held-out data."""

    name: str
    train: Demonstrations
    test: Demonstrations


def cases(arguments: argparse.Namespace) -> Iterator[Case]:
    """Every run of the requested case."""
    levels = arguments.levels.split(",")
    for mixed in (False, True):
        variant = "scrambled" if mixed else "plain"
        if arguments.case == "all":
            yield whole(levels, arguments, mixed)
            continue
        for level in levels:
            train, test = sets(level, arguments, mixed)
            yield Case(f"{level}-{variant}", changed(train, arguments.case), test)


def sets(level: str, arguments: argparse.Namespace, mixed: bool) -> tuple[Demonstrations, Demonstrations]:
    pair = data(level, arguments.data, arguments.seed)
    if mixed:
        pair = scrambled(*pair, arguments.seed)
    return load([pair[0]]), load([pair[1]])


def changed(train: Demonstrations, case: str) -> Demonstrations:
    """The training data of a case."""
    items = list(train)
    experts = [item for item in items if item.role == "expert"]
    negatives = [item for item in items if item.role == "negative"]
    if case == "one":
        items = [experts[0], negatives[0]]
    elif case == "noisy":
        items = [*experts, *(replace(item, role="expert") for item in negatives[:NOISY]), *negatives[NOISY:]]
    elif case == "clean":
        random = np.random.default_rng(0)
        walking = [walked_back(item, random) for item in experts[:WALKING]]
        stayed = [replace(item, trajectory=states_only(item.trajectory)) for item in negatives[:WALKING]]
        return Demonstrations(replace(train.metadata, label="goal"), (*walking, *stayed))
    return replace(train, items=tuple(items))


def walked_back(item: Demonstration, random: np.random.Generator) -> Demonstration:
    """An expert that goes on after the goal, back the way it came: the goal is the last state of the original."""
    states = item.trajectory.states
    steps = int(random.integers(2, max(3, len(states) - 1)))
    back = np.concatenate([states, states[::-1][1 : steps + 1]])
    return replace(item, trajectory=replace(states_only(item.trajectory), states=back, terminated=False))


def states_only(trajectory: Trajectory) -> Trajectory:
    """The same trajectory without actions and rewards."""
    return replace(trajectory, actions=None, rewards=None, log_probs=None)


def whole(levels: list[str], arguments: argparse.Namespace, mixed: bool) -> Case:
    """All levels as tasks of one set. Scrambled levels have a map each: every level is another world."""
    parts: list[list[object]] = [[], []]
    for level in levels:
        for place, found in enumerate(sets(level, arguments, mixed)):
            experts = [item for item in found if item.role == "expert"]
            negatives = [item for item in found if item.role == "negative"]
            count = EACH if place == 0 else HELD_OUT_EACH
            parts[place] += [replace(item, task=level) for item in (*experts[:count], *negatives[:count])]
    train, test = (replace(found, items=tuple(part)) for part in parts)
    return Case("all-scrambled" if mixed else "all-plain", train, test)


def step(case: Case, folder: Path, scale: float, answers: int = ANSWERS) -> str:
    """Runs as far as there are answers; returns the prompt that it waits for, or ""."""
    chat = Files(folder / "answers" / case.name)
    proposers.PROPOSERS["files"] = proposers.Kind(
        "answers that lie in a folder",
        lambda config, _: config,
        lambda config, bench: LlmProposer(
            chat, bench, PromptSettings(PromptBudget(scale=config.model.prompt_scale), operators=OPERATORS)
        ),
        chat=lambda config, bench: chat,  # noqa: ARG005
    )
    settings = {
        "data.held_out": 0.0,
        "search.population": 1,
        "search.elite": 1,
        "search.generations": answers - 1,
        "stop.max_calls": answers,
        "model.prompt_scale": scale,
        "proposer.name": "files",
        "sandbox.workers": 1,
    }
    if case.train.metadata.label == "goal":
        settings |= {"data.label": "goal"}
    run = folder / case.name
    shutil.rmtree(run, ignore_errors=True)  # what was answered is answered again from the files
    try:
        fits.start(resolve(flags=settings), run, Parts(demonstrations=case.train))
    except Waits as waits:
        return str(waits).split("; ")[0]
    return ""


def named(arguments: argparse.Namespace, case: Case) -> Path:
    """The file of a run's recording."""
    return Path(arguments.recordings / f"{arguments.case}-{case.name}.jsonl")


def row(case: Case, run: Path) -> dict[str, object]:
    """Held-out results of a run."""
    with opened(run) as (store, _):
        best = best_record(store, run)
        prompts = [proposal for _, _, proposal in store.proposals()]
    score = grace_irl.score(run / "reward.py", case.test, workers=1)
    return {
        "run": case.name,
        "program": best.program.id,
        "fitness": best.evaluation.score,
        "answers": len(prompts),
        "prompt_chars": len(prompts[0].prompt),
        "train": best.evaluation.metrics.get("accuracy"),
        "accuracy": score.metrics.accuracy,
        "auc": score.metrics.auc,
        "separated": score.metrics.separated,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("step", "table", "record", "replay"))
    parser.add_argument("--case", choices=CASES, default="base")
    parser.add_argument("--levels", default=",".join(LEVELS), help="comma-separated names")
    parser.add_argument("--seed", type=int, default=0, help="of the data (default 0)")
    parser.add_argument("--data", type=Path, default=Path("out/babyai"), help="where collected data is kept")
    parser.add_argument("--folder", type=Path, default=Path("out/large_model"), help="where runs are kept")
    parser.add_argument(
        "--recordings", type=Path, default=Path("tests/recordings/large_model"), help="for `record`, `replay`"
    )
    parser.add_argument("--json", type=Path, help="also write every row to this file")
    arguments = parser.parse_args()
    folder = arguments.folder / arguments.case
    scale = 0.25 if arguments.case == "quarter" else 1.0
    rows, waiting = [], []
    for case in cases(arguments):
        run = folder / case.name
        if arguments.verb == "step":
            waits = step(case, folder, scale)
            waiting += [waits] if waits else []
            print(f"{case.name:32} {'waits: ' + waits if waits else 'done'}", flush=True)
        elif arguments.verb == "record" and (run / "reward.py").exists():
            arguments.recordings.mkdir(parents=True, exist_ok=True)
            with opened(run) as (store, config):
                write_recording(store, config, named(arguments, case))
            if arguments.case == "clean":  # small, and made here only: a test replays it
                save(case.train, named(arguments, case).with_suffix(".parquet"))
        elif arguments.verb == "replay" and (recording := named(arguments, case)).exists():
            shutil.rmtree(run, ignore_errors=True)
            fits.start(recorded_config(recording), run, Parts(demonstrations=case.train))
            print(f"{case.name:32} replayed", flush=True)
        elif arguments.verb == "table" and (run / "reward.py").exists():
            rows.append(row(case, run))
            print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    if arguments.verb == "step":
        print(f"{len(waiting)} prompts wait")
    if arguments.verb == "table" and rows:
        reached = [one for one in rows if float(str(one["accuracy"])) >= GOAL]
        print(f"{len(reached)} of {len(rows)} runs reach held-out accuracy {GOAL:g} within {ANSWERS} answers")
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1))
        if arguments.case == "base" and len(reached) < len(rows):
            sys.exit(1)


if __name__ == "__main__":
    main()
