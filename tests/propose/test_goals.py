"""Goal states as models answer them: counted from 1, checked against the trajectories, none allowed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.propose.answer import MAX_CHARS
from grace_irl.propose.goals import parse_goals
from grace_irl.propose.protocol import Finish

LENGTHS = (7, 3, 6)
EXPECTED = ((6,), (), (1, 2, 3, 5))

ANSWERS = {
    "lines": "It is about doors.\n\ntrajectory 1: 7\ntrajectory 2: none\ntrajectory 3: 2, 3, 4, 6",
    "marked up": "**Trajectory 1:** 7\n- Trajectory 2: None.\n* trajectory 3 = [2, 3, 4, 6]",
    "ranges": "Trajectory #1: state 7\nTrajectory #2: no goal state\nTrajectory #3: states 2-4 and 6",
    "prose before": "Trajectory 1: the door opens in state 7.\ntrajectory 1: 7\ntrajectory 2: -1\ntrajectory 3: 2..4 6",
    "thoughts": "<think>trajectory 1: 3</think>trajectory 1: 7\ntrajectory 2: []\ntrajectory 3: 6,4,3,2",
    "json": json.dumps(
        {
            "reasoning": "doors",
            "trajectories": [
                {"trajectory": 1, "goal_states": [7]},
                {"trajectory": 2, "goal_states": []},
                {"trajectory": 3, "goal_states": [2, 3, 4, 6]},
            ],
        }
    ),
    "json, after a nested object": json.dumps({"states": [{"n": n} for n in range(20)]})
    + '{"trajectories": [{"goal_states": [7]}, {"goal_states": []}, {"goal_states": [2, 3, 4, 6]}]}',
    "json, paper's words": '```json\n{"trajectories": [{"goal_state_indexes": [7]}, {"goal_state_indexes": -1}, '
    '{"goal_state_indexes": [2, 3, 4, 6, 6]}]}\n```',
}


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_answers_are_read(name: str) -> None:
    goals = parse_goals(ANSWERS[name], LENGTHS)
    assert goals.indices == EXPECTED
    assert goals.failure == ""


@pytest.mark.parametrize("text", ["4", "The goal:\nstates 4.", '{"goal_states": [4]}', "trajectory 1: 4"])
def test_a_single_trajectory_needs_no_number(text: str) -> None:
    assert parse_goals(text, [5]).indices == ((3,),)


FAILED: dict[str, tuple[str, Finish, str, tuple[tuple[int, ...] | None, ...]]] = {
    "beyond the end": ("trajectory 1: 8\ntrajectory 2: 3\ntrajectory 3: none", "stop", "range", (None, (2,), ())),
    "before the beginning": ("trajectory 1: 0\ntrajectory 2: 3\ntrajectory 3: 1", "stop", "range", (None, (2,), (0,))),
    "a huge range": ("trajectory 1: 1-99999999\ntrajectory 2: 1\ntrajectory 3: 1", "stop", "range", (None, (0,), (0,))),
    "one left out": ("trajectory 1: 1\ntrajectory 3: none", "stop", "missing", ((0,), None, ())),
    "words": ("trajectory 1: the last\ntrajectory 2: 1\ntrajectory 3: 1", "stop", "missing", (None, (0,), (0,))),
    "fractions": (
        '{"trajectories": [{"goal_states": [1.5]}, {"goal_states": [true]}]}',
        "stop",
        "missing",
        (None,) * 3,
    ),
    "cut": ("trajectory 1: 1\ntraj", "length", "length", ((0,), None, None)),
    "cut in a number": ("trajectory 1: 1\ntrajectory 2: 1", "length", "length", ((0,), None, None)),
    "cut in the first line": ("trajectory 1: 1", "length", "length", (None,) * 3),
    "nothing": (" ", "stop", "empty", (None,) * 3),
    "filtered": (ANSWERS["lines"], "refusal", "refusal", (None,) * 3),
}


@pytest.mark.parametrize("name", sorted(FAILED))
def test_failures_are_named_and_the_rest_is_kept(name: str) -> None:
    text, finish, kind, indices = FAILED[name]
    goals = parse_goals(text, LENGTHS, finish)
    assert goals.indices == indices
    assert goals.failure.startswith(f"{kind}: ")


def test_long_answers_are_read_in_one_go() -> None:
    """A search that began again at every line break would not come to an end."""
    assert parse_goals("trajectory 1: 4" + "\n" * (MAX_CHARS - 20) + "x", [7]).indices == ((3,),)


def test_a_state_that_is_not_there_is_told_with_what_was_expected() -> None:
    goals = parse_goals("trajectory 1: 9", [7])
    assert goals.failure == "range: trajectory 1: state 9 of 7 states; expected 1 to 7"


@given(st.text() | st.lists(st.sampled_from(["trajectory 1:", " 7", "\n", "{", '"goals": [', "]}", "-"])).map("".join))
def test_every_text_gives_goals(text: str) -> None:
    goals = parse_goals(text, LENGTHS)
    assert len(goals.indices) == len(LENGTHS)
    for states, length in zip(goals.indices, LENGTHS, strict=True):
        assert states is None or all(0 <= state < length for state in states)
    assert (None not in goals.indices) == (goals.failure == "")
