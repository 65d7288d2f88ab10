"""From chances to what is required, guessed and left out: expected losses in closed form."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.synthesis.grid.evidence import GridEvidence
from grace_irl.synthesis.grid.lexicon import Lexicon, Posterior
from grace_irl.synthesis.grid.meaning import SEVERAL, Filter, Plan
from grace_irl.synthesis.grid.reading import GridReading
from grace_irl.synthesis.grid.scene import EVENTS, Perception, Scene
from grace_irl.synthesis.grid.search import PerceivedStates, PlanSearch
from grace_irl.synthesis.grid.sketcher import (
    COINCIDENCE,
    MISS,
    NOVEL_TRUST,
    GridSketcher,
    best_condition,
    decide,
    likelihood,
    negative_pressure,
    safest,
    shared_constants,
)
from tests.synthesis.grid.scenes import Row, marks, scene


def event(name: str) -> Filter:
    return Filter("event", EVENTS.index(name))


FACED, TAKEN, CHANGED = event("faced"), event("taken"), event("changed")
KINDS = tuple(Filter("channel 0", value) for value in (1, 2, 3, 4))
RED, BLUE = Filter("channel 1", 5), Filter("channel 1", 6)
EVERYTHING = [(1, 5, 0), (2, 6, 0), (3, 5, 0), (4, 6, 0)]
BALL, KEY = EVERYTHING[0], EVERYTHING[1]


def evidence(*scenes: tuple[Scene, set[int]]) -> GridEvidence:
    return GridEvidence([one for one, _ in scenes], [marks(one.length, *states) for one, states in scenes])


FOUR = evidence((scene(2, [(1, "faced", BALL)], EVERYTHING), {1}))
"""Four kinds and two colours."""


@pytest.mark.parametrize(
    ("chances", "pressure", "kept"),
    [
        ({KINDS[0]: 1.0}, 0.5, {KINDS[0]}),  # 0 + 0.5/4 < 0.5
        ({KINDS[0]: 1.0}, 0.0, set()),  # no negative comes near: nothing has to be required
        ({None: 1.0}, 1.0, set()),
        ({KINDS[0]: 0.9, None: 0.1}, 0.1, set()),  # 0.1 * MISS + 0.025 > 0.1
        ({KINDS[0]: 0.9, None: 0.1}, 0.2, {KINDS[0]}),  # 0.1 * MISS + 0.05 < 0.2
        ({KINDS[0]: 0.5, KINDS[1]: 0.5}, 0.2, {KINDS[0], KINDS[1]}),  # 0.1, one alone 0.45
        ({KINDS[0]: 0.9, KINDS[1]: 0.1}, 0.2, {KINDS[0], KINDS[1]}),  # 0.1 against 0.13
        ({KINDS[0]: 0.9, KINDS[1]: 0.1}, 0.4, {KINDS[0]}),  # 0.18 against 0.2
        ({KINDS[0]: 0.5, RED: 0.5}, 0.2, set()),  # of two features nothing is put together
        ({KINDS[0]: 0.2, RED: 0.8}, 0.4, {RED}),  # 0.2 * MISS + 0.4/2 = 0.36
        ({KINDS[0]: 0.2, RED: 0.8}, 0.3, set()),  # 0.31 against 0.3
    ],
)
def test_safest(chances: dict[Filter | None, float], pressure: float, kept: set[Filter]) -> None:
    everything = {-1: 0.0, **dict.fromkeys(range(len(FOUR.filters)), 0.0)}
    everything |= {-1 if f is None else FOUR.index[f]: chance for f, chance in chances.items()}
    assert {FOUR.filters[column] for column in safest(everything, pressure, FOUR)} == kept


@settings(max_examples=60, derandomize=True)
@given(st.lists(st.floats(0.0, 1.0), min_size=7, max_size=7).filter(lambda x: sum(x) > 0), st.floats(0.0, 1.0))
def test_safest_is_never_worse_than_saying_nothing_or_one_thing(weights: list[float], pressure: float) -> None:
    columns = [-1, *(FOUR.index[f] for f in (*KINDS, RED, BLUE))]
    chances = {column: weight / sum(weights) for column, weight in zip(columns, weights, strict=True)}

    def loss(kept: tuple[int, ...]) -> float:
        if not kept:
            return pressure
        size = 2 if FOUR.filters[kept[0]].feature == "channel 1" else 4
        return (1 - sum(chances[column] for column in kept)) * MISS + pressure * len(kept) / size

    chosen = safest(chances, pressure, FOUR)
    assert len({FOUR.filters[column].feature for column in chosen}) <= 1
    assert loss(chosen) <= min(pressure, *(loss((column,)) for column in columns[1:])) + 1e-9


def lexicon(of: GridEvidence, plan: Plan = Plan()) -> Lexicon:
    return Lexicon(of, plan)


def reading(of: GridEvidence, constants: dict[str, Filter], **meanings: Filter) -> GridReading:
    return GridReading(
        {feature: of.index[f] for feature, f in constants.items()},  # type: ignore[misc]
        {word: of.index[f] for word, f in meanings.items()},
    )


SHUT, AJAR = (7, 5, 0), (7, 5, 1)
IS_SHUT, IS_AJAR = Filter("channel 2", 0), Filter("channel 2", 1)


def doors(opened: int, closed: int) -> GridEvidence:
    """Experts that open a door at last, and negatives that close one."""
    experts = [(scene(3, [(2, "changed", AJAR)], [SHUT, BALL]), {2})] * opened
    return evidence(*experts, *[(scene(3, [(2, "changed", SHUT)], [AJAR, BALL]), set())] * closed)


@pytest.mark.parametrize(
    ("opened", "closed", "found"),
    [
        (1, 0, False),  # (0 + 1) / (0 + 2) = 1/2: no coincidence that could not be one
        (4, 0, False),  # 1/16
        (5, 0, True),  # 1/32
        (2, 1, False),  # 1/9
        (3, 1, True),  # 1/27
        (2, 3, True),  # 1/25
        (1, 17, False),  # 1/19
        (1, 19, True),  # 1/21
    ],
)
def test_what_all_goals_share_beyond_chance(opened: int, closed: int, found: bool) -> None:
    of = doors(opened, closed)
    assert (((0 + 1) / (closed + 2)) ** opened < COINCIDENCE) == found
    columns = shared_constants(lexicon(of), reading(of, {"event": CHANGED}))
    assert (of.index.get(IS_AJAR) in columns) == found


def test_what_words_or_constants_speak_of_is_not_shared_too() -> None:
    of = doors(6, 3)
    is_door = of.index[Filter("channel 0", 7)]
    assert is_door not in shared_constants(lexicon(of), reading(of, {"event": CHANGED}))  # all that changes is a door
    told = reading(of, {"event": CHANGED, "channel 2": IS_AJAR})
    assert of.index[IS_AJAR] not in shared_constants(lexicon(of), told)
    assert shared_constants(lexicon(of, Plan((("by", "beside"),))), reading(of, {"event": CHANGED})) == []
    assert shared_constants(lexicon(of), reading(of, {"event": FACED if FACED in of.index else CHANGED})) != []


def test_nothing_is_shared_without_goals() -> None:
    of = evidence((scene(3, [(2, "changed", AJAR)], [SHUT, BALL]), set()))
    assert shared_constants(lexicon(of), reading(of, {"event": CHANGED})) == []


def two_steps(first: Row) -> GridEvidence:
    """Something first, then a door is opened; negatives close it or face things."""
    rows = [first, (3, "changed", AJAR)]
    experts = [(scene(4, rows, [SHUT, BALL], "go mip dol ba"), {3})] * 6
    negative = scene(4, [(1, "faced", BALL), (2, "faced", KEY), (3, "changed", SHUT)], [AJAR, BALL], "go mip dol ba")
    return evidence(*experts, *[(negative, set())] * 4)


def test_a_constant_does_not_undo_an_earlier_step() -> None:
    """That the last thing stands open is no reason to ask it of the ball that comes first."""
    plan, said = Plan((("dol", "then"),)), {"go": FACED}
    of = two_steps((1, "faced", BALL))
    assert of.index[IS_AJAR] not in shared_constants(lexicon(of, plan), reading(of, {"event": CHANGED}, **said))
    of = two_steps((1, "changed", AJAR))
    assert of.index[IS_AJAR] in shared_constants(lexicon(of, plan), reading(of, {"event": CHANGED}))


def faced_balls(wrongly: int, states: int) -> GridEvidence:
    """Experts face the ball in their last state; a negative of so many states faces a key of its colour in some."""
    key = (KEY[0], *BALL[1:])
    experts = [(scene(2, [(1, "faced", BALL)], [BALL, key], "go mip"), {1})] * 4
    negative = scene(states, [(t, "faced", key) for t in range(wrongly)], [BALL, key], "go mip")
    return evidence(*experts, (negative, set()))


@pytest.mark.parametrize(("wrongly", "states"), [(0, 6), (3, 6), (6, 6)])
def test_pressure_is_the_share_of_negatives_that_come_near(wrongly: int, states: int) -> None:
    of = faced_balls(wrongly, states)
    one = reading(of, {"event": FACED}, mip=KINDS[0])
    assert negative_pressure(lexicon(of), one) == pytest.approx(wrongly / (states + 4))


def test_pressure_keeps_what_happens() -> None:
    """Words that say what happens still count: only what they say of things is left out."""
    experts = [(scene(2, [(1, "taken", BALL)], [BALL, KEY], "get mip"), {1})] * 3
    negative = scene(4, [(1, "faced", KEY), (2, "taken", KEY)], [BALL, KEY], "get mip")
    of = evidence(*experts, (negative, set()))
    one = reading(of, {"event": FACED}, get=TAKEN, mip=KINDS[0])
    assert negative_pressure(lexicon(of), one) == pytest.approx(1 / 7)
    assert negative_pressure(lexicon(of), reading(of, {"event": FACED}, mip=KINDS[0])) == pytest.approx(1 / 7)
    assert negative_pressure(lexicon(of), reading(of, {"event": TAKEN}, mip=KINDS[0])) == pytest.approx(1 / 7)


def posterior(of: GridEvidence, best: GridReading, chances: dict[str, dict[Filter | None, float]]) -> Posterior:
    """Chances of the meanings named, 0 for all others."""
    words = {}
    for word, table in chances.items():
        words[word] = dict.fromkeys(range(-1, len(of.filters)), 0.0)
        words[word] |= {-1 if f is None else of.index[f]: chance for f, chance in table.items()}
    return Posterior(best, 0.0, words)


def test_sure_meanings_are_required_and_others_guessed() -> None:
    of = faced_balls(5, 6)  # pressure 1/2, two kinds: one sure meaning costs 1/4 and its doubt
    one = reading(of, {"event": FACED}, mip=KINDS[0])
    sure = posterior(of, one, {"go": {None: 1.0}, "mip": {KINDS[0]: 0.9, None: 0.1}})
    decided = decide(lexicon(of), sure)
    assert decided.meanings == (("mip", (KINDS[0],)),)
    assert decided.guesses == ()
    assert decided.constants == (FACED,)
    unsure = posterior(of, one, {"go": {None: 1.0}, "mip": {KINDS[0]: 0.55, None: 0.45}})
    decided = decide(lexicon(of), unsure)  # 0.45 * MISS + 1/4 > 1/2
    assert decided.meanings == ()
    assert decided.guesses == (("mip", (KINDS[0],)),)


def test_another_reading_is_said_with_the_same_certainty() -> None:
    of = faced_balls(5, 6)
    best, other = reading(of, {"event": FACED}, mip=KINDS[0]), reading(of, {"event": FACED}, mip=KINDS[1])
    known = posterior(of, best, {"go": {None: 1.0}, "mip": {KINDS[0]: 1.0}})
    decided = decide(lexicon(of), known, other)
    assert decided.meanings == (("mip", (KINDS[0],)),)
    assert decided.guesses == (("mip", (KINDS[1],)),)


def test_a_word_of_negatives_alone_does_not_share_the_meaning_of_an_experts_word() -> None:
    """No goal shows what "lu" means. It is not the kind that "mip" names; what no word names stays possible."""
    goal, miss = (
        scene(2, [(1, "faced", BALL)], EVERYTHING, "go mip"),
        scene(2, [(1, "faced", KEY)], EVERYTHING, "go lu"),
    )
    of = evidence((goal, {1}), (miss, set()))
    one = reading(of, {"event": FACED}, mip=KINDS[0], lu=KINDS[0])
    for chances, sure in (({KINDS[0]: 0.95, KINDS[2]: 0.05}, ()), ({KINDS[2]: 1.0}, (("lu", (KINDS[2],)),))):
        words = {"go": {None: 1.0}, "mip": {KINDS[0]: 1.0}, "lu": chances}
        decided = decide(lexicon(of), posterior(of, one, words))  # type: ignore[arg-type]
        assert decided.meanings == (*sure, ("mip", (KINDS[0],)))
        assert decided.guesses == ()


def test_a_word_of_negatives_alone_may_be_new_where_no_word_beside_it_names_the_feature() -> None:
    """Two colours stand before "mip". "fen" and "lu" are words of negatives: "lu" stands beside a colour."""
    said = (("go gax mip", (1, 5, 0)), ("go wog mip", (1, 6, 0)), ("go mip", (1, 6, 0)))
    goals = [(scene(2, [(1, "faced", code)], EVERYTHING, words), {1}) for words, code in said]
    misses = [(scene(9, [(1, "faced", KEY)], EVERYTHING, words), set()) for words in ("go fen tro", "lu gax mip")]
    of = evidence(*goals, *misses)
    one = reading(of, {"event": FACED}, gax=RED, wog=BLUE, mip=KINDS[0])
    sure = {"gax": {RED: 1.0}, "wog": {BLUE: 1.0}, "mip": {KINDS[0]: 1.0}}
    chances: dict[str, dict[Filter | None, float]] = {word: {None: 1.0} for word in ("go", "fen", "lu", "tro")} | sure
    slots = decide(lexicon(of), posterior(of, one, chances)).slots
    assert dict(slots.before) == {"mip": "channel 1"}
    assert slots.unnamed == ()
    assert dict(slots.unshown) == {"fen": ("channel 1",), "tro": ("channel 1",)}


def test_one_of_several_is_no_meaning() -> None:
    of = faced_balls(5, 6)
    one = reading(of, {"event": FACED}, go=SEVERAL)
    decided = decide(lexicon(of), posterior(of, one, {"go": {SEVERAL: 1.0}, "mip": {None: 1.0}}))
    assert (decided.meanings, decided.guesses) == ((), ())


@pytest.mark.parametrize(("wrongly", "states", "novel"), [(5, 6, "require"), (1, 16, "ignore"), (2, 12, "guess")])
def test_unknown_words(wrongly: int, states: int, novel: str) -> None:
    """Required where more negatives come near than the trust allows for; guessed else; ignored where no meaning is
    sure, as then nothing is known to be left."""
    of = faced_balls(wrongly, states)
    pressure = wrongly / (states + 4)
    one = reading(of, {"event": FACED}, mip=KINDS[0])
    chances = {KINDS[0]: 0.95, None: 0.05} if novel == "ignore" else {KINDS[0]: 1.0}
    decided = decide(lexicon(of), posterior(of, one, {"go": {None: 1.0}, "mip": chances}))
    assert decided.novel == novel
    assert (pressure > 1 - NOVEL_TRUST) == (novel == "require")


DOOR, OPEN_DOOR, LONE_KEY = (4, 5, 1), (4, 5, 0), (7, 6, 0)


def busy(goal: bool) -> Scene:
    """A door opens at the goal, while a key is faced. Others face the key for a long time, and open no door."""
    rows: list[Row] = [(9, "changed", OPEN_DOOR), (9, "faced", LONE_KEY)] if goal else []
    rows += [] if goal else [(state, "faced", LONE_KEY) for state in range(10, 20)]
    return scene(10 if goal else 40, rows, [LONE_KEY, *[DOOR] * 8])


BUSY = evidence(*[(busy(True), {9})] * 6, *[(busy(False), set())] * 2)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ((CHANGED,), 0.0),
        # All 6 goals and 20 of 134 other states: of the states that fire, weighted equally, a share 1 / (1 + 20/134).
        ((FACED,), (math.log(134 / 154) + 20 / 134 * math.log(20 / 154)) / 2),
        ((FACED, Filter("channel 0", 4)), -math.log(2)),  # it never happens
    ],
)
def test_likelihood_of_a_condition(filters: tuple[Filter, ...], expected: float) -> None:
    one = GridReading({f.feature: BUSY.index[f] for f in filters})
    assert likelihood(Lexicon(BUSY, Plan()), one) == pytest.approx(expected)


def test_the_best_condition_is_an_event_and_at_most_one_filter() -> None:
    assert best_condition(BUSY) == GridReading({"event": BUSY.index[CHANGED]})


def test_a_condition_that_fits_better_than_the_best_reading_comes_first() -> None:
    """By cost, "the key is faced" is better: it says which of nine things is meant. But it pays many other states."""
    sketcher = GridSketcher.__new__(GridSketcher)
    sketcher._view = PerceivedStates(Perception(None, ()), (), BUSY)
    sketcher._search = PlanSearch(sketcher._view, 0)
    assert sketcher._found[0].posterior.best.constants["event"] == BUSY.index[FACED]
    first, second, *_ = sketcher.initial()
    assert "has just changed" in sketcher.reasoning(first)
    assert sketcher.prior(first) < sketcher.prior(second) == 0.0
