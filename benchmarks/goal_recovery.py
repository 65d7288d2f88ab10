"""Rewards for goals over vectors and records, judged on fresh episodes: the sets of tasks in `goal_sets`.

The synthesiser fits 8 experts and 8 negatives of a set, and half of the negatives are near misses. 60 + 60 fresh
episodes judge the reward at the threshold of its training data, and choose nothing. AUC is over states, the others are
shares of episodes:

    hit      experts that are paid at their goal
    early    experts that are paid before it
    false    negatives that are paid

Classifiers of scikit-learn learn from the same states as plain numbers, classes weighed alike, and have an AUC only.
Figures are means over the draws of the data, and their range. `size` is the number of conditions of a predicate, or of
terms of a sum.

    python benchmarks/goal_recovery.py                                  # 8 sets of 5 draws: a few minutes
    python benchmarks/goal_recovery.py --sets maze_point,hold --draws 2
    python benchmarks/goal_recovery.py --aside                          # the sets that only judge a method

`fetch_reach` needs gymnasium-robotics; without it, the set is left out. A fit ends after a number of generations, so
that its result does not depend on how busy the machine is. The benchmark goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from goal_sets.sets import ASIDE, NAMES, SHOWN, episodes
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

import grace_irl
from grace_irl.atomic import write_atomically
from grace_irl.demos.labels import label
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import GraceError, InputError
from grace_irl.evaluate.separation import Measurement
from grace_irl.synthesis.vector.numbers import RecordNumbers, VectorNumbers

TRAIN, FRESH = 8, 60
APART = 1_000
"""Difference between the seeds of fresh and of training episodes."""


@dataclass(frozen=True)
class Row:
    """One draw of one set.

    Attributes:
        name, draw: which draw.
        auc: over states; None if there is no program.
        hit, early, false: shares of fresh episodes; None if there is no program.
        train_auc: over the states of the training data.
        size: number of conditions or terms.
        seconds: of the search.
        logistic, boosting: AUC of the classifiers.
        program: the program; without one, why.
    """

    name: str
    draw: int
    auc: float | None
    hit: float | None
    early: float | None
    false: float | None
    train_auc: float | None
    size: int | None
    seconds: float | None
    logistic: float
    boosting: float
    program: str


def plain(demonstrations: Demonstrations) -> RecordNumbers | VectorNumbers:
    """The plain numbers of the states."""
    first = demonstrations[0].trajectory.states
    if demonstrations.metadata.kind == "record":
        return RecordNumbers.of(first)
    return VectorNumbers.of(demonstrations.metadata.fields, first.shape[1])


def table(demonstrations: Demonstrations) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The plain numbers (N, n) of all states, and which are goals."""
    items, numbers = label(demonstrations, "last").items, plain(demonstrations)
    states = np.concatenate([numbers.values(item.trajectory.states) for item in items])
    return states, np.concatenate([item.positive for item in items])


def classifiers(train: Demonstrations, fresh: Demonstrations) -> dict[str, float]:
    """AUC of each peer on fresh episodes."""
    (x, y), (fresh_x, fresh_y) = table(train), table(fresh)
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000, class_weight="balanced"))
    # Its leaves may hold one goal. Those of HistGradientBoostingClassifier hold 20 states, and there are 8 goals.
    boosting = GradientBoostingClassifier(random_state=0)
    fitted = {
        "logistic": logistic.fit(x, y),
        "boosting": boosting.fit(x, y, sample_weight=compute_sample_weight("balanced", y)),
    }
    return {name: float(roc_auc_score(fresh_y, peer.predict_proba(fresh_x)[:, 1])) for name, peer in fitted.items()}


