"""Ranks and Kendall's tau, held against SciPy's."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, rankdata

from grace_irl.evaluate.ranks import LONGEST, average_ranks, tau_against_time

FLOATS = st.floats(-1e308, 1e308) | st.sampled_from([0.0, -0.0, 1.0, 5e-324, -1e308])


@given(st.lists(FLOATS, min_size=1, max_size=30))
def test_ranks_are_those_of_scipy(values: list[float]) -> None:
    assert average_ranks(np.array(values)).tolist() == rankdata(values).tolist()


@given(st.lists(FLOATS, min_size=2, max_size=30))
def test_tau_is_that_of_scipy_to_the_last_digit(values: list[float]) -> None:
    theirs = kendalltau(values, range(len(values))).statistic
    assert tau_against_time(np.array(values)) == (0.0 if np.isnan(theirs) else theirs)


@pytest.mark.parametrize("count", [LONGEST - 1, LONGEST, LONGEST + 1, 1_000])
@pytest.mark.parametrize("digits", [0, 3])
def test_tau_of_long_trajectories(count: int, digits: int) -> None:
    values = np.random.default_rng(count).normal(size=count).round(digits)
    assert tau_against_time(values) == kendalltau(values, np.arange(count)).statistic


def test_a_run_begins_without_the_import_of_all_statistics() -> None:
    found = "import sys, grace_irl.runs.fit; print('scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", found], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
