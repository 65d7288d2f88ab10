"""Recovery on MuJoCo without a model: one expert trajectory for training, one held out, beside classifiers.

Experts are the real trajectories of `../shared/data/mujoco` (CS285); negatives are random rollouts and D-REX's
suboptimal trajectories together, half of each for training. Labels are `all`: every expert state is positive. The fit
sees the training half only. Classifiers of scikit-learn see the same states, classes weighed alike.

    python benchmarks/mujoco_recovery.py
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import grace_irl
from grace_irl.demos import load
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Trajectory
from grace_irl.rl.collect import collect

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "mujoco"
ROLLOUTS = {"Hopper": 40, "HalfCheetah": 2}
"""Random rollouts per half: as many states as an expert trajectory has, or twice that."""
GOAL = {"Hopper": 0.98}
MAX_LINES = 60


def halves(name: str, seed: int) -> tuple[Demonstrations, Demonstrations]:
    """Training and held-out demonstrations."""
    experts = load([DATA / f"cs285_2023_{name}-v4.npz"], role="expert")
    others = [d.trajectory for d in load([], [DATA / f"drex_{name}.npz"])]
    if len(others) == 1:  # one long trajectory: its two halves
        middle = len(others[0].states) // 2
        others = [Trajectory(others[0].states[:middle]), Trajectory(others[0].states[middle:])]
    chance = collect(f"{name}-v5", "random", 2 * ROLLOUTS[name], "negative", seed=seed)
    metadata = replace(experts.metadata, fields=chance.metadata.fields, label="all")
    parts = []
    for half in (0, 1):
        rollouts = [d.trajectory for d in chance][half::2]
        negatives = [*rollouts, *others[half * len(others) // 2 : (half + 1) * len(others) // 2]]
        items = [Demonstration(experts[half].trajectory, "expert"), *(Demonstration(t, "negative") for t in negatives)]
        parts.append(Demonstrations(metadata, tuple(items)))
    return parts[0], parts[1]


def table(demonstrations: Demonstrations) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """States (N, n) and which are expert's."""
    states = np.concatenate([d.trajectory.states for d in demonstrations])
    expert = np.concatenate([np.full(len(d.trajectory.states), d.role == "expert") for d in demonstrations])
    return states.astype(np.float64), expert


def classifiers(train: Demonstrations, test: Demonstrations) -> dict[str, float]:
    """Held-out AUC of each peer."""
    (x, y), (held_x, held_y) = table(train), table(test)
    peers = {
        "logistic regression": make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=5000, class_weight="balanced")
        ),
        "degree-2 logistic regression": make_pipeline(
            StandardScaler(),
            PolynomialFeatures(2),
            StandardScaler(),
            LogisticRegression(max_iter=5000, class_weight="balanced"),
        ),
        "gradient boosting": HistGradientBoostingClassifier(class_weight="balanced", random_state=0),
    }
    return {
        name: float(roc_auc_score(held_y, model.fit(x, y).predict_proba(held_x)[:, 1])) for name, model in peers.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of rollouts and search (default 0)")
    parser.add_argument("--source", action="store_true", help="print the recovered programs")
    arguments = parser.parse_args()
    if not DATA.exists():
        raise SystemExit(f"{DATA}: not found; expected the real MuJoCo trajectories there")
    failed: list[str] = []
    for name in ROLLOUTS:
        train, test = halves(name, arguments.seed)
        with tempfile.TemporaryDirectory() as folder:
            run = grace_irl.fit(train, out=Path(folder) / "run", held_out=0.0, seed=arguments.seed)
            score = grace_irl.score(run.reward_path, test)
        lines = len(run.best.source.splitlines())
        print(f"{name}: {len(table(train)[1])} training states, {len(table(test)[1])} held out")
        print(
            f"  grace-irl, {lines} lines: held-out AUC {score.metrics.auc:.4f}, accuracy {score.metrics.accuracy:.4f}"
            f" (train AUC {run.best.train.auc:.4f}); {run.programs} programs, {run.seconds:.1f} s"
        )
        for peer, auc in classifiers(train, test).items():
            print(f"  {peer}: {auc:.4f}")
        if name in GOAL:
            met = score.metrics.auc >= GOAL[name] and lines <= MAX_LINES
            failed += [] if met else [name]
            print(f"  required: AUC >= {GOAL[name]} in at most {MAX_LINES} lines: {'met' if met else 'missed'}")
        if arguments.source:
            print(run.best.source)
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
