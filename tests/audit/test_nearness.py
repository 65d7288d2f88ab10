"""Negatives that stay away from all goals in one number, and data that look alike and are sound."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.states.record import RecordStates
from tests.audit.bench import Episode, codes, drawn, examined, warned

FULL = "return state[0] - 150.0"
FIELDS = ("milk", "tilt")


def pour(
    spilt: float = 8.0,
    *,
    early: bool = False,
    step: float = 1.0,
    fields: Callable[[np.ndarray], np.ndarray] = lambda states: states,
) -> Episode:
    """Cups that experts fill to 180 to 200 ml, and then set the jug upright; negatives pour `spilt` ml at most.

    Args:
        spilt: what negatives pour at most.
        early: whether experts hold the full cup for some states before the jug is upright.
        step: milk is a multiple of it.
        fields: the numbers of a state, from milk and tilt.
    """

    def episode(rng: np.random.Generator, role: Role) -> Trajectory:
        length = int(rng.integers(12, 25))
        most = rng.uniform(180, 200) if role == "expert" else rng.uniform(spilt / 2, spilt)
        share = np.append(np.linspace(0, 0.85, length - 1), 1.0)
        if early:
            share = np.minimum(share * 1.5, 1.0)
        tilt = rng.uniform(30, 60, length)
        tilt[[0, -1]] = rng.uniform(0, 3), rng.uniform(0, 3) if role == "expert" else tilt[-1]
        milk = np.round(most * share / step) * step
        states = fields(np.column_stack([milk, tilt.round(1)]))
        return Trajectory(states, np.zeros(length - 1))

    return episode


def _noisy_switch(states: np.ndarray) -> np.ndarray:
    """Milk is in the cup as soon as it is full; the scale drifts."""
    full = states[:, 0] > 175
    return np.column_stack([180.0 * full + 0.1 * np.sin(np.arange(len(full))), states[:, 1]])


def test_negatives_far_from_all_goals_in_one_number_are_named() -> None:
    found = warned(examined(drawn(pour(), fields=FIELDS), FULL), "negatives-far")
    assert found.found.startswith("24 of 24 negatives stay far from all goals in 'milk' (18")
    assert "; the nearest of them has 8)" in found.found
    assert "expand" in found.advice


def test_it_does_not_matter_on_which_side_they_stay() -> None:
    """Less is poured out of a jug, of which the state holds the rest."""
    jug = pour(fields=lambda states: np.column_stack([200.0 - states[:, 0], states[:, 1]]))
    found = warned(examined(drawn(jug, fields=("rest", "tilt")), "return 50.0 - state[0]"), "negatives-far")
    assert "in 'rest' (0" in found.found.replace("(0.", "(0")
    assert "nearest of them has 192)" in found.found


def test_numbers_of_records_have_their_names() -> None:
    def recorded(item: Demonstration) -> Demonstration:
        states = item.trajectory.states
        parts = {"cup/milk": states[:, :1], "said": np.array([b"go"] * len(states)), "tilt": states[:, 1]}
        return replace(item, trajectory=replace(item.trajectory, states=RecordStates(parts), kind="record"))

    demonstrations = Demonstrations(Metadata("record"), tuple(recorded(item) for item in drawn(pour()).items))
    found = warned(examined(demonstrations, "return float(state['cup/milk'][0]) - 150.0"), "negatives-far")
    assert "in 'cup/milk[0]' (" in found.found or "in 'cup/milk' (" in found.found


@pytest.mark.parametrize(
    "episode",
    [
        pytest.param(pour(170.0), id="near misses"),
        pytest.param(pour(early=True), id="experts are there before"),
        pytest.param(pour(step=200.0), id="a switch"),
        pytest.param(pour(fields=_noisy_switch), id="a switch with noise"),
        pytest.param(pour(fields=lambda states: states[:, :1]), id="one number"),
        pytest.param(pour(fields=lambda states: states * np.array([1.0, 0.0])), id="one number that varies"),
    ],
)
def test_other_data_have_no_such_warning(episode: Episode) -> None:
    assert "negatives-far" not in codes(examined(drawn(episode, fields=()), FULL))


def test_some_negatives_that_come_near_are_enough() -> None:
    """One of ten is not, two are."""
    rng = np.random.default_rng(0)

    def mixed(share: float) -> Episode:
        return lambda draw, role: pour(190.0 if role == "negative" and rng.random() < share else 8.0)(draw, role)

    few = warned(examined(drawn(mixed(0.05), 60), FULL), "negatives-far").found
    assert re.match(r"5[4-9] of 60 negatives", few)
    assert "negatives-far" not in codes(examined(drawn(mixed(0.3), 60), FULL))


def test_few_episodes_and_whole_episodes_have_no_such_warning() -> None:
    assert "negatives-far" not in codes(examined(drawn(pour(), 7), FULL))
    assert "negatives-far" not in codes(examined(drawn(pour()), FULL, "all"))


def test_several_instructions_have_a_rule_of_their_own() -> None:
    """It knows when the states say what is asked. One instruction in several spellings is one."""

    def named(*words: str) -> Episode:
        def one(rng: np.random.Generator, role: Role) -> Trajectory:
            made = pour()(rng, role)
            return replace(made, extra_info=f"fill a {words[int(rng.integers(len(words)))]} cup")

        return one

    assert "negatives-far" in codes(examined(drawn(named("small", "Small")), FULL))
    assert not any("stay far" in each.found for each in examined(drawn(named("small", "large")), FULL).warnings)
