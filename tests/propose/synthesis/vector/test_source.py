"""Additive rewards as programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.programs.check import read
from grace_irl.propose.synthesis.vector.additive import Additive, Table
from grace_irl.propose.synthesis.vector.numbers import VectorNumbers
from grace_irl.propose.synthesis.vector.source import write_source
from grace_irl.propose.synthesis.vector.term import Term, vocabulary
from tests.propose.worlds import rewards

NAMES = VectorNumbers(("height", "speed", "angle"))


def value(reward: Additive, states: np.ndarray) -> np.ndarray:
    return reward.bias + sum(
        (w * term.value(states) for term, w in zip(reward.terms, reward.weights, strict=True)), np.zeros(len(states))
    )


def table(seed: int, width: int = 5, scale: float = 1.0, shift: float = 0.0) -> tuple[Table, np.ndarray]:
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(200, width))
    positive = np.arange(200) < 80
    states[positive, 0] += 1.0
    states[positive, 1] *= 0.4
    states = states * scale + shift
    return Table(vocabulary(states[positive], states, 12), states, positive), states


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e-4, 0.0), (1e4, 0.0), (1.0, 1e5), (1e-3, -50.0)])
def test_a_program_gives_what_the_table_gives(scale: float, shift: float) -> None:
    """In any unit, and far from zero."""
    one, states = table(0, scale=scale, shift=shift)
    chosen: list[int] = []
    for _ in range(8):
        chosen = one.grow(chosen)
    reward = one.reward(chosen)
    source = write_source(reward, VectorNumbers.of([], 5))
    assert read(source).problems == ()
    assert rewards(source, states) == pytest.approx(value(reward, states), abs=0.02)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 99), max_size=6, unique=True))
def test_any_terms_make_a_program(seed: int, chosen: list[int]) -> None:
    one, states = table(seed % 7)
    reward = one.reward([i % len(one.terms) for i in dict.fromkeys(c % len(one.terms) for c in chosen)])
    source = write_source(reward, VectorNumbers.of([], 5))
    assert read(source).problems == ()
    assert rewards(source, states[:20]) == pytest.approx(value(reward, states[:20]), abs=0.05)


def test_terms_of_one_name_are_all_counted() -> None:
    """A field may be called like a term over another field; thresholds may agree in the digits that are shown."""
    names = VectorNumbers(("speed", "speed above 1", "speed above 1 (2)"))
    terms = (
        Term("above", (0,), (1.0,), (1.0,)),
        Term("level", (1,), (0.0,), (1.0,)),
        Term("level", (2,), (0.0,), (1.0,)),
        Term("above", (0,), (1.0 + 1e-9,), (1.0,)),
    )
    reward = Additive(terms, (4.0, 3.0, 2.0, 1.0), 0.5)
    source = write_source(reward, names)
    assert rewards(source, np.array([[2.0, 1.0, 1.0]])).tolist() == [0.5 + 4.0 + 3.0 + 2.0 + 1.0]
    space: dict[str, object] = {}
    exec(source, space)
    terms_given = space["Reward"]().terms_fn([2.0, 1.0, 1.0])  # type: ignore[operator]
    assert list(terms_given.values()) == [4.0, 3.0, 2.0, 1.0]
    assert next(iter(terms_given)) == "speed above 1"


@pytest.mark.parametrize("shapes", [("product",), ("product", "gap", "sum"), ("level", "above", "product")])
@pytest.mark.parametrize("width", [12, 18])
def test_twelve_terms_stay_within_sixty_lines(shapes: tuple[str, ...], width: int) -> None:
    """Twelve terms over as many numbers as they can use, under names as long as in MuJoCo."""
    names = [f"velocity_angle_back_{i}" for i in range(width)]
    terms: list[Term] = []
    for i in range(12):
        shape = shapes[i % len(shapes)]
        fields = (i, (i + 6) % width) if shape in ("product", "gap", "sum") else (i,)
        terms.append(Term(shape, fields, (0.123456,) * len(fields), (2.3456,) * len(fields)))  # type: ignore[arg-type]
    source = write_source(Additive(tuple(terms), (1.2345,) * 12, -0.5), VectorNumbers.of(names, width))
    assert len(source.splitlines()) <= 60
    assert read(source).problems == ()


def test_terms_can_be_watched() -> None:
    reward = Additive((Term("above", (0,), (1.0,), (2.0,)), Term("level", (1,), (0.0,), (1.0,))), (-2.0, 3.0), 0.25)
    source = write_source(reward, NAMES)
    space: dict[str, object] = {}
    exec(source, space)
    one = space["Reward"]("go")  # type: ignore[operator]
    assert one.terms_fn([2.0, 1.0, 9.0]) == {"speed": 3.0, "height above 1": -1.0}  # the heaviest first
    assert one.debug_fn([2.0, 1.0, 9.0]) == "speed: +3.00, height above 1: -1.00"
    assert one.reward_fn([2.0, 1.0, 9.0]) == 2.25
    assert '"angle"' not in source


def test_hostile_names_run_nothing() -> None:
    names = VectorNumbers.of(['a", z("b', "');raise SystemExit(1)#", "__import__('os')"], 3)
    terms = tuple(Term("gap", (i, (i + 1) % 3), (0.0, 0.0), (1.0, 1.0)) for i in range(3))
    source = write_source(Additive(terms, (1.0, 1.0, 1.0), 0.0), names)
    assert read(source).problems == ()
    assert rewards(source, np.array([[1.0, 2.0, 4.0]])).tolist() == [1.0 + 2.0 + 3.0]
