"""The firing of a reading, and its cost, on scenes written down row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from grace_irl.synthesis.grid.evidence import (
    ABSENT,
    MISSED,
    NOT_SEVERAL,
    WRONG_STATE,
    WRONGLY_HIT,
    Columns,
    GridEvidence,
    Stages,
)
from grace_irl.synthesis.grid.meaning import SEVERAL, Filter
from grace_irl.synthesis.grid.scene import EVENTS, SIDES, look
from tests.synthesis.grid.scenes import marks, scene
from tests.synthesis.worlds import CLOSED, DOOR, FLOOR, OPEN, WALL, World, thing

RED_BALL, BLUE_BALL, RED_KEY = (1, 5, 0), (1, 6, 0), (2, 5, 0)
BALL, KEY, RED, BLUE = Filter("channel 0", 1), Filter("channel 0", 2), Filter("channel 1", 5), Filter("channel 1", 6)


def event(name: str) -> Filter:
    return Filter("event", EVENTS.index(name))


def columns(evidence: GridEvidence, *filters: Filter) -> Columns:
    return tuple(sorted(evidence.index[f] for f in filters))


def arranged(arrangement: str, steps: Sequence[Columns]) -> Stages:
    """The stages of these steps, in the order in which they are done."""
    match arrangement:
        case "beside":
            return ((tuple(steps),),)
        case "both":
            return (tuple((step,) for step in steps),)
    return tuple(((step,),) for step in steps)


ROWS = [
    (1, "faced", RED_KEY),
    (2, "faced", RED_BALL),
    (2, "faced", BLUE_BALL),
    (4, "taken", RED_BALL),
    (5, "faced", RED_KEY),
    (6, "faced", RED_BALL),
]


@pytest.mark.parametrize(
    ("arrangement", "steps", "fired"),
    [
        ("whole", [[event("faced")]], {1, 2, 5, 6}),
        ("whole", [[event("faced"), BALL]], {2, 6}),
        ("whole", [[event("faced"), BALL, BLUE]], {2}),
        ("whole", [[event("faced"), KEY, BLUE]], set()),  # no single thing is both
        ("whole", [[event("taken")]], {4}),
        ("whole", [[SEVERAL, event("taken")]], {4}),
        ("then", [[event("faced"), BALL], [event("faced"), KEY]], {5}),
        ("then", [[event("faced"), KEY], [event("faced"), BALL]], {2, 6}),
        ("then", [[event("faced"), RED, BALL], [event("faced"), BLUE]], {2}),  # both in one state
        ("then", [[event("taken")], [event("faced"), BALL, BLUE]], set()),
        ("after", [[event("faced"), BALL], [event("faced"), KEY]], {5}),  # steps come in the order of doing
        ("both", [[event("faced"), BALL], [event("faced"), KEY]], {2, 5, 6}),
        ("both", [[event("taken")], [event("faced"), KEY]], {4, 5}),
        ("then", [[event("taken")]], {4}),
        ("both", [[event("taken")]], {4}),
        ("beside", [[event("taken")]], {4}),  # an instruction without the separator is one step
    ],
)
def test_fired(arrangement: str, steps: list[list[Filter]], fired: set[int]) -> None:
    evidence = GridEvidence([scene(8, ROWS, [RED_BALL, BLUE_BALL, RED_KEY])], [marks(8, 7)])
    chosen = tuple(columns(evidence, *step) for step in steps)
    found = evidence.fired(0, arranged(arrangement, chosen))
    assert found.shape == (8,)
    assert set(np.flatnonzero(found).tolist()) == fired


def test_stages_of_several_steps() -> None:
    """Facing the key and taking something, in any order; only then facing a ball counts."""
    evidence = GridEvidence([scene(8, ROWS, [RED_BALL, BLUE_BALL, RED_KEY])], [marks(8, 7)])
    key, taken, ball = (
        (columns(evidence, *step),) for step in ([event("faced"), KEY], [event("taken")], [event("faced"), BALL])
    )
    assert np.flatnonzero(evidence.fired(0, ((key, taken), (ball,)))).tolist() == [6]
    assert np.flatnonzero(evidence.fired(0, ((key,), (ball,), (taken,)))).tolist() == [4]
    assert np.flatnonzero(evidence.fired(0, ((taken,), (key, ball)))).tolist() == [6]
    assert np.flatnonzero(evidence.fired(0, ((taken,), (taken,), (key,)))).tolist() == [5]


def beside(things: dict[tuple[int, int], tuple[int, int, int]], *acts: str) -> GridEvidence:
    """The agent stands at (2, 2) and looks to (2, 3), where a red ball lies."""
    from tests.synthesis.grid.test_scene import PERCEPTION

    stack = World((6, 7), (2, 2), 40, {(2, 3): thing("red", "ball"), **things}).act(*acts).stack()
    return GridEvidence([look(stack, (), PERCEPTION)], [marks(len(stack), len(stack) - 1)])


FACED, TAKEN, PLACED = [event("faced")], [event("taken")], [event("placed")]
IS_RED, IS_KEY = Filter("channel 1", 11), Filter("channel 0", 30)


@pytest.mark.parametrize(
    ("things", "acts", "thing_filters", "neighbour", "fired"),
    [
        ({(1, 3): thing("blue", "key")}, ["take"], TAKEN, [IS_KEY], {1}),
        ({(2, 4): thing("blue", "key")}, ["take"], TAKEN, [IS_KEY], {1}),
        ({(1, 4): thing("blue", "key")}, ["take"], TAKEN, [IS_KEY], set()),  # across a corner is not beside
        ({(1, 3): thing("blue", "key"), (3, 3): thing("red", "box")}, ["take"], TAKEN, [IS_KEY, IS_RED], set()),
        ({(1, 3): thing("blue", "key")}, ["take", "left", "put"], PLACED, [IS_KEY], {3}),
        ({(1, 3): thing("blue", "key")}, ["take", "right", "put"], PLACED, [IS_KEY], set()),
        ({(1, 3): thing("blue", "key")}, ["take"], TAKEN, [], {1}),
        ({(4, 5): thing("blue", "key")}, ["take"], TAKEN, [], set()),  # something has to be beside it
        ({(1, 2): thing("red", "key")}, ["take", "left"], FACED, [IS_RED], set()),  # the wall is red, and no thing
    ],
)
def test_beside(
    things: dict[tuple[int, int], tuple[int, int, int]],
    acts: list[str],
    thing_filters: list[Filter],
    neighbour: list[Filter],
    fired: set[int],
) -> None:
    evidence = beside({**things, (4, 1): thing("blue", "ball")}, *acts)
    steps = (columns(evidence, *thing_filters), columns(evidence, *neighbour))
    found = evidence.fired(0, arranged("beside", steps))
    assert set(np.flatnonzero(found).tolist()) == fired


def test_what_is_beside_has_no_side_and_no_state() -> None:
    """Of a neighbour, only what it looks like counts."""
    door = {(1, 3): (DOOR, 4, CLOSED), (4, 5): (DOOR, 4, OPEN)}
    evidence = beside(door, "take")
    for f in (Filter("side", SIDES.index("left")), Filter("channel 2", OPEN)):
        steps = (columns(evidence, event("taken")), columns(evidence, f))
        assert evidence.fired(0, arranged("beside", steps)).tolist() == [False, True]


def cost(
    *,
    positive: set[int] = frozenset({3}),  # type: ignore[assignment]
    rows: list[tuple[int, str, tuple[int, int, int]]] | None = None,
    things: int = 1,
    filters: tuple[Filter, ...] = (BALL,),
    length: int = 4,
) -> float:
    """The cost of one scene: the agent faces a red ball in state 3; so many red balls and one blue key are there."""
    rows = [(3, "faced", RED_BALL)] if rows is None else rows
    # A second scene only makes sure that every filter exists.
    other = scene(1, [(0, "faced", RED_KEY), (0, "faced", BLUE_BALL)])
    one = scene(length, rows, [RED_BALL] * things + [(2, 6, 0)])
    evidence = GridEvidence([one, other], [marks(length, *positive), marks(1)])
    return evidence.cost(0, (((columns(evidence, event("faced"), *filters),),),))


FACED_BALL = "faced", RED_BALL


@pytest.mark.parametrize(
    ("expected", "case"),
    [
        (0.0, {}),
        (MISSED, {"rows": []}),
        (MISSED / 2, {"positive": {2, 3}}),
        (MISSED * 2 / 3, {"positive": {1, 2, 3}}),
        (WRONGLY_HIT + WRONG_STATE, {"positive": set()}),
        (WRONGLY_HIT + 2 * WRONG_STATE, {"rows": [(s, *FACED_BALL) for s in (1, 2, 3)]}),
        (WRONGLY_HIT + 2 * WRONG_STATE, {"rows": [(s, *FACED_BALL) for s in (1, 1, 2, 3)]}),  # states count, not rows
        (WRONGLY_HIT + 60 * WRONG_STATE, {"rows": [(s, *FACED_BALL) for s in range(100)], "length": 100}),
        (MISSED + WRONGLY_HIT + WRONG_STATE, {"rows": [(1, *FACED_BALL)]}),
        (ABSENT, {"things": 0}),
        (ABSENT + MISSED, {"filters": (BALL, BLUE)}),
        (math.log(3), {"things": 3}),
        (math.log(4), {"things": 3, "filters": ()}),  # what is not described could be anything
        (NOT_SEVERAL, {"filters": (BALL, SEVERAL)}),
        (math.log(2), {"things": 3, "filters": (BALL, SEVERAL)}),
        (0.0, {"things": 2, "filters": (BALL, SEVERAL)}),
        (ABSENT, {"things": 0, "filters": (BALL, SEVERAL)}),
    ],
)
def test_cost_of_a_scene(expected: float, case: dict[str, object]) -> None:
    assert cost(**case) == pytest.approx(expected)  # type: ignore[arg-type]


def test_every_step_has_to_refer_to_something() -> None:
    one = scene(5, [(2, "faced", RED_BALL), (4, "faced", RED_KEY)], [RED_BALL, RED_BALL, RED_KEY, RED_KEY, RED_KEY])
    evidence = GridEvidence([one], [marks(5, 4)])
    steps = (columns(evidence, event("faced"), BALL), columns(evidence, event("faced"), KEY))
    assert evidence.cost(0, arranged("then", steps)) == pytest.approx(math.log(2) + math.log(3))


def test_what_changes_is_no_reference() -> None:
    """A description may end in another state than it began with: only what lasts is looked up at the start."""
    shut, ajar = (1, 5, 0), (1, 5, 9)
    evidence = GridEvidence([scene(3, [(2, "changed", ajar)], [shut, (2, 6, 0)])], [marks(3, 2)])
    chosen = columns(evidence, event("changed"), Filter("channel 2", 9), BALL)
    assert evidence.cost(0, (((chosen,),),)) == 0.0
    assert evidence.matches(0, chosen) == 1
    assert evidence.matches(0, ()) == 2


def test_only_filters_that_tell_something_exist() -> None:
    evidence = GridEvidence([scene(2, [(1, "faced", RED_BALL)], [RED_BALL, RED_KEY], sides=("ahead",))], [marks(2, 1)])
    like_a_key = Filter("shared 1", KEY.value)  # the ball has the colour of the key
    assert evidence.filters == tuple(sorted({event("faced"), BALL, KEY, like_a_key, SEVERAL}))


def test_rows_at_the_goal_and_rows_elsewhere() -> None:
    evidence = GridEvidence([scene(8, ROWS, [RED_BALL, BLUE_BALL, RED_KEY])], [marks(8, 6)])
    steps = (columns(evidence, event("faced"), BALL),)
    at_goal, elsewhere = evidence.split_rows(0, arranged("then", steps), marks(8, 6))
    codes = [evidence.index[f] for f in (BALL, KEY, RED, BLUE)]
    assert at_goal[:, codes].tolist() == [[True, False, True, False]]
    # Every other thing that was faced, whatever it is; not what was taken.
    assert sorted(elsewhere[:, codes].tolist()) == sorted(
        [[False, True, True, False]] * 2 + [[True, False, True, False], [True, False, False, True]]
    )


def test_background_codes_are_those_of_the_worlds() -> None:
    """The red of the wall is the red of some things, or the test of neighbours above would show nothing."""
    assert WALL[1] == thing("red", "ball")[1] != FLOOR[1]


def stages_of(evidence: GridEvidence, *filters: Filter) -> Stages:
    return (((columns(evidence, *filters),),),)


def test_the_only_thing_of_a_world_is_compared_with_those_of_other_worlds() -> None:
    """Where one thing is, all descriptions single it out. So those that fit few kinds of things explain most."""
    worlds = [scene(3, [(2, "faced", code)], [code]) for code in (RED_BALL, BLUE_BALL, RED_KEY, RED_KEY)]
    crowd = scene(3, [(2, "faced", (3, 7, 0))], [(3, 7, 0), RED_BALL])  # its things are no kinds of their own
    evidence = GridEvidence([*worlds, crowd], [marks(3, 2)] * 5)
    expected = {(): math.log(3), (BALL,): math.log(2), (RED,): math.log(2), (BALL, RED): 0.0}
    for filters, cost in expected.items():
        assert evidence.cost(0, stages_of(evidence, event("faced"), *filters)) == pytest.approx(cost)
    assert evidence.cost(4, stages_of(evidence, event("faced"))) == pytest.approx(math.log(2))


def test_a_negative_that_does_all_it_can_is_about_a_thing_that_is_not_there() -> None:
    """The red ball is faced, and it is no goal: "the key" describes nothing, and this costs nothing."""
    goal, miss = scene(3, [(2, "faced", RED_KEY)], [RED_KEY]), scene(3, [(2, "faced", RED_BALL)], [RED_BALL])
    idle, two = scene(3, [], [RED_BALL]), scene(3, [(2, "faced", RED_BALL)], [RED_BALL, RED_BALL])
    evidence = GridEvidence([goal, miss, idle, two], [marks(3, 2), *[marks(3)] * 3])
    assert evidence.cost(1, stages_of(evidence, event("faced"), KEY)) == 0.0
    assert evidence.cost(1, stages_of(evidence, event("faced"), BALL)) == pytest.approx(WRONGLY_HIT + WRONG_STATE)
    for other in (2, 3):  # nothing happened to the only thing; another thing might have been meant
        assert evidence.cost(other, stages_of(evidence, event("faced"), KEY)) == ABSENT
    assert evidence.cost(0, stages_of(evidence, event("faced"), BALL)) == pytest.approx(MISSED + ABSENT)
