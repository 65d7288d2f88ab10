"""Sums of terms of each size beside peers, on control and locomotion where all expert states count alike.

The synthesiser's front is its best sum of each number of terms. Each split searches it on training episodes only,
inner folds of these choose a size, and held-out episodes judge programs of all sizes and the peers. AUC is the mean
over pairs of a held-out expert and a held-out negative episode: the probability that a state of the expert has the
higher reward. The data:

    point_mass           steered to a goal, or pushed at random; 8 + 8 episodes and 40 + 40 fresh ones; 10 draws
    CartPole, Pendulum,  a scripted expert with a twentieth of its actions random, against random actions, and against
    MountainCar          the expert with half of its actions random; 12 + 12 episodes in 5 outer folds
    Hopper, HalfCheetah  the halves of `mujoco_recovery.py`, each judged by the other one: 2 splits

There is one expert trajectory in each half, so trajectories are cut into segments of 100 states, which count as
episodes. Segments of one trajectory are alike, so intervals are too narrow there, and inner folds tend to long sums.

A 95 % interval over draws is Student's t; over folds it is a percentile bootstrap of the episodes of both sides.
`ahead` is the AUC of the size that inner folds choose, minus the AUC of the row, with the interval of pairs. `numbers`
counts what the data determine: weights, thresholds, centres, spreads and ranges of a sum; coefficients; thresholds and
leaves of boosted trees; nodes of PySR's formula. "12 terms by likelihood" grows plain numbers' terms without a price.

    python benchmarks/front_peers.py
    python benchmarks/front_peers.py --data point_mass --draws 2 --programs

PySR is measured where it and Julia are installed. The benchmark goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from goal_recovery import plain
from mujoco_recovery import DATA, halves
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from grace_irl.atomic import write_atomically
from grace_irl.compare.standings import CONFIDENCE, summarise
from grace_irl.demos.fields import fixed_fields, source_fields
from grace_irl.demos.labels import Labelled, Problem, label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.rewards import RewardFile
from grace_irl.synthesis.synthesiser import SKETCHERS
from grace_irl.synthesis.vector.additive import write_source
from grace_irl.synthesis.vector.folds import assign
from grace_irl.synthesis.vector.quantities import Measures
from grace_irl.synthesis.vector.sum_search import MAX_PAIRED, MAX_TERMS, MAX_WATCHED
from grace_irl.synthesis.vector.term_table import TermTable
from grace_irl.synthesis.vector.terms import vocabulary

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.synthesis.vector.test_goal_reaching import reaching

Floats = NDArray[np.float64]
Split = tuple[Problem, Problem]
"""Training and held-out episodes."""
POINTS, FRESH_POINTS = 8, 40
EPISODES, LONGEST = 12, 200
"""Episodes of each side, and maximum number of states of one, in classic control."""
LUCK = {"expert": 0.05, "half": 0.5, "random": 1.0}
"""Shares of random actions in classic control. Without any, experts end in states that nothing else resembles."""
SEGMENT = 100
RESAMPLES = 2_000
OLD = f"{MAX_TERMS} terms by likelihood"
CHOSEN = "size chosen by inner folds"


def cart_pole(state: Floats) -> Any:
    place, speed, angle, turning = state
    return int(angle + 0.25 * turning + 0.02 * place + 0.05 * speed > 0)


def pendulum(state: Floats) -> Any:
    """Swing up by the energy, and hold the pole near the top."""
    cosine, sine, turning = state
    lacking = 10.0 * (1 - cosine) / 2 - turning**2 / 6
    swing = np.copysign(np.clip(4 * lacking, -2, 2), lacking * turning)
    torque = -12 * np.arctan2(sine, cosine) - 3 * turning if cosine > 0.9 else swing
    return np.clip([torque], -2, 2).astype(np.float32)


def mountain_car(state: Floats) -> Any:
    return np.array([np.copysign(1.0, state[1])], np.float32)


CONTROL: Mapping[str, tuple[str, Callable[[Floats], Any], tuple[str, ...]]] = {
    "CartPole": ("CartPole-v1", cart_pole, ("place", "speed", "angle", "turning")),
    "Pendulum": ("Pendulum-v1", pendulum, ("cosine", "sine", "turning")),
    "MountainCar": ("MountainCarContinuous-v0", mountain_car, ("place", "speed")),
}
"""Environment, expert, and names of the numbers of a state."""
BODIES = ("Hopper", "HalfCheetah")
NAMES = ("point_mass", *CONTROL, *BODIES)


def played(name: str, seed: int, luck: float) -> Trajectory:
    """An episode in which this share of actions is random."""
    task, expert, _ = CONTROL[name]
    environment, rng = gymnasium.make(task), np.random.default_rng(seed)
    environment.action_space.seed(seed)
    state, done = environment.reset(seed=seed)[0], False
    states = [state]
    while not done and len(states) < LONGEST:
        action = environment.action_space.sample() if rng.random() < luck else expert(state)
        state, _, ended, cut, _ = environment.step(action)
        states.append(state)
        done = ended or cut
    return Trajectory(np.array(states))


def control(name: str) -> Iterator[Split]:
    """Outer folds of classic control. Half of the negatives are random, and the others half random."""
    items = [Demonstration(played(name, seed, LUCK["expert"]), "expert") for seed in range(EPISODES)]
    for seed in range(EPISODES, 2 * EPISODES):
        items.append(Demonstration(played(name, seed, LUCK["half" if seed % 2 else "random"]), "negative"))
    problem = label(Demonstrations(Metadata("vector", CONTROL[name][2]), tuple(items)), "all")
    folds = assign([item.demonstration.role == "expert" for item in problem])
    assert folds is not None
    for fold in sorted({*folds}):
        inside = [item for item, one in zip(problem, folds, strict=True) if one == fold]
        outside = [item for item, one in zip(problem, folds, strict=True) if one != fold]
        yield replace(problem, items=tuple(outside)), replace(problem, items=tuple(inside))


def point_mass(draws: int) -> Iterator[Split]:
    for draw in range(draws):
        yield reaching(draw, "all", "record", POINTS), reaching(draw + 1000, "all", "record", FRESH_POINTS)


def locomotion(name: str) -> Iterator[Split]:
    """Each half of the trajectories judged by the other one."""
    one, other = (label(replace(half, items=tuple(segments(half))), "all") for half in halves(name, 0))
    yield one, other
    yield other, one


def segments(demonstrations: Demonstrations) -> Iterator[Demonstration]:
    """Segments of all trajectories; a rest of less than half a segment belongs to the last one."""
    for item in demonstrations:
        states = item.trajectory.states
        ends = [*range(SEGMENT, len(states) - SEGMENT // 2 + 1, SEGMENT)]
        ends = ends if ends and ends[-1] == len(states) else [*ends, len(states)]
        for start, end in zip([0, *ends], ends, strict=False):
            yield Demonstration(Trajectory(states[start:end]), item.role)


def splits(name: str, draws: int) -> Iterator[Split]:
    if name == "point_mass":
        return point_mass(draws)
    return control(name) if name in CONTROL else locomotion(name)


def pairs(values: Sequence[Floats], items: Sequence[Labelled]) -> list[list[float]]:
    """For each expert (row) and each negative (column): how often a state of the expert has the higher reward."""
    sides: dict[str, list[Floats]] = {"expert": [], "negative": []}
    for each, item in zip(values, items, strict=True):
        sides[item.demonstration.role].append(np.sort(each))
    return [[round(above(high, low), 5) for low in sides["negative"]] for high in sides["expert"]]


def above(high: Floats, low: Floats) -> float:
    """The probability that a number of `high` is larger than one of `low`; ties count one half."""
    return float((np.searchsorted(low, high, "left") + np.searchsorted(low, high, "right")).mean() / 2 / len(low))


def judged(source: str, test: Problem) -> dict[str, Any]:
    """The pairs and the numbers of a program."""
    runner = RewardFile(Path("reward.py"), source, trust=True).runner()
    values = runner.rewards([item.trajectory for item in test])
    space: dict[str, Any] = {}
    exec(compile(source, "reward.py", "exec"), space)
    # A field has a centre, a spread and two ends of its range; a term has a weight and perhaps a threshold.
    terms = sum(1 + (not isinstance(row[3], str)) for row in space["TERMS"])
    numbers = 1 + terms + 4 * len(space["FIELDS"]) + ("outside the range" in source)
    return {"pairs": pairs(values, list(test)), "numbers": numbers, "program": source}


def front(train: Problem, test: Problem) -> dict[str, Any]:
    """The program of each size, and which is chosen."""
    start = time.perf_counter()
    sketcher = SKETCHERS[train.metadata.kind](train, 0)
    sketches = {len(json.loads(sketch)): sketch for sketch in sketcher.initial()[::-1]}
    chosen = len(json.loads(sketcher.initial()[0]))
    seconds = time.perf_counter() - start
    found = {f"{size} terms": judged(sketcher.source(sketches[size]), test) for size in sorted(sketches)}
    return {"sizes": found, "chosen": f"{chosen} terms", "seconds": seconds}


def by_likelihood(train: Problem, test: Problem) -> dict[str, Any]:
    """The longest sum of terms over plain numbers, each of which raises the likelihood most."""
    numbers = Measures.plain(plain(Demonstrations(train.metadata, tuple(item.demonstration for item in train))))
    episodes = [numbers.values(item.trajectory.states) for item in train]
    expert = [item.demonstration.role == "expert" for item in train]
    positive, states = np.concatenate([item.positive for item in train]), np.concatenate(episodes)
    states[:, source_fields(episodes, expert)] = 0.0
    terms = vocabulary(states[positive], states, MAX_PAIRED, MAX_WATCHED, fixed_fields(episodes, expert))
    table, chosen = TermTable(terms, states, positive), [0]
    while len(chosen) < MAX_TERMS and len(grown := table.grow(chosen)) > len(chosen):
        chosen = grown
    return judged(write_source(table.reward(chosen), numbers), test)


def states_of(problem: Problem) -> tuple[Floats, NDArray[np.bool_], list[int]]:
    """The plain numbers (N, n) of all states, which are experts', and where episodes end."""
    numbers = plain(Demonstrations(problem.metadata, tuple(item.demonstration for item in problem)))
    episodes = [numbers.values(item.trajectory.states) for item in problem]
    ends = np.cumsum([len(each) for each in episodes])[:-1].tolist()
    return np.concatenate(episodes), np.concatenate([item.positive for item in problem]), ends


