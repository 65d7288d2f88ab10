"""Vectors in prompts: rounded by their own spread, statistics by label, the widest cut to what matters."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Demonstration, Metadata, Trajectory
from grace_irl.propose.views.vector import HELPER, MAX_FIELDS, VectorView, field_statistics


def view(expert: NDArray[np.float64], negative: NDArray[np.float64], fields: tuple[str, ...] = ()) -> VectorView:
    items = [
        Labelled(Demonstration(Trajectory(expert), "expert"), np.ones(len(expert), dtype=np.bool_)),
        Labelled(Demonstration(Trajectory(negative), "negative"), np.zeros(len(negative), dtype=np.bool_)),
    ]
    return VectorView(items, Metadata("vector", fields=fields))


def columns(*values: list[float]) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64).T


def test_numbers_keep_a_tenth_of_their_spread() -> None:
    shown = view(columns([100.0, 300.0], [1.2501, 1.2502], [0.0, 1.0]), columns([200.0, 400.0], [1.25, 1.2503], [1, 0]))
    assert shown.state(np.array([123.456, 1.250149, -0.0001])) == "[123 1.25015 0]"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("huge", [1e38, 1e300, 1.7e308])
def test_huge_numbers_are_short(huge: float) -> None:
    shown = view(columns([huge, 0.0], [1.0, 3.0]), columns([huge, -huge], [1.0, 3.0]))
    assert shown.state(np.array([huge, 1.0])) == f"[{huge:g} 1]"
    assert shown.legend(2000).endswith("\n[1]: 2, 1 (1.1 2 2.9) | 2, 1 (1.1 2 2.9) | +0.00")


def test_few_changes_are_written_alone_and_many_as_a_row() -> None:
    rng = np.random.default_rng(0)
    shown = view(rng.normal(size=(20, 6)), rng.normal(size=(20, 6)))
    zero = np.zeros(6)
    one, two, all_ = zero.copy(), zero.copy(), zero + 1
    one[2] = 0.51
    two[[0, 5]] = 1, -1
    assert re.fullmatch(r"\[2\]=0\.51?", shown.change(zero, one))
    assert shown.change(zero, two) == "[0]=1 [5]=-1"
    assert shown.change(zero, all_) == "[1 1 1 1 1 1]"
    assert shown.change(zero, zero + 1e-9) == "no change"


def test_the_table_is_by_effect_with_names() -> None:
    rng = np.random.default_rng(0)
    expert, negative = rng.normal(size=(500, 3)), rng.normal(size=(500, 3))
    expert[:, 1] += 2.0
    legend = view(expert, negative, ("near", "fast", "high")).legend(2000)
    rows = [line for line in legend.splitlines() if line.startswith("[")]
    assert rows[0].startswith("[1] fast: 2.")
    assert 1.8 < float(rows[0].rpartition("| ")[2]) < 2.2
    assert len(rows) == 3


def test_what_never_varies_is_said_once() -> None:
    shown = view(columns([1, 2, 3], [5, 5, 5]), columns([4, 5, 6], [5, 5, 5]))
    assert "Constant in all data: [1]=5" in shown.legend(1000)
    assert shown.state(np.array([1.0, 5.0])) == "[1]"


def test_of_wide_vectors_the_fields_with_the_largest_effects_are_shown() -> None:
    rng = np.random.default_rng(1)
    expert, negative = rng.normal(size=(200, 100)), rng.normal(size=(200, 100))
    telling = [3, 50, 99]
    expert[:, telling] += 5.0
    shown = view(expert, negative)
    assert len(shown.state(expert[0]).split()) == MAX_FIELDS
    listed = shown.legend(3000).partition("numbers: fields ")[2].partition(". ")[0]
    spans = [part.split("..") for part in listed.split(", ")]
    assert all(any(int(span[0]) <= field <= int(span[-1]) for span in spans) for field in telling)
    assert re.search(r"\[\d+ more fields with smaller effects\]$", shown.legend(600))


def test_names_and_type_are_part_of_the_contract() -> None:
    shown = view(columns([1, 2], [3, 5]), columns([4, 5], [5, 6]), ("a", "b"))
    assert shown.about == "A state is a numpy array of float64 with shape (2,). Fields: state[0] a, state[1] b."


def test_statistics_by_closed_form() -> None:
    rows = field_statistics([[0.0, 1.0], [2.0, 1.0]], [[4.0, 1.0], [6.0, 1.0]])
    assert [row["field"] for row in rows] == [0, 1]
    assert rows[0]["expert"] == {"mean": 1.0, "std": 1.0, "p5": 0.1, "p50": 1.0, "p95": 1.9}
    assert rows[0]["negative"]["mean"] == 5.0
    assert rows[0]["d"] == pytest.approx(-4.0)  # (1 - 5) / sqrt((1 + 1) / 2)
    assert rows[1]["d"] == 0.0  # nothing varies


def test_the_helper_runs_on_its_own() -> None:
    """What a program copies is the function that made the table, and needs nothing of ours."""
    names: dict[str, object] = {}
    exec(HELPER, names)
    copied = names["field_statistics"]
    assert callable(copied)
    assert copied([[1.0]], [[2.0]]) == field_statistics([[1.0]], [[2.0]])
    assert "grace_irl" not in HELPER
