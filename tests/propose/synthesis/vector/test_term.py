"""Terms as arrays and as Python text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grace_irl.propose.synthesis.vector.term import CLIP, FORMULAS, HINGES, Shape, Term, shown, vocabulary

ONE: tuple[Shape, ...] = ("minus", "above", "below", "off")
TWO: tuple[Shape, ...] = ("times", "against", "and")


@pytest.mark.parametrize(
    ("shape", "values"),
    [
        ("minus", [-5.0, -2.0, 0.0, 1.0, 5.0]),
        ("above", [0.0, 0.0, 0.0, 1.0, 5.0]),
        ("below", [5.0, 2.0, 0.0, 0.0, 0.0]),
        ("off", [5.0, 2.0, 0.0, 1.0, 5.0]),
    ],
)
def test_shapes_of_one_number(shape: Shape, values: list[float]) -> None:
    states = np.array([[9.0, -100.0], [9.0, -3.0], [9.0, 1.0], [9.0, 3.0], [9.0, 100.0]])
    assert Term(shape, (1,), (1.0,), (2.0,)).value(states).tolist() == values


@pytest.mark.parametrize(("shape", "value"), [("times", -6.0), ("against", 5.0), ("and", 1.0)])
def test_shapes_of_two_numbers(shape: Shape, value: float) -> None:
    assert Term(shape, (0, 1), (1.0, 0.0), (1.0, 2.0)).value(np.array([[4.0, -4.0]])).tolist() == [value]


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False, allow_infinity=False)


@st.composite
def terms(draw: st.DrawFn) -> Term:
    shape = draw(st.sampled_from((*ONE, *TWO)))
    fields = draw(st.permutations(range(3)))[: 2 if shape in TWO else 1]
    spreads = tuple(draw(numbers(1e-3, 1e3)) for _ in fields)
    centres = tuple(draw(numbers(-1e5, 1e5)) for _ in fields)
    return Term(shape, tuple(fields), centres, spreads)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(terms(), st.lists(numbers(-6.0, 6.0), min_size=3, max_size=3))
def test_the_formula_says_what_the_value_is(term: Term, away: list[float]) -> None:
    """For a state at `away` deviations, whatever the centre and the unit are."""
    state = np.array(away)
    for field, centre, spread in zip(term.fields, term.centres, term.spreads, strict=True):
        state[field] = centre + away[field] * spread
    clipped = [max(-CLIP, min(CLIP, away[field])) for field in term.fields]
    given = eval(FORMULAS[term.shape], {"max": max, "abs": abs})(*clipped)
    assert given == pytest.approx(term.value(state[None])[0], abs=1e-6)


@settings(max_examples=200, deadline=None, derandomize=True)
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
        (Term("minus", (0,), (1.0,), (1.0,)), "height minus 1"),
        (Term("above", (0,), (1.25,), (1.0,)), "height above 1.25"),
        (Term("below", (0,), (1.0,), (1.0,)), "height below 1"),
        (Term("off", (1,), (0.0,), (1.0,)), "speed off 0"),
        (Term("times", (0, 1), (0.0, 0.0), (1.0, 1.0)), "height times speed"),
        (Term("against", (0, 1), (0.0, 0.0), (1.0, 1.0)), "height against speed"),
        (Term("and", (0, 1), (0.0, 0.0), (1.0, 1.0)), "height and speed"),
    ],
)
def test_names(term: Term, name: str) -> None:
    assert term.name(("height", "speed")) == name


def test_thresholds_that_differ_have_names_that_differ() -> None:
    """Though they lie close together, far from zero."""
    terms = [Term("above", (0,), (1000.0 + step,), (1.0,)) for step in (0.0, 0.25, 0.5)]
    assert [term.name(("x",)) for term in terms] == ["x above 1000", "x above 1000.25", "x above 1000.5"]


def test_vocabulary_of_one_number() -> None:
    experts = np.linspace(0.0, 1.0, 21)[:, None]
    terms = vocabulary(experts, np.concatenate([experts, experts + 5.0]), 4)
    assert [term.shape for term in terms] == ["minus", "off", *(["above", "below"] * len(HINGES))]
    assert sorted({term.centres[0] for term in terms[2:]}) == pytest.approx(HINGES)
    assert {term.spreads[0] for term in terms} == {float(experts.std())}


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
    assert [(term.shape, term.centres[0]) for term in terms] == [(s, 2.0) for s in ("minus", "off", "above", "below")]


def test_pairs_are_of_the_numbers_that_differ_most() -> None:
    rng = np.random.default_rng(1)
    experts = rng.normal(size=(200, 5))
    others = experts + np.array([0.0, 3.0, 0.1, 5.0, 0.2])
    pairs = [term.fields for term in vocabulary(experts, np.concatenate([experts, others]), 2) if len(term.fields) == 2]
    assert pairs == [(1, 3)] * 3


def test_no_more_terms_than_numbers_allow() -> None:
    rng = np.random.default_rng(2)
    states = rng.normal(size=(50, 3))
    count = 3 * (2 + 2 * len(HINGES))
    assert len(vocabulary(states[:20], states, 0)) == count
    assert len(vocabulary(states[:20], states, 3)) == count + 3 * len(TWO)
