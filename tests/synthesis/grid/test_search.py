"""From labelled trajectories to readings: which plans are tried, which one is found."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.demos.scramble import ScrambleMap
from grace_irl.demos.trajectory import Demonstration, Trajectory
from grace_irl.synthesis.grid.meaning import Arrangement, Filter, Plan
from grace_irl.synthesis.grid.scene import EVENTS
from grace_irl.synthesis.grid.search import PLAN_PRICE, search, separators, view
from grace_irl.synthesis.grid.sketcher import decide
from grace_irl.synthesis.grid.source import write_source
from tests.synthesis.worlds import (
    COLOURS,
    FLOOR,
    KINDS,
    WORDS,
    Cell,
    World,
    faced_states,
    facing,
    go_to_set,
    labelled,
    random_world,
    rewards_of_all,
    thing,
)


@pytest.mark.parametrize(
    ("instructions", "found"),
    [
        ([], []),
        (["go red ball"] * 4, []),  # what stands inside, but not between phrases
        (["go ball"] * 4, []),
        (["go ball x go key", "go key"], []),  # several times
        (["go ball x go key", "go key x go ball"], ["x"]),
        (["put ball x key", "put key x ball"], ["x"]),  # what stands before it ends instructions
        (["ball x key take", "key x ball take"], ["x"]),  # what stands behind it begins them
        (["go ball x go key y go box", "go key y go ball x go key"], ["x", "y"]),
        ([f"go ball {word} go key" for word in ("x", "y", "z", "v")] * 2, []),  # one of many that may stand there
    ],
)
def test_separators_stand_between_phrases(instructions: list[str], found: list[str]) -> None:
    assert separators([tuple(text.split()) for text in instructions]) == found


def test_events_are_those_that_happen() -> None:
    seen = view(labelled(go_to_set(0, 4, 4)))
    assert [seen.evidence.filters[column].value for column in seen.events] == [EVENTS.index("faced")]
    assert set(seen.vocabulary) <= {"zek", *WORDS.values()} | set(seen.phrases)


def test_events_of_goal_states_come_first() -> None:
    """A thing is taken on the way, its place is entered, and at last it is put down."""
    world = World((5, 8), (2, 2), 40, {(2, 3): thing("red", "ball")})
    expert = world.act("left", "right", "take", "forward", "forward", "put").stack()
    other = World((5, 8), (2, 2), 40, {(2, 3): thing("red", "ball")}).act("take", "forward").stack()
    seen = view(labelled([Demonstration(Trajectory(expert), "expert"), Demonstration(Trajectory(other), "negative")]))
    names = [EVENTS[seen.evidence.filters[column].value] for column in seen.events]
    assert names == ["faced", "placed", "taken", "entered"]  # the first two at the goal, then as they come


def test_nothing_is_found_where_nothing_happens_at_the_goals() -> None:
    """Things are faced on the way, but the last state is an empty corner."""
    items = []
    for role in ("expert", "negative"):
        world = World((6, 7), (3, 3), 40, {(3, 5): thing("red", "ball")})
        items.append(Demonstration(Trajectory(world.act("forward", "left", "forward", "forward").stack()), role))
    seen = view(labelled(items))
    assert any(len(scene.happenings) for scene in seen.evidence.scenes)
    assert seen.events == []
    assert search(seen, 0) == []


def test_one_step_is_read_as_one_step() -> None:
    found = search(view(labelled(go_to_set(0, 8, 8))), 0)
    assert [one.lexicon.plan for one in found] == [Plan()]
    assert found[0].cost == found[0].posterior.cost


COLOURS_USED, KINDS_USED = ("red", "green"), ("ball", "key")
NAMES = [(colour, kind) for colour in COLOURS_USED for kind in KINDS_USED]


def two_steps(seed: int, count: int, arrangement: Arrangement) -> list[Demonstration]:
    """ "go to A dol B": experts face A and B, in the order that the arrangement says; negatives face all but one of
    the four things, and for orders also both of them the wrong way round."""
    rng = np.random.default_rng(seed)
    items: list[Demonstration] = []
    while len(items) < 2 * count:
        expert = len(items) < count
        names = [NAMES[i] for i in rng.permutation(len(NAMES))[:4].tolist()]
        world = random_world(rng, [thing(*name) for name in names])
        first, second, *others = list(world.things)
        if arrangement == "after" or (arrangement == "both" and rng.random() < 0.5):
            first, second = second, first
        if expert:
            tour = [others[0], first, others[1], second]
        elif arrangement != "both" and rng.random() < 0.5:
            tour = [second, others[0], first]
        else:
            tour = [second, others[1], others[0]] if rng.random() < 0.5 else [others[0], first, others[1]]
        ends = []
        for cell in tour:
            world.act(*world.route(facing(cell)))
            ends.append(len(world.states) - 1)
        if not _as_meant(world, tour, ends, first, second, expert):
            continue
        said = " dol ".join(f"zek {WORDS[colour]} {WORDS[kind]}" for colour, kind in names[:2])
        items.append(Demonstration(Trajectory(world.stack(), extra_info=said), "expert" if expert else "negative"))
    return items


def _as_meant(world: World, tour: list[Cell], ends: list[int], first: Cell, second: Cell, expert: bool) -> bool:
    """Whether the two things are faced where the tour says so, and nowhere on the way."""
    stack = world.stack()
    for cell in (first, second):
        wanted = [ends[tour.index(cell)]] if cell in tour else []
        seen = np.flatnonzero(faced_states(stack, cell)).tolist()
        if not set(seen) <= set(range(wanted[0], ends[tour.index(cell)] + 3)) if wanted else seen:
            return False
    return not expert or not faced_states(stack, second)[:-1].any()


@pytest.mark.slow
@pytest.mark.parametrize("arrangement", ["after"])
def test_two_steps_are_found(arrangement: Arrangement) -> None:
    items = two_steps(1, 6, arrangement)
    seen = view(labelled(items))
    best = search(seen, 0)[0]
    assert best.lexicon.plan == Plan((("dol", arrangement),))
    assert best.cost == pytest.approx(best.posterior.cost + PLAN_PRICE)
    filters = seen.evidence.filters
    meanings = {word: filters[column] for word, column in best.posterior.best.meanings.items()}
    assert meanings == {
        **{WORDS[name]: Filter("channel 0", KINDS[name]) for name in KINDS_USED},
        **{WORDS[name]: Filter("channel 1", COLOURS[name]) for name in COLOURS_USED},
    }
    held_out = two_steps(2, 20, arrangement)
    source = write_source(decide(best.lexicon, best.posterior), seen.perception, seen.vocabulary, seen.phrases)
    given = rewards_of_all(source, [d.trajectory.states for d in held_out], [d.trajectory.extra_info for d in held_out])
    assert [float(one[-1]) for one, d in zip(given, held_out, strict=True) if d.role == "expert"] == [1.0] * 20
    assert sum(float(one[:-1].sum()) for one, d in zip(given, held_out, strict=True) if d.role == "expert") == 0.0
    assert sum(float(one.sum()) for one, d in zip(given, held_out, strict=True) if d.role == "negative") == 0.0


def put_beside(seed: int, count: int) -> list[Demonstration]:
    """ "put A ved B": experts take A and put it beside B; negatives look at things and put nothing down."""
    rng = np.random.default_rng(seed)
    items: list[Demonstration] = []
    while len(items) < 2 * count:
        expert = len(items) < count
        names = [NAMES[i] for i in rng.permutation(len(NAMES))[:4].tolist()]
        world = random_world(rng, [thing(*name) for name in names])
        one, other, third, _ = list(world.things)
        world.act(*world.route(facing(one if expert else third)))
        if expert:
            world.act("take")
            row, column = other
            around = {(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)}
            free = next(cell for cell in sorted(around) if world.free(cell) and cell != world.here)
            world.act(*world.route(facing(free)), "put")
        said = " ved ".join(f"{WORDS[colour]} {WORDS[kind]}" for colour, kind in names[:2])
        items.append(Demonstration(Trajectory(world.stack(), extra_info=said), "expert" if expert else "negative"))
    return items


def test_a_plan_is_tried_though_one_step_would_do() -> None:
    """That something is put down explains every goal, but not why these two things were named."""
    seen = view(labelled(put_beside(0, 14)))
    best, *others = search(seen, 0)
    assert best.lexicon.plan == Plan((("ved", "beside"),))
    whole = next(one for one in others if one.lexicon.plan == Plan())
    for i, positive in enumerate(seen.evidence.positives):
        assert (seen.evidence.fired(i, whole.lexicon.stages(whole.posterior.best, i)) == positive).all()
    assert whole.unexplained > PLAN_PRICE
    assert best.unexplained < PLAN_PRICE


@pytest.mark.slow
def test_no_seed_and_no_name_changes_the_cost_of_the_answer() -> None:
    """Copies have other codes, axes and words."""
    items = put_beside(0, 8)
    tables = [ScrambleMap.draw(seed, items[0].trajectory) for seed in range(3)]
    copies = [[table.apply(item) for item in items] for table in tables]
    seen = view(labelled(items))
    costs = [search(seen, seed)[0].cost for seed in range(3)]
    costs += [search(view(labelled(copy)), 0)[0].cost for copy in copies]
    assert costs == pytest.approx([min(costs)] * len(costs))
    assert search(seen, 0, effort=4.0)[0].cost == pytest.approx(min(costs))


def test_perception_is_shared_by_all_trajectories() -> None:
    seen = view(labelled(go_to_set(3, 3, 3)))
    assert FLOOR in seen.perception.background
    assert len(seen.evidence.scenes) == 6
    assert [bool(positive.any()) for positive in seen.evidence.positives] == [True] * 3 + [False] * 3
