"""Effect of the temperature of parents on a search: the synthesiser on MuJoCo, without a model.

Parents are drawn by exp(f / T). Each search has the same first population at every temperature, as many answers, and no
other stop rule. Data are those of `mujoco_recovery.py`, every `--every`th state of each trajectory, random rollouts
drawn anew for each seed. Differences are paired by seed, with a 95 % interval of Student's t.

    python benchmarks/parent_temperature.py
    python benchmarks/parent_temperature.py --recorded --bodies Hopper,HalfCheetah

A recorded run cannot answer for a parent that it did not have, and none of `tests/recordings` mutates a program. So
`--recorded` says only by which chances the programs that a large model wrote first would be mutated.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from mujoco_comparison import demonstrations
from mujoco_recovery import DATA, ROLLOUTS, halves
from numpy.typing import NDArray
from scipy import stats

import grace_irl
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Trajectory
from grace_irl.runs.run import opened

RECORDINGS = Path(__file__).resolve().parents[1] / "tests" / "recordings" / "large_model_mujoco"
TEMPERATURES = (1.0, 0.1, 0.03, 0.01)
POPULATION = 20


def thinned(demonstrations: Demonstrations, every: int) -> Demonstrations:
    """A regular sample of the states of each trajectory."""
    items = [
        Demonstration(Trajectory(np.asarray(each.trajectory.states)[::every]), each.role, each.task)
        for each in demonstrations
    ]
    return Demonstrations(demonstrations.metadata, tuple(items))


def searched(
    train: Demonstrations, test: Demonstrations, temperature: float, seed: int, generations: int
) -> list[float]:
    """Fitness on training data, fitness and AUC on held-out data, and different programs of one search."""
    with tempfile.TemporaryDirectory() as folder:
        run = grace_irl.fit(
            train,
            out=Path(folder) / "run",
            held_out=0.0,
            seed=seed,
            population=POPULATION,
            generations=generations,
            parent_temperature=temperature,
            sets=("stop.plateau=none", "stop.target_accuracy=none"),
            workers=1,
        )
        metrics = grace_irl.score(run.reward_path, test, workers=1).metrics
        return [run.best.fitness, metrics.fitness, metrics.auc, run.programs]


def interval(differences: NDArray[np.float64]) -> str:
    """Mean and 95 % interval of Student's t."""
    mean, deviation, count = differences.mean(), differences.std(ddof=1), len(differences)
    half = stats.t.ppf(0.975, count - 1) * deviation / np.sqrt(count)
    return f"{mean:+8.4f} [{mean - half:+.4f}, {mean + half:+.4f}]"


def recorded(name: str) -> None:
    """Prints the fitness of a large model's first programs, and the chance of each to be mutated."""
    with tempfile.TemporaryDirectory() as folder:
        run = grace_irl.fit(
            [demonstrations(name, Path(folder))],
            out=Path(folder) / "run",
            replay=RECORDINGS / f"{name}.jsonl",
            workers=1,
        )
        with opened(run.folder) as (store, _):
            fitness = np.sort([each.evaluation.score for each in store.records().values()])[::-1]
    print(f"{name}, a large model's first programs: fitness", *(f"{value:.3f}" for value in fitness))
    for temperature in TEMPERATURES:
        chance = np.exp((fitness - fitness[0]) / temperature)
        print(f"  T {temperature:6g}: chance of each", *(f"{share:.3f}" for share in chance / chance.sum()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="searches at each temperature (default 5)")
    parser.add_argument("--generations", type=int, default=7, help="of 20 answers, after the first (default 7)")
    parser.add_argument("--bodies", default="Hopper", help="of Hopper, HalfCheetah: comma-separated (default Hopper)")
    parser.add_argument("--every", type=int, default=4, help="of how many states one is kept (default 4)")
    parser.add_argument("--recorded", action="store_true", help="search nothing; chances of recorded programs")
    arguments = parser.parse_args()
    bodies = arguments.bodies.split(",")
    if not set(bodies) <= set(ROLLOUTS):
        parser.error(f"--bodies {arguments.bodies}: expected some of {', '.join(ROLLOUTS)}")
    if not DATA.exists():
        raise SystemExit(f"{DATA}: not found; expected the real MuJoCo trajectories there")
    if arguments.recorded:
        for name in bodies:
            recorded(name)
        return
    answers = POPULATION * (arguments.generations + 1)
    for name in bodies:
        found: dict[float, list[list[float]]] = {temperature: [] for temperature in TEMPERATURES}
        for seed in range(arguments.seeds):
            train, test = (thinned(half, arguments.every) for half in halves(name, seed))
            for temperature in TEMPERATURES:
                found[temperature].append(searched(train, test, temperature, seed, arguments.generations))
                print(
                    f"{name}, seed {seed}, T {temperature:g}: fitness {found[temperature][-1][0]:.4f}", file=sys.stderr
                )
        print(f"{name}: {answers} answers, {arguments.seeds} seeds")
        print("       T  fitness  held out     AUC  programs  fitness beside T = 1        held-out AUC beside T = 1")
        plain = np.array(found[1.0])
        for temperature in TEMPERATURES:
            rows = np.array(found[temperature])
            fitness, held_out, auc, programs = rows.mean(axis=0)
            beside = ""
            if temperature != 1.0 and arguments.seeds > 1:
                beside = f"{interval(rows[:, 0] - plain[:, 0])}  {interval(rows[:, 2] - plain[:, 2])}"
            print(
                f"  {temperature:6g}  {fitness:7.4f}  {held_out:8.4f}  {auc:6.4f}  {programs:8.0f}  {beside}",
                flush=True,
            )


if __name__ == "__main__":
    main()