def peer(
    fit: Callable[[Floats, NDArray[np.bool_]], tuple[Callable[[Floats], Floats], int]], train: Problem, test: Problem
) -> dict[str, Any]:
    """The pairs and the numbers of a peer. `fit` returns the reward of states, and how many numbers it has."""
    x, y, _ = states_of(train)
    reward, numbers = fit(x, y)
    test_x, _, ends = states_of(test)
    return {"pairs": pairs(np.split(reward(test_x), ends), list(test)), "numbers": numbers}


def logistic(x: Floats, y: NDArray[np.bool_], degree: int = 1) -> tuple[Callable[[Floats], Floats], int]:
    model = make_pipeline(
        StandardScaler(),
        PolynomialFeatures(degree, include_bias=False),
        StandardScaler(),
        LogisticRegression(max_iter=5000, class_weight="balanced"),
    ).fit(x, y)
    return model.decision_function, model[-1].coef_.size + 1


def boosting(x: Floats, y: NDArray[np.bool_]) -> tuple[Callable[[Floats], Floats], int]:
    model = GradientBoostingClassifier(random_state=0).fit(x, y, sample_weight=compute_sample_weight("balanced", y))
    return model.decision_function, sum(tree.tree_.node_count for tree in model.estimators_.flat)


def symbolic(x: Floats, y: NDArray[np.bool_]) -> tuple[Callable[[Floats], Floats], int]:
    """A formula for the logit, by the same likelihood; PySR chooses its size."""
    model = pysr().PySRRegressor(
        niterations=100,
        maxsize=40,
        binary_operators=["+", "-", "*", "max"],
        unary_operators=["abs", "square"],
        elementwise_loss="loss(logit, label, weight) = weight * log1p(exp(-(2 * label - 1) * logit))",
        timeout_in_seconds=120,
        random_state=0,
        progress=False,
        verbosity=0,
        temp_equation_file=True,
    )
    model.fit(x, y.astype(np.float64), weights=compute_sample_weight("balanced", y))
    return model.predict, int(model.get_best()["complexity"])


