"""Terms as arrays and as Python text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grace_irl.synthesis.vector.terms import FAR, FORMULAS, HINGES, PAIRS, RANGE, Shape, Term, shown, vocabulary

ONE = (0.0, 1.0, -5.0, 5.0)
"""Centre, spread and range of a plain number."""


def term_of(shape: Shape, threshold: float, *measures: tuple[float, float, float, float]) -> Term:
    """Over as many of the first numbers as there are measures: centre, spread, lowest and highest value."""
    centres, spreads, lows, highs = zip(*measures, strict=True)
    return Term(shape, tuple(range(len(measures))), centres, spreads, tuple(zip(lows, highs, strict=True)), threshold)


@pytest.mark.parametrize(
    ("shape", "values"),
    [
        ("minus", [-3.0, -2.5, -0.5, 0.5, 2.0]),
        ("above", [0.0, 0.0, 0.0, 0.5, 2.0]),
        ("below", [3.0, 2.5, 0.5, 0.0, 0.0]),
        ("off", [3.0, 2.5, 0.5, 0.5, 2.0]),
    ],
)
def test_shapes_of_one_number(shape: Shape, values: list[float]) -> None:
    """In deviations from the threshold, of a number that counts no further than its range."""
    states = np.array([[-100.0], [-3.0], [1.0], [3.0], [100.0]])
    assert term_of(shape, 2.0, (1.0, 2.0, -4.0, 6.0)).value(states).tolist() == values


def test_only_one_term_tells_that_the_range_was_left() -> None:
    states = np.array([[-99.0, 0.0], [-4.5, 0.0], [1.0, 0.0], [6.0, 0.0], [8.0, 4.5]])
    one, other = (1.0, 2.0, -4.0, 6.0), (0.0, 1.0, 0.0, 2.5)
    assert term_of("outside", 0.0, one).value(states).tolist() == [FAR, 0.25, 0.0, 0.0, 1.0]
    both = term_of("outside", 0.0, one, other)
    assert both.value(states).tolist() == [FAR, 0.25, 0.0, 0.0, 1.0 + 2.0]
    assert both.name(("height", "speed")) == "outside the range"


@pytest.mark.parametrize(("shape", "value"), [("times", -3.0), ("against", 3.5), ("and", 0.5)])
def test_shapes_of_two_numbers(shape: Shape, value: float) -> None:
    term = term_of(shape, 0.0, (1.0, 1.0, -9.0, 9.0), (0.0, 2.0, -9.0, 9.0))
    assert term.value(np.array([[3.0, -3.0]])).tolist() == [value]


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False, allow_infinity=False)


@st.composite
def terms(draw: st.DrawFn) -> Term:
    shape = draw(st.sampled_from(tuple(FORMULAS)))
    fields = draw(st.permutations(range(3)))[: 2 if shape in PAIRS else 1]
    spreads = tuple(draw(numbers(1e-3, 1e3)) for _ in fields)
    centres = tuple(draw(numbers(-1e5, 1e5)) for _ in fields)
    ranges = tuple(
        (centre - draw(numbers(0.0, 3.0)) * spread, centre + draw(numbers(0.0, 3.0)) * spread)
        for centre, spread in zip(centres, spreads, strict=True)
    )
    return Term(shape, tuple(fields), centres, spreads, ranges, centres[0] + draw(numbers(-3.0, 3.0)) * spreads[0])


@settings(max_examples=200, derandomize=True)
@given(terms(), st.lists(numbers(-6.0, 6.0), min_size=3, max_size=3))
def test_the_formula_says_what_the_value_is(term: Term, away: list[float]) -> None:
    """For a state at `away` deviations, whatever the centre and the unit are."""
    state = np.array(away)
    for field, centre, spread in zip(term.fields, term.centres, term.spreads, strict=True):
        state[field] = centre + away[field] * spread
    within = [min(max(state[field], low), high) for field, (low, high) in zip(term.fields, term.ranges, strict=True)]
    near = [(x - c) / s for x, c, s in zip(within, term.centres, term.spreads, strict=True)]
    other = near[1] if term.shape in PAIRS else (term.threshold - term.centres[0]) / term.spreads[0]
    given = eval(FORMULAS[term.shape], {"max": max, "abs": abs})(near[0], other)
    assert given == pytest.approx(term.value(state[None])[0], abs=1e-6)


@settings(max_examples=200, derandomize=True)
@given(numbers(-1e9, 1e9), numbers(1e-6, 1e6), st.integers(2, 5))
def test_numbers_are_right_to_the_digits_of_their_unit(value: float, unit: float, digits: int) -> None:
    assume(abs(value) / unit < 10 ** (17 - digits))
    assert abs(float(shown(value, unit, digits)) - value) <= 1.001 * max(unit, abs(value) * 1e-16) * 10.0 ** (
        1 - digits
    )


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.123456, 1.0, "0.1235"),
        (1.23456, 1.0, "1.2346"),
        (0.000123456, 1.0, "0.0001235"),
        (1234.5678, 0.1, "1234.5678"),
        (-7.0, 100.0, "-7"),
    ],
)
def test_numbers_are_no_longer_than_needed(value: float, unit: float, text: str) -> None:
    assert shown(value, unit, 4) == text


@pytest.mark.parametrize(
    ("term", "name"),
    [
        (Term("minus", (0,), (0.5,), (1.0,), ((0.0, 9.0),), 1.0), "height minus 1"),
        (Term("above", (0,), (0.5,), (1.0,), ((0.0, 9.0),), 1.25), "height above 1.25"),
        (Term("below", (0,), (0.5,), (1.0,), ((0.0, 9.0),), 1.0), "height below 1"),
        (Term("off", (1,), (0.5,), (1.0,), ((0.0, 9.0),), 0.0), "speed off 0"),
        (term_of("times", 0.0, ONE, ONE), "height times speed"),
        (term_of("against", 0.0, ONE, ONE), "height against speed"),
        (term_of("and", 0.0, ONE, ONE), "height and speed"),
    ],
)
def test_names(term: Term, name: str) -> None:
    assert term.name(("height", "speed")) == name


def test_thresholds_that_differ_have_names_that_differ() -> None:
    """Though they lie close together, far from zero."""
    terms = [term_of("above", 1000.0 + step, ONE) for step in (0.0, 0.25, 0.5)]
    assert [term.name(("x",)) for term in terms] == ["x above 1000", "x above 1000.25", "x above 1000.5"]


def test_vocabulary_of_one_number() -> None:
    experts = np.linspace(0.0, 1.0, 21)[:, None]
    terms = vocabulary(experts, np.concatenate([experts, experts + 5.0]), 4)
    assert [term.shape for term in terms] == ["minus", "off", *(["above", "below"] * len(HINGES))]
    assert sorted({term.threshold for term in terms[2:]}) == pytest.approx(HINGES)
    assert {(term.centres, term.spreads) for term in terms} == {((float(experts.mean()),), (float(experts.std()),))}
    assert {term.ranges for term in terms} == {(tuple(np.quantile(experts, RANGE).tolist()),)}


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e6, -3.3])
def test_numbers_that_never_change_are_left_out(constant: float) -> None:
    rng = np.random.default_rng(0)
    states = np.column_stack([np.full(100, constant), rng.normal(size=100)])
    terms = vocabulary(states[:50], states, 4)
    assert {field for term in terms for field in term.fields} == {1}


def test_a_number_that_experts_never_change_is_measured_in_everybodys_deviations() -> None:
    experts, others = np.full((10, 1), 2.0), np.arange(10.0)[:, None]
    everything = np.concatenate([experts, others])
    terms = vocabulary(experts, everything, 4)
    assert {term.spreads[0] for term in terms} == {float(everything.std())}
    assert {term.ranges for term in terms} == {((2.0 - FAR * everything.std(), 2.0 + FAR * everything.std()),)}
    assert [(term.shape, term.threshold) for term in terms] == [(s, 2.0) for s in ("minus", "off", "above", "below")]


def test_pairs_are_of_the_numbers_that_differ_most() -> None:
    rng = np.random.default_rng(1)
    experts = rng.normal(size=(200, 5))
    others = experts + np.array([0.0, 3.0, 0.1, 5.0, 0.2])
    pairs = [term.fields for term in vocabulary(experts, np.concatenate([experts, others]), 2) if len(term.fields) == 2]
    assert pairs == [(1, 3)] * 3


def test_the_first_term_watches_the_numbers_that_differ_most() -> None:
    rng = np.random.default_rng(1)
    experts = rng.normal(size=(200, 4))
    others = experts + np.array([0.0, 3.0, 0.1, 5.0])
    everything = np.concatenate([experts, others])
    first, second, *_ = vocabulary(experts, everything, 0, 2)
    assert (first.shape, first.fields, second.shape) == ("outside", (1, 3), "minus")
    assert first.value(experts).mean() < 0.05 < 2.0 < first.value(others).mean()
    assert vocabulary(experts, everything, 0)[0].shape == "minus"
    assert vocabulary(np.zeros((3, 2)), np.zeros((6, 2)), 2, 2) == [], "nothing varies: nothing to watch"


def test_no_more_terms_than_numbers_allow() -> None:
    rng = np.random.default_rng(2)
    states = rng.normal(size=(50, 3))
    count = 3 * (2 + 2 * len(HINGES))
    assert len(vocabulary(states[:20], states, 0)) == count
    assert len(vocabulary(states[:20], states, 3)) == count + 3 * len(PAIRS)