def conditions(source: str) -> list[str]:
    """The conditions of a predicate, in words; [] for a sum."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name == "lacking_fn":
            asked = next(each for each in ast.walk(node) if isinstance(each, ast.Dict))
            return [str(ast.literal_eval(key)) for key in asked.keys if key is not None]
    return []


def size(source: str) -> int | None:
    """The number of conditions or terms, if the program says so."""
    terms = re.search(r"a sum of (\d+) terms", source)
    return len(conditions(source)) or (int(terms[1]) if terms else None)


def words(source: str) -> str:
    """The condition of a predicate, or the first line of another program."""
    held = re.search(r" for \d+ states in a row", source)
    asked = " and ".join(conditions(source)) + (held[0] if held else "")
    return asked if conditions(source) else source.partition("\n")[0].strip('"')


def share(measured: Measurement | None) -> float:
    """The value of a figure that label rule `last` always has."""
    assert measured is not None
    return measured.value


def judged(name: str, draw: int, options: argparse.Namespace) -> Row:
    """Fit and judge; or read what an earlier run found.

    Raises:
        InputError: a package that the set's simulator needs is missing.
    """
    kept = options.out / f"{name}-{draw}-{options.generations}.json"
    if kept.exists():
        return Row(**json.loads(kept.read_text(encoding="utf-8")))
    train = episodes(name, draw, TRAIN, TRAIN)
    fresh = episodes(name, APART + draw, FRESH, FRESH)
    peers = classifiers(train, fresh)
    try:
        with tempfile.TemporaryDirectory() as folder:
            run = grace_irl.fit(
                train, out=Path(folder) / "run", held_out=0.0, seed=draw, generations=options.generations
            )
            metrics = grace_irl.score(run.reward_path, fresh).metrics
    except GraceError as error:
        row = Row(name, draw, *(None,) * 7, peers["logistic"], peers["boosting"], str(error))
    else:
        over = metrics.episodes
        assert over is not None
        row = Row(
            name,
            draw,
            auc=metrics.auc,
            hit=share(over.hit),
            early=share(over.early),
            false=share(over.false),
            train_auc=run.best.train.auc,
            size=size(run.best.source),
            seconds=run.seconds,
            logistic=peers["logistic"],
            boosting=peers["boosting"],
            program=run.best.source,
        )
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(kept, json.dumps(asdict(row), indent=1))
    return row


def spread(rows: Sequence[Row], name: str, form: str = ".3f") -> str:
    """The mean of a figure over draws, and its range."""
    values = [value for row in rows if (value := getattr(row, name)) is not None]
    if not values:
        return "-"
    low, high = f"{min(values):{form}}", f"{max(values):{form}}"
    mean = f"{np.mean(values):{form}}"
    return mean if low == high == mean else f"{mean} ({low} to {high})"


def show(name: str, rows: Sequence[Row]) -> None:
    """Print the table of a set."""
    failed = [row for row in rows if row.auc is None]
    ours = [*(spread(rows, each) for each in ("auc", "hit", "early", "false")), spread(rows, "size", ".3g")]
    print(f"### {name}: {NAMES[name]}\n")
    print("| | AUC | hit | early | false | size | seconds |\n|---|---|---|---|---|---|---|")
    print(f"| grace-irl | {' | '.join(ours)} | {spread(rows, 'seconds', '.1f')} |")
    print(f"| logistic regression | {spread(rows, 'logistic')} | | | | | |")
    print(f"| gradient boosting | {spread(rows, 'boosting')} | | | | | |\n")
    print(f"Draw {rows[0].draw}: `{words(rows[0].program)}`\n")
    if failed:
        print(f"No program: {len(failed)} of {len(rows)} draws, such as draw {failed[0].draw}: {failed[0].program}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aside", action="store_true", help="the sets that only judge a method, instead of the others")
    parser.add_argument("--sets", help="comma-separated names (default: all)")
    parser.add_argument("--draws", type=int, default=5, help="draws per set, with the seeds from 0 on (default 5)")
    parser.add_argument("--generations", type=int, default=3, help="generations per fit (default 3)")
    parser.add_argument("--programs", action="store_true", help="print the program of each draw, too")
    parser.add_argument("--out", type=Path, default=Path("out/goal-recovery"), help="where results are kept")
    options = parser.parse_args()
    known = ASIDE if options.aside else tuple(SHOWN)
    names = options.sets.split(",") if options.sets else known
    if unknown := [name for name in names if name not in known]:
        parser.error(f"--sets {', '.join(unknown)}; expected names among {', '.join(known)}")
    print(f"{TRAIN} + {TRAIN} episodes, {FRESH} + {FRESH} fresh ones; means of {options.draws} draws, and ranges\n")
    for name in names:
        try:
            rows = [judged(name, draw, options) for draw in range(options.draws)]
        except InputError as error:
            print(f"{name}: left out: {error}\n", flush=True)
            continue
        show(name, rows)
        for row in rows if options.programs else ():
            print(f"Draw {row.draw}:\n\n```python\n{row.program.strip()}\n```\n", flush=True)


if __name__ == "__main__":
    main()
