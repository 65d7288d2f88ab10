"""The table of terms: its memory, and that working on a few columns at a time changes no number."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from grace_irl.synthesis.vector import term_table
from grace_irl.synthesis.vector.term_table import TermTable, design_effect
from grace_irl.synthesis.vector.terms import Term, vocabulary


def some(states: int, fields: int) -> tuple[list[Term], np.ndarray, np.ndarray, np.ndarray]:
    """Terms, states, labels and episodes."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(states, fields)) * rng.lognormal(size=fields)
    positive = np.arange(states) % 3 == 0
    terms = vocabulary(values[positive], values, 4, 4, None, np.ones(fields, dtype=bool))
    return terms, values, positive, np.arange(states) // 50


def test_making_a_table_takes_little_more_than_the_table() -> None:
    terms, values, positive, episodes = some(20_000, 40)
    tracemalloc.start()
    try:
        table = TermTable(terms, values, positive, np.ones(len(terms)), episodes)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(terms) > 100
    assert peak < 1.6 * table.values.nbytes


@pytest.mark.parametrize("columns", [1, 2, 16, 17, 18, 33, 50])
def test_parts_of_columns_change_no_digit(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terms, values, positive, episodes = some(3_001, 20)
    in_parts = TermTable(terms[:columns], values, positive, np.ones(columns), episodes)
    monkeypatch.setattr(term_table, "_PART", 1_000)
    at_once = TermTable(terms[:columns], values, positive, np.ones(columns), episodes)
    for name in ("mean", "deviation", "values", "price"):
        np.testing.assert_array_equal(getattr(in_parts, name), getattr(at_once, name))
    assert (in_parts.price >= 1.0).all()


def test_a_table_without_terms_is_empty() -> None:
    _, values, positive, episodes = some(100, 3)
    table = TermTable([], values, positive, None, episodes)
    assert table.values.shape == (100, 0)
    assert design_effect(table.values, positive, episodes).shape == (0,)