@cache
def pysr() -> Any:
    """The module; None if it, or Julia, is missing."""
    try:
        import pysr  # type: ignore[import-not-found, unused-ignore]
    except Exception as error:  # its import downloads Julia, which fails in many ways
        print(f"PySR is left out: {type(error).__name__}: {error}\n", flush=True)
        return None
    return pysr


PEERS: Mapping[str, Callable[[Problem, Problem], dict[str, Any]]] = {
    OLD: by_likelihood,
    "logistic regression": partial(peer, logistic),
    "degree-2 logistic regression": partial(peer, partial(logistic, degree=2)),
    "gradient boosting": partial(peer, boosting),
    "PySR": partial(peer, symbolic),
}


def measured(name: str, number: int, split: Split, out: Path) -> dict[str, Any]:
    """The front and all peers on one split; those in its file are not measured again."""
    path = out / f"{name}-{number}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for key, measure in {"front": front, **PEERS}.items():
        if key in found or (key == "PySR" and pysr() is None):
            continue
        found[key] = measure(*split)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(found))
    return found


@dataclass(frozen=True)
class Tables:
    """The pairs of one reward, `(experts, negatives)` in each split.

    Attributes:
        parts: the pairs.
        draws: whether each split is a draw of its own. Otherwise splits are folds of the same episodes.
        least: lowest possible number.
    """

    parts: tuple[Floats, ...]
    draws: bool
    least: float = 0.0

    def __sub__(self, other: Tables) -> Tables:
        return Tables(tuple(one - two for one, two in zip(self.parts, other.parts, strict=True)), self.draws, -1.0)

    @property
    def mean(self) -> float:
        if self.draws:
            return float(np.mean([part.mean() for part in self.parts]))
        return float(np.concatenate([part.ravel() for part in self.parts]).mean())

    @property
    def interval(self) -> tuple[float, float]:
        if self.draws:
            return summarise([float(part.mean()) for part in self.parts], within=(self.least, 1.0)).interval
        rng = np.random.default_rng(0)
        weights = []
        for axis in (0, 1):
            counts = [part.shape[axis] for part in self.parts]
            drawn = rng.multinomial(sum(counts), np.full(sum(counts), 1 / sum(counts)), RESAMPLES)
            weights.append(np.split(drawn, np.cumsum(counts)[:-1], axis=1))
        total, count = np.zeros(RESAMPLES), np.zeros(RESAMPLES)
        for part, rows, columns in zip(self.parts, *weights, strict=True):
            total += np.einsum("ri,ij,rj->r", rows, part, columns)
            count += rows.sum(axis=1) * columns.sum(axis=1)
        low, high = np.quantile((total / count)[count > 0], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        return float(low), float(high)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.mean:.3f}" + (f" ({low:.3f} to {high:.3f})" if np.isfinite(low) else "")


