"""Coverage of 95 % intervals of a few runs: Student t beside bootstraps, for 3, 5 and 10 runs.

Scores of runs are drawn from distributions whose mean (and interquartile mean) is known; an interval holds if that lies
in it. For each candidate: the share of intervals that hold, of those that are stated, and how many are. Nothing is
stated of equal runs, which say nothing of their spread; a bootstrap that is stated there, too, has width 0.

    python benchmarks/interval_coverage.py             # a minute

Distributions: normal; lognormal (sigma 1, skewed to the right); 0 or 1 with a chance of 0.5 and of 0.8 (a level that is
learnt or not); and mostly learnt: success near 0.99, with a chance of 0.1 of a run near 0.3.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.stats import mstats

from grace_irl.compare.standings import CONFIDENCE, TRIM, interquartile_mean, summarise

Floats = NDArray[np.float64]
RUNS = (3, 5, 10)
LARGE = 1_000_000
"""Draws that an interquartile mean is known from."""


@dataclass(frozen=True)
class Distribution:
    """Scores of runs.

    Attributes:
        name: in the table.
        draw: scores of a shape.
        mean: the true one.
        within: least and largest score.
    """

    name: str
    draw: Callable[[np.random.Generator, tuple[int, ...]], Floats]
    mean: float
    within: tuple[float, float] = (-np.inf, np.inf)


def mostly_learnt(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Success rates of a method that fails in one seed of ten."""
    return np.where(rng.random(shape) < 0.1, rng.uniform(0.2, 0.4, shape), rng.uniform(0.98, 1.0, shape))


def chance(p: float) -> Distribution:
    """Runs that are learnt, or not at all."""
    return Distribution(f"0 or 1, chance {p}", lambda rng, shape: (rng.random(shape) < p).astype(float), p, (0, 1))


DISTRIBUTIONS = (
    Distribution("normal", lambda rng, shape: rng.normal(size=shape), 0.0),
    Distribution("lognormal", lambda rng, shape: rng.lognormal(size=shape), float(np.exp(0.5))),
    chance(0.5),
    chance(0.8),
    Distribution("mostly learnt", mostly_learnt, 0.1 * 0.3 + 0.9 * 0.99, (0, 1)),
)

Intervals = tuple[Floats, Floats]


def student(samples: Floats, _: int) -> Intervals:
    """The interval that `grace-irl compare` prints."""
    found = np.array([summarise(sample).interval for sample in samples])
    return found[:, 0], found[:, 1]


def bootstrap(method: str, statistic: Any) -> Callable[[Floats, int], Intervals]:
    """A bootstrap interval of a statistic, for each row of samples."""

    def found(samples: Floats, resamples: int) -> Intervals:
        with warnings.catch_warnings():  # BCa knows no interval of equal runs, and says so
            warnings.simplefilter("ignore")
            low, high = stats.bootstrap(
                (samples,),
                statistic,
                axis=-1,
                n_resamples=resamples,
                confidence_level=CONFIDENCE,
                method=method,
                batch=100,
                rng=np.random.default_rng(0),
            ).confidence_interval
        return low, high

    return found


def trimmed(samples: Floats, _: int) -> Intervals:
    """Student t on the trimmed mean, with the winsorised deviation (Tukey and McLaughlin 1963)."""
    pairs = [
        mstats.trimmed_mean_ci(sample, (TRIM, TRIM), alpha=1 - CONFIDENCE) if np.ptp(sample) else (np.nan, np.nan)
        for sample in samples
    ]
    found = np.array([[float(end) for end in pair] for pair in pairs])
    return found[:, 0], found[:, 1]


CANDIDATES: tuple[tuple[str, bool, Callable[[Floats, int], Intervals]], ...] = (
    ("mean: Student t", False, student),
    ("mean: percentile bootstrap", False, bootstrap("percentile", np.mean)),
    ("mean: BCa bootstrap", False, bootstrap("BCa", np.mean)),
    ("IQM: trimmed t", True, trimmed),
    ("IQM: percentile bootstrap", True, bootstrap("percentile", interquartile_mean)),
)
"""Name, whether it is of the interquartile mean, and the intervals of samples."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2_000, help="of each distribution and number of runs")
    parser.add_argument("--resamples", type=int, default=1_000, help="of each bootstrap")
    options = parser.parse_args()
    print(f"{options.samples:,} samples each; coverage of 95 % intervals that are stated (share of samples with one)")
    for distribution in DISTRIBUTIONS:
        print(f"\n{distribution.name}".ljust(31) + "".join(f"{f'{runs} runs':>18}" for runs in RUNS))
        iqm = float(interquartile_mean(distribution.draw(np.random.default_rng(1), (LARGE,))))
        for name, of_iqm, intervals in CANDIDATES:
            cells = []
            for runs in RUNS:
                samples = distribution.draw(np.random.default_rng(runs), (options.samples, runs))
                low, high = intervals(samples, options.resamples)
                stated = np.isfinite(low) & np.isfinite(high)
                true = iqm if of_iqm else distribution.mean
                held = (low <= true) & (true <= high) & stated
                cells.append(f"{held.sum() / max(stated.sum(), 1):>9.3f} ({stated.mean():.2f}) ")
            print(f"{name:30}" + "".join(f"{cell:>18}" for cell in cells))


if __name__ == "__main__":
    main()
