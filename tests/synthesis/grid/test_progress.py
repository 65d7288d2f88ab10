"""The pay of reshaped programs on the way to a goal: worked out by hand, and never as much as a goal, on any grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.synthesis.grid.meaning import Filter, Hypothesis, Outline, Plan, summary
from grace_irl.synthesis.grid.scene import EVENTS, SIDES, Perception
from grace_irl.synthesis.grid.source import FORMS, WEIGHTS, Shaping, shapings, write_program
from grace_irl.synthesis.reshaper import recover
from tests.synthesis.grid.programs import (
    BALL,
    CHANGED,
    FACED,
    GUESS,
    KEY,
    MAYBE_RED,
    PERCEPTION,
    RED,
    STEPS,
    SURE_BALL,
    SURE_KEY,
    TAKEN,
    VOCABULARY,
    checked,
)
from tests.synthesis.grid.test_source import plans, played, program, readings
from tests.synthesis.worlds import CLOSED, DOOR, World, rewards, rewards_of_all, thing

PLACED, ENTERED = Filter("event", EVENTS.index("placed")), Filter("event", EVENTS.index("entered"))
NEAR = 0.4
STEPWISE = Shaping(NEAR, "steps")


def shaped(hypothesis: Hypothesis, shaping: Shaping = STEPWISE, perception: Perception = PERCEPTION) -> str:
    outline = Outline.of(hypothesis, perception, VOCABULARY, ())
    return checked(write_program(outline, summary(hypothesis), shaping))


def nearness(world: World, hypothesis: Hypothesis, instruction: str = "", shaping: Shaping = STEPWISE) -> list[float]:
    """What is paid in each state of a world; on the way, as a share of what progress is worth at most."""
    paid = rewards(shaped(hypothesis, shaping), world.stack(), instruction)
    return [value if value >= 0.5 else round(value / shaping.near, 9) for value in paid.tolist()]


def room(**things: tuple[int, int]) -> World:
    """A room of 5 + 5 cells inside 10 rows and columns in all (so a step is 0.1), the agent at (1, 1) heading right."""
    return World((5, 5), (1, 1), 40, {cell: thing(*name.split("_")) for name, cell in things.items()})


def test_the_nearer_the_more() -> None:
    world = room(red_ball=(3, 3)).act("forward", "right", "forward", "left")
    # 4, 3 and 2 steps away; the last turn is away from it.
    assert nearness(world, Hypothesis(Plan(), (FACED, BALL))) == [0.6, 0.7, 0.7, 0.8, 0.8]
    world.act("forward", "right")
    assert nearness(world, Hypothesis(Plan(), (FACED, BALL)))[-2:] == [0.9, 1.0]


def test_a_turn_towards_it_counts_half_a_step() -> None:
    world = room(red_ball=(3, 3)).act("left", "left", "right", "right", "forward", "forward", "right")
    found = nearness(world, Hypothesis(Plan(), (FACED, BALL)), shaping=Shaping(NEAR, "half steps"))
    assert found == [0.65, 0.55, 0.55, 0.55, 0.65, 0.75, 0.75, 0.85]


def test_it_may_fall_off_fast() -> None:
    world = room(red_ball=(3, 3)).act("forward", "forward")
    found = nearness(world, Hypothesis(Plan(), (FACED, BALL)), shaping=Shaping(0.2, "inverse"))
    assert found == pytest.approx([1 / 5, 1 / 4, 1 / 3])


@pytest.mark.parametrize("weight", WEIGHTS)
def test_progress_is_worth_less_than_any_goal(weight: float) -> None:
    paid = rewards(shaped(Hypothesis(Plan(), (FACED, BALL)), Shaping(weight, "steps")), room(red_ball=(1, 3)).stack())
    assert paid.tolist() == [pytest.approx(weight * 0.8)]
    assert weight < 0.5


def test_only_what_fits_is_near() -> None:
    world = room(red_ball=(3, 3), blue_key=(1, 3)).act("right")
    assert nearness(world, Hypothesis(Plan(), (FACED,), STEPS), "mip") == [0.6, 0.6]
    assert nearness(world, Hypothesis(Plan(), (FACED,), STEPS), "tro") == [0.8, 0.8]
    assert nearness(world, Hypothesis(Plan(), (FACED,)), "") == [0.8, 0.8]  # a thing, whatever it is
    assert nearness(world, Hypothesis(Plan(), (FACED, Filter("channel 0", 77))), "") == [0.0, 0.0]
    assert nearness(world, Hypothesis(Plan(), (FACED, RED), STEPS), "tro") == [0.0, 0.0]
    # What is guessed leads the way where something fits it, and nowhere else.
    assert nearness(world, Hypothesis(Plan(), (FACED,), (), (MAYBE_RED,)), "gax") == [0.6, 0.6]
    assert nearness(world, Hypothesis(Plan(), (FACED,), (SURE_KEY,), (MAYBE_RED,)), "gax tro") == [0.8, 0.8]


def test_sides_are_those_of_the_first_state() -> None:
    left = Filter("side", SIDES.index("left"))  # the map is mirrored: where the agent turns right
    world = room(red_ball=(1, 3), blue_ball=(3, 1)).act("right", "left")
    assert nearness(world, Hypothesis(Plan(), (FACED, left))) == [0.8, 0.8, 0.8]
    world = room(red_ball=(1, 3), blue_ball=(3, 2)).act("forward")
    assert nearness(world, Hypothesis(Plan(), (TAKEN, left))) == [0.7, 0.8]
    assert nearness(world, Hypothesis(Plan(), (TAKEN,), (("zek", (left,)),)), "zek") == [0.7, 0.8]


def test_what_is_taken_is_near_until_it_is_gone() -> None:
    world = room(red_ball=(1, 3)).act("forward", "take", "left", "left")
    assert nearness(world, Hypothesis(Plan(), (TAKEN,), (SURE_BALL,)), "mip") == [0.8, 0.9, 1.0, 0.0, 0.0]
    world.act("put")
    assert nearness(world, Hypothesis(Plan(), (TAKEN,), (SURE_BALL,)), "mip")[-1] == 0.9


def test_what_changes_need_not_look_as_it_will() -> None:
    """An open door is looked for among doors that are shut."""
    world = World((5, 5), (1, 1), 40, {(1, 3): (DOOR, 11, CLOSED)}).act("forward", "toggle")
    open_red = Hypothesis(Plan(), (Filter("channel 0", DOOR), Filter("channel 2", 61), CHANGED), (("gax", (RED,)),))
    assert nearness(world, open_red, "gax") == [0.8, 0.9, 1.0]


def test_a_door_under_the_agent_is_still_there() -> None:
    world = World((5, 7), (1, 1), 40, {(1, 2): (DOOR, 11, CLOSED)}).act("toggle", "forward", "forward")
    shut = Hypothesis(Plan(), (CHANGED, Filter("channel 2", CLOSED)))
    assert nearness(world, shut) == pytest.approx([11 / 12, 11 / 12, 1.0, 11 / 12])


def test_what_is_entered_is_where_it_was_at_the_start() -> None:
    world = room(red_ball=(1, 3)).act("forward", "take", "forward", "forward")
    assert nearness(world, Hypothesis(Plan(), (ENTERED,), (SURE_BALL,)), "mip") == [0.8, 0.9, 0.9, 1.0, 1.0]
    source = shaped(Hypothesis(Plan(), (ENTERED,)))
    assert "self.map" not in source  # nothing that happens later matters


def test_what_is_put_down_is_fetched_first() -> None:
    world = room(red_ball=(1, 3)).act("forward", "take", "right", "put")
    assert nearness(world, Hypothesis(Plan(), (PLACED,), (SURE_BALL,)), "mip") == [0.4, 0.45, 0.5, 0.5, 1.0]


def test_what_is_put_beside_another_is_carried_there() -> None:
    plan = Plan((("by", "beside"),))
    world = room(red_ball=(1, 3), blue_key=(3, 1)).act("forward", "take", "right", "forward", "right")
    expected = [0.4, 0.45, 0.85, 0.85, 0.9, 0.9]
    assert nearness(world, Hypothesis(plan, (PLACED,), STEPS), "mip by tro") == expected
    world.act("left", "left", "put", "take", "right", "right", "put")  # somewhere else first
    assert nearness(world, Hypothesis(plan, (PLACED,), STEPS), "mip by tro")[6:] == [0.9, 0.9, 0.45, 0.9, 0.9, 0.9, 1.0]


def test_one_of_several_is_carried() -> None:
    """The others are no longer looked for; with guesses neither, whichever of them was taken."""
    plan = Plan((("by", "beside"),))
    world = room(red_ball=(1, 2), blue_ball=(3, 3), green_key=(3, 1)).act("take")
    assert nearness(world, Hypothesis(plan, (PLACED,), STEPS), "mip by tro") == [0.45, 0.9]
    assert nearness(world, Hypothesis(plan, (PLACED,), STEPS, (MAYBE_RED,)), "gax mip by tro") == [0.45, 0.9]
    assert nearness(
        world, Hypothesis(plan, (PLACED,), STEPS, (("gax", (Filter("channel 1", 17),)),)), "gax mip by tro"
    ) == [
        0.3,
        0.9,
    ]


def test_steps_that_are_done_count_for_more() -> None:
    plan = Plan((("dol", "then"), ("fen", "both")))
    world = room(red_ball=(1, 3), blue_key=(3, 2)).act("forward", "right", "forward")
    then = Hypothesis(plan, (FACED,), STEPS)
    # One step of two is done in the second state. To turn to the key is no nearer, to step towards it is.
    assert nearness(world, then, "mip dol tro") == [0.4, 0.9, 0.9, 1.0]
    assert nearness(world, then, "tro dol mip") == [0.35, 0.4, 0.4, 0.5 + 0.8 / 2]
    # In any order: the nearest of those that are left.
    assert nearness(world, then, "tro fen mip") == [0.4, 0.9, 0.9, 1.0]
    assert nearness(world, then, "mip dol mip dol tro") == pytest.approx([0.8 / 3, 2.8 / 3, 2.8 / 3, 1.0])


def test_words_say_what_has_to_be_done() -> None:
    verbs = (*STEPS, ("get", (TAKEN,)), ("put", (PLACED,)), ("walk", (ENTERED,)))
    world = room(red_ball=(1, 3)).act("forward", "take")
    several = Hypothesis(Plan(), (FACED,), verbs)
    assert nearness(world, several, "mip") == [0.8, 1.0, 0.0]
    assert nearness(world, several, "get mip") == [0.8, 0.9, 1.0]
    assert nearness(world, several, "put mip") == [0.4, 0.45, 0.5]
    assert nearness(world, several, "walk mip") == [0.8, 0.9, 0.9]


def test_new_words_name_what_no_word_names() -> None:
    hypothesis = Hypothesis(Plan(), (FACED,), (SURE_BALL,), novel="guess")
    world = room(red_ball=(1, 3), blue_key=(3, 3)).act("right")
    assert nearness(world, hypothesis, "mip") == [0.8, 0.8]
    assert nearness(world, hypothesis, "qux") == [0.6, 0.6]


def test_an_agent_that_goes_out_of_sight_is_nowhere_near() -> None:
    states = room(red_ball=(3, 3)).act("forward", "forward").stack()
    for hidden in range(3):
        unseen = states.copy()
        unseen[hidden][unseen[hidden, :, :, 0] == 21] = (3, 7, 50)
        for event in range(len(EVENTS)):
            paid = rewards(shaped(Hypothesis(Plan(), (Filter("event", event), BALL))), unseen)
            assert paid[hidden] == 0.0


@pytest.mark.slow
@settings(max_examples=150, derandomize=True)
@given(st.data())
def test_goals_stay_and_all_else_is_worth_less(data: st.DataObject) -> None:
    """Any hypothesis on worlds played at random, in every form; and the text gives back what it was written from."""
    seen = played(data.draw(st.integers(0, 5), label="world"))
    plan = data.draw(plans, label="plan")
    reading = data.draw(readings(seen, plan), label="reading")
    guessed = data.draw(readings(seen, plan), label="guesses")
    filters = seen.evidence.filters
    hypothesis = Hypothesis(
        plan,
        tuple(sorted(filters[column] for column in reading.constants.values())),
        tuple(sorted((word, (filters[column],)) for word, column in reading.meanings.items())),
        tuple(sorted((word, (filters[column],)) for word, column in guessed.meanings.items())),
        data.draw(st.sampled_from(["ignore", "guess", "require"]), label="novel"),
    )
    shaping = data.draw(st.sampled_from(shapings(headed=True)), label="shaping")
    outline = Outline.of(hypothesis, seen.perception, seen.vocabulary, seen.phrases)
    plain = program(seen, hypothesis)
    better = checked(write_program(outline, summary(hypothesis), shaping))
    for source, how in ((plain, None), (better, shaping)):
        found = recover(source)
        assert found is not None
        assert found.shaping == how
        if "AHEAD" in source or not shaping.ahead:
            assert write_program(found.outline, found.happens, shaping) == better
    stacks = [scene.states for scene in seen.evidence.scenes]
    instructions = [" ".join(scene.words) for scene in seen.evidence.scenes]
    for before, after in zip(
        rewards_of_all(plain, stacks, instructions), rewards_of_all(better, stacks, instructions), strict=True
    ):
        goals = before > 0
        assert (after[goals] == before[goals]).all()
        assert ((after[~goals] >= 0) & (after[~goals] <= shaping.near)).all()


@settings(max_examples=100, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(0, len(EVENTS) - 1), st.sampled_from(FORMS))
def test_no_grid_is_too_strange(seed: int, event: int, form: str) -> None:
    """Codes at random: agents that jump, multiply and vanish, things everywhere."""
    rng = np.random.default_rng(seed)
    codes = np.array([(21, 1, 40), (21, 1, 77), (3, 7, 50), (9, 11, 50), (14, 11, 50), (30, 17, 50), (14, -1, 999)])
    shape = (int(rng.integers(1, 7)), int(rng.integers(1, 7)))
    states = codes[rng.integers(0, len(codes), size=(8, *shape))]
    plan = Plan((("dol", "then"), ("by", "beside"))) if seed % 2 else Plan()
    hypothesis = Hypothesis(plan, (Filter("event", event), KEY), STEPS, GUESS, "guess")
    shaping = Shaping(NEAR, form)  # type: ignore[arg-type]
    paid = rewards(shaped(hypothesis, shaping), states, "mip by tro dol gax qux" if seed % 3 else "gax mip")
    assert all(value in (0.5, 1.0) or 0.0 <= value <= NEAR for value in paid.tolist())


SNAPSHOT = '''
    def reward_fn(self, state) -> float:
        state = np.asarray(state).astype(int)
        before, self.before = self.before, state
        if before is None:  # nothing has happened yet
            self.map, self.things = state, things(state)
            return self.progress(state)
        happenings = list(faced(state))
        goal = max((self.fits(self.words, *happening) for happening in happenings), default=0.0)
        return max(goal, self.progress(state))

    def fits(self, words, event, cell, code):
        """How well what has happened fits what had to happen, 0.0 to 1.0."""
        thing = {0: {code[0]}, 1: {code[1]}, 2: {code[2]}}
        return self.described(words, thing)

    def described(self, words, thing):
        """How well the words describe the thing, 0.0 to 1.0."""
        if not agrees(WORDS, words, thing):
            return 0.0
        return 1.0

    def progress(self, state):
        """How near the agent is to what it has to face: 0.0 to NEAR."""
        here = agent_cell(state)
        if here is None:
            return 0.0
        seen = state.copy()
        seen[here] = self.map[here]  # what is under the agent cannot be seen
        if seen.tobytes() != self.map.tobytes():
            self.map, before = seen, self.things
            self.things = things(seen)
            if self.things != before:
                self.now = {}
        return NEAR * self.nearness(self.words, here)

    def nearness(self, words, here):
        """How near a place is to what has to be done, 0.0 to 1.0."""
        return self.near(here, self.found(words, self.things, self.now))

    def near(self, here, found):
        """How near a place is to the nearest of the things found, 0.0 to 1.0; 0.0 without any."""
        steps = [abs(here[0] - row) + abs(here[1] - column) for row, column in found]
        return 1 - min(steps) / sum(self.map.shape[:2]) if steps else 0.0

    def found(self, words, seen, known):
        """Those of the things seen that fit, as far as can be seen before anything happens."""
        key = tuple(words)
        if key not in known:
            known[key] = [cell for cell, code in seen if self.described(words, {0: {code[0]}, 1: {code[1]}})]
        return known[key]

    def debug_fn(self, state) -> str:
        state = np.asarray(state).astype(int)
        happenings = [*faced(state)]
        return f"{self.words}: {happenings}, progress {self.progress(state):.3f}"
'''


def test_what_a_program_looks_like() -> None:
    source = shaped(Hypothesis(Plan(), (FACED,), STEPS))
    assert source.endswith(SNAPSHOT)
    assert source.startswith('"""Reward 1.0 where the agent faces the thing that the instruction describes; elsewhere')
    assert "NEAR = 0.4" in source