def show(name: str, splits: Sequence[Split], rows: Sequence[dict[str, Any]]) -> None:
    """Print the table of a data set."""
    train, test = splits[0]
    trained, held_out = (Counter(item.demonstration.role for item in problem) for problem in (train, test))
    states = sum(len(item.positive) for item in train)
    seconds = float(np.mean([row["front"]["seconds"] for row in rows]))
    print(f"### {name}\n\n{len(rows)} splits. The first one trains on {states} states of", end=" ")
    print(f"{trained['expert']} + {trained['negative']} episodes. It holds out", end=" ")
    print(f"{held_out['expert']} + {held_out['negative']} episodes.", end=" ")
    print(f"The search and its inner folds take {seconds:.1f} s on average.\n")
    fronts = [row["front"]["sizes"] for row in rows]
    chosen = [row["front"]["chosen"] for row in rows]
    lines = {size: [each[size] for each in fronts] for size in fronts[0] if all(size in each for each in fronts)}
    lines[CHOSEN] = [each[size] for each, size in zip(fronts, chosen, strict=True)]
    lines |= {key: [row[key] for row in rows] for key in PEERS if all(key in row for row in rows)}
    tables = {
        key: Tables(tuple(np.array(each["pairs"]) for each in found), draws=name == "point_mass")
        for key, found in lines.items()
    }
    print("| reward | numbers | held-out AUC (95 %) | ahead (95 %) | chosen |\n|---|---|---|---|---|")
    for key, found in lines.items():
        numbers = np.median([each["numbers"] for each in found])
        ahead = "" if key == CHOSEN else str(tables[CHOSEN] - tables[key])
        times = f"{chosen.count(key)} of {len(rows)}" if key in chosen else ""
        print(f"| {key} | {numbers:.0f} | {tables[key]} | {ahead} | {times} |")
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(NAMES), help="comma-separated names")
    parser.add_argument("--draws", type=int, default=10, help="draws of the point mass (default 10)")
    parser.add_argument("--programs", action="store_true", help="print the chosen program of each first split, too")
    parser.add_argument("--out", type=Path, default=Path("out/front-peers"), help="where results are kept")
    options = parser.parse_args()
    names = options.data.split(",")
    if unknown := [name for name in names if name not in NAMES]:
        parser.error(f"--data {', '.join(unknown)}; expected names among {', '.join(NAMES)}")
    for name in names:
        if name in BODIES and not DATA.exists():
            print(f"{name}: left out: {DATA} not found; expected the real MuJoCo trajectories there\n")
            continue
        parts = list(splits(name, options.draws))
        rows = [measured(name, number, split, options.out) for number, split in enumerate(parts)]
        show(name, parts, rows)
        if options.programs:
            first = rows[0]["front"]
            print(f"```python\n{first['sizes'][first['chosen']]['program'].strip()}\n```\n", flush=True)


if __name__ == "__main__":
    main()
