"""Additive rewards as programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.programs.check import read
from grace_irl.synthesis.vector.additive import Additive, write_source
from grace_irl.synthesis.vector.numbers import VectorNumbers
from grace_irl.synthesis.vector.quantities import Measures, Quantity
from grace_irl.synthesis.vector.term_table import TermTable
from grace_irl.synthesis.vector.terms import FORMULAS, Shape, Term, vocabulary
from tests.synthesis.worlds import rewards

NAMES = Measures.plain(VectorNumbers(("height", "speed", "angle")))


def term_of(
    shape: Shape,
    fields: tuple[int, ...],
    centres: tuple[float, ...],
    spreads: tuple[float, ...],
    threshold: float = 0.0,
    ranges: tuple[tuple[float, float], ...] = ((-99.5, 99.5), (-99.5, 99.5)),
) -> Term:
    """Over numbers that may be nearly anything, if nothing else is said."""
    return Term(shape, fields, centres, spreads, ranges[: len(fields)], threshold)


def value(reward: Additive, states: np.ndarray) -> np.ndarray:
    return reward.bias + sum(
        (w * term.value(states) for term, w in zip(reward.terms, reward.weights, strict=True)), np.zeros(len(states))
    )


def table(
    seed: int, width: int = 5, scale: float = 1.0, shift: float = 0.0, watched: int = 5
) -> tuple[TermTable, np.ndarray]:
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(200, width))
    positive = np.arange(200) < 80
    states[positive, 0] += 1.0
    states[positive, 1] *= 0.4
    states = states * scale + shift
    return TermTable(vocabulary(states[positive], states, 12, watched), states, positive), states


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e-4, 0.0), (1e4, 0.0), (1.0, 2e4), (1e-3, -20.0)])
def test_a_program_gives_what_the_table_gives(scale: float, shift: float) -> None:
    """In any unit, and far from zero."""
    one, states = table(0, scale=scale, shift=shift)
    chosen: list[int] = []
    for _ in range(8):
        chosen = one.grow(chosen)
    assert len(chosen) == 8
    reward = one.reward(chosen)
    source = write_source(reward, Measures.plain(VectorNumbers.of([], 5)))
    assert read(source).problems == ()
    assert rewards(source, states) == pytest.approx(value(reward, states), abs=0.02)


@settings(max_examples=40, derandomize=True)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 99), max_size=6, unique=True))
def test_any_terms_make_a_program(seed: int, chosen: list[int]) -> None:
    one, states = table(seed % 7)
    reward = one.reward([i % len(one.terms) for i in dict.fromkeys(c % len(one.terms) for c in chosen)])
    source = write_source(reward, Measures.plain(VectorNumbers.of([], 5)))
    assert read(source).problems == ()
    assert rewards(source, states[:20]) == pytest.approx(value(reward, states[:20]), abs=0.05)


def test_terms_of_one_name_are_all_counted() -> None:
    """A field may be called like a term over another field; thresholds may agree in the digits that are shown."""
    names = Measures.plain(VectorNumbers(("speed", "speed times b", "b times c", "c")))
    terms = (
        term_of("above", (0,), (0.5,), (1.0,), 1.0),
        term_of("times", (0, 2), (0.5, 0.0), (1.0, 1.0)),
        term_of("times", (1, 3), (0.0, 0.0), (1.0, 1.0)),
        term_of("above", (0,), (0.5,), (1.0,), 1.0 + 1e-9),
    )
    source = write_source(Additive(terms, (4.0, 3.0, 2.0, 1.0), 0.5), names)
    assert rewards(source, np.array([[2.0, 1.0, 1.0, 1.0]])).tolist() == [0.5 + 4.0 + 3.0 * 1.5 + 2.0 + 1.0]
    space: dict[str, object] = {}
    exec(source, space)
    terms_given = space["Reward"]().terms_fn([2.0, 1.0, 1.0, 1.0])  # type: ignore[operator]
    assert terms_given == {"speed times b times c": 6.5, "speed above 1": 5.0} or terms_given == {
        "speed above 1.0": 5.0,
        "speed times b times c": 6.5,
    }


JOINTS = ("torso", "thigh", "leg", "foot")
HOPPER = ["z_torso", *(f"angle_{j}" for j in JOINTS), "velocity_x", "velocity_z"]
HOPPER += [f"velocity_angle_{j}" for j in JOINTS]


@pytest.mark.parametrize(
    "shapes", [("times",), ("times", "against", "and"), ("minus", "above", "times"), tuple(FORMULAS)]
)
def test_twelve_terms_over_a_hopper_stay_within_sixty_lines(shapes: tuple[Shape, ...]) -> None:
    """Over as many numbers as they can use; and no line is long."""
    terms: list[Term] = []
    for i in range(11):
        shape = shapes[i % len(shapes)]
        fields = (i % 11, (i + 6) % 11) if "b:" in FORMULAS[shape] else (i % 11,)
        terms.append(term_of(shape, fields, (-0.00123456,) * len(fields), (2.3456,) * len(fields)))
    everything = tuple(range(11))
    terms.append(Term("outside", everything, (-0.00123456,) * 11, (2.3456,) * 11, ((-99.5, 99.5),) * 11))
    source = write_source(Additive(tuple(terms), (-11.2345,) * 12, -0.5), Measures.plain(VectorNumbers.of(HOPPER, 11)))
    assert len(source.splitlines()) <= 60
    assert max(map(len, source.splitlines())) <= 100
    assert read(source).problems == ()


def test_numbers_beyond_those_watched_are_told_apart() -> None:
    """A program over more numbers than are watched lists those that are."""
    one, states = table(0, watched=2)
    reward = one.reward([0, 60, 1, 20])
    source = write_source(reward, Measures.plain(VectorNumbers.of([], 5)))
    assert "WATCHED = (" in source
    away = states * 4.0
    assert rewards(source, away) == pytest.approx(value(reward, away), abs=0.05)
    assert one.terms[0].value(away).max() > 1.0
    assert "WATCHED" not in write_source(table(0)[0].reward([0, 1]), Measures.plain(VectorNumbers.of([], 5)))


def test_long_names_make_no_long_lines() -> None:
    names = [f"the {i}th of the joint angular velocities of it" for i in range(6)]
    terms = tuple(term_of("against", (i, i + 1), (-0.00123456,) * 2, (0.00023456,) * 2) for i in range(5))
    source = write_source(Additive(terms, (-11.2345,) * 5, -0.5), Measures.plain(VectorNumbers.of(names, 6)))
    assert max(map(len, source.splitlines())) <= 100
    assert len(rewards(source, np.zeros((2, 6)))) == 2


def test_terms_can_be_watched() -> None:
    reward = Additive(
        (term_of("above", (0,), (0.0,), (2.0,), 1.0), term_of("minus", (1,), (0.0,), (1.0,))), (-2.0, 3.0), 0.25
    )
    source = write_source(reward, NAMES)
    space: dict[str, object] = {}
    exec(source, space)
    one = space["Reward"]("go")  # type: ignore[operator]
    assert one.terms_fn([2.0, 1.0, 9.0]) == {"speed minus 0": 3.0, "height above 1": -1.0}  # the heaviest first
    assert one.debug_fn([2.0, 1.0, 9.0]) == "speed minus 0: +3.00, height above 1: -1.00"
    assert one.reward_fn([2.0, 1.0, 9.0]) == 2.25
    assert '"angle"' not in source


def test_hostile_names_run_nothing() -> None:
    names = Measures.plain(VectorNumbers.of(['a", z("b', "');raise SystemExit(1)#", "__import__('os')"], 3))
    terms = tuple(term_of("against", (i, (i + 1) % 3), (0.0, 0.0), (1.0, 1.0)) for i in range(3))
    source = write_source(Additive(terms, (1.0, 1.0, 1.0), 0.0), names)
    assert read(source).problems == ()
    assert rewards(source, np.array([[-1.0, 0.0, 2.0]])).tolist() == [1.0 + 2.0 + 3.0]


def test_places_and_functions_stand_in_one_table() -> None:
    """Plain numbers of a vector are places, and other quantities functions of the state."""
    plain = VectorNumbers(("x", "y", "speed"))
    numbers = Measures(plain, (Quantity("number", (2,)), Quantity("norm", (0, 1))))
    terms = (term_of("minus", (0,), (0.0,), (1.0,)), term_of("minus", (1,), (0.0,), (1.0,)))
    source = write_source(Additive(terms, (1.0, 10.0), 0.0), numbers)
    assert read(source).problems == ()
    assert '"speed": (2, ' in source
    assert rewards(source, np.array([[3.0, 4.0, 7.0]])).tolist() == [57.0]
