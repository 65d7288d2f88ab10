"""Meanings of words: found where the data tells, left open where it does not."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.synthesis.grid.evidence import GridEvidence
from grace_irl.synthesis.grid.learn import Seeker, descend, wander
from grace_irl.synthesis.grid.lexicon import Lexicon, Posterior
from grace_irl.synthesis.grid.meaning import SEVERAL, Filter, Plan
from grace_irl.synthesis.grid.reading import CLASS_ELSE, CONSTANT, IN_PASSING, MEANING, GridReading
from grace_irl.synthesis.grid.search import PerceivedStates, view
from tests.synthesis.grid.scenes import FACED, TINY, event, marks, reading, scene
from tests.synthesis.worlds import COLOURS, KINDS, WORDS, go_to_set, labelled

TRUE = {
    **{WORDS[name]: Filter("channel 0", code) for name, code in KINDS.items()},
    **{WORDS[name]: Filter("channel 1", code) for name, code in COLOURS.items()},
}


def learn(lexicon: Lexicon, events: Sequence[int], seed: int) -> Posterior:
    """The most likely reading, and the probability of each meaning of a word."""
    seeker = Seeker(lexicon, events, seed)
    deque(seeker.rounds(), 0)
    return seeker.posterior()


@pytest.fixture(scope="module")
def seen() -> PerceivedStates:
    return view(labelled(go_to_set(0, 10, 10)))


@pytest.fixture(scope="module")
def lexicon(seen: PerceivedStates) -> Lexicon:
    return Lexicon(seen.evidence, Plan())


@pytest.fixture(scope="module")
def posterior(seen: PerceivedStates, lexicon: Lexicon) -> Posterior:
    return learn(lexicon, seen.events, 0)


def test_true_meanings_are_found(lexicon: Lexicon, posterior: Posterior) -> None:
    filters = lexicon.evidence.filters
    assert {word: filters[column] for word, column in posterior.best.meanings.items()} == TRUE
    assert {feature: filters[column] for feature, column in posterior.best.constants.items()} == {
        "event": event("faced")
    }
    # Nothing but the price of saying so: six words, two kinds of features, the usual event.
    assert posterior.cost == pytest.approx(6 * MEANING + 2 * CLASS_ELSE + CONSTANT + IN_PASSING)


def test_chances_sum_to_one_and_favour_the_truth(lexicon: Lexicon, posterior: Posterior) -> None:
    assert set(posterior.words) == {*TRUE, "zek"}
    for word, chances in posterior.words.items():
        assert set(chances) == {-1, *range(len(lexicon.evidence.filters))}
        assert sum(chances.values()) == pytest.approx(1.0)
        likeliest = max(chances, key=lambda column: chances[column])
        assert likeliest == (lexicon.evidence.index[TRUE[word]] if word in TRUE else -1)


def test_learning_is_deterministic(seen: PerceivedStates, lexicon: Lexicon, posterior: Posterior) -> None:
    again = learn(Lexicon(seen.evidence, Plan()), seen.events, 0)
    assert (again.best, again.cost, again.words) == (posterior.best, posterior.cost, posterior.words)


def test_no_other_meaning_of_a_word_leads_to_a_better_reading(lexicon: Lexicon, posterior: Posterior) -> None:
    for word in lexicon.words:
        for column in range(len(lexicon.features)):
            changed = posterior.best.with_meaning(word, column)
            _, followed = descend(lexicon, changed, frozen=word)
            assert descend(lexicon, followed)[0] >= posterior.cost - 1e-6


def test_two_words_that_always_go_together_stay_open() -> None:
    """ "fen mip" is said of green balls alone, and nothing else is green or a ball: which word says which?"""
    ball, others = (1, 4, 0), [(2, 5, 0), (3, 6, 0), (2, 6, 0), (3, 5, 0)]
    said = {(2, 5, 0): "ka lu", (3, 6, 0): "mo ri", (2, 6, 0): "ka ri", (3, 5, 0): "mo lu", ball: "fen mip"}
    scenes, positives = [], []
    for code in [ball, *others] * 2:
        things = [ball, *others]
        rows = [(t + 1, "faced", other) for t, other in enumerate(c for c in things if c != code)]
        scenes.append(scene(6, [*rows, (5, "faced", code)], things, said[code]))
        positives.append(marks(6, 5))
    evidence = GridEvidence(scenes, positives)
    lexicon = Lexicon(evidence, Plan())
    chances = learn(lexicon, [evidence.index[event("faced")]], 0).words
    is_ball, is_green = evidence.index[Filter("channel 0", 1)], evidence.index[Filter("channel 1", 4)]
    for word in ("fen", "mip"):
        assert max(chances[word].values()) < 0.75
        assert chances[word][is_ball] + chances[word][is_green] + chances[word][-1] > 0.95
        assert min(chances[word][is_ball], chances[word][is_green]) > 0.02
    for word, f in {"ka": Filter("channel 0", 2), "ri": Filter("channel 1", 6)}.items():
        assert chances[word][evidence.index[f]] > 0.9


def two_doors() -> GridEvidence:
    """ "op ma ka dol op ma lu": experts open the red and then the blue door, and most negatives the blue door alone.

    That a blue door changes, whatever is said, explains all but these negatives. To explain them too, a walk has to
    give up this constant and give meanings to "ka" and "lu": every change on the way raises the cost.
    """
    red, blue, open_red, open_blue, key = (4, 0, 1), (4, 2, 1), (4, 0, 0), (4, 2, 0), (5, 1, 0)
    things, words = [red, blue, key], "op ma ka dol op ma lu"
    first = [(1, "faced", key), (2, "faced", red), (3, "changed", open_red), (4, "faced", open_red)]
    second = [(5, "faced", blue), (6, "changed", open_blue)]
    both = [scene(7, [*first, *second], things, words) for _ in range(6)]
    alone = [scene(8, [*second, (7, "faced", open_blue)], things, words) for _ in range(4)]
    other = [scene(8, first, things, words) for _ in range(2)]
    return GridEvidence([*both, *alone, *other], [marks(7, 6)] * 6 + [marks(8)] * 6)


@pytest.mark.parametrize("seed", range(8))
def test_the_best_reading_is_found_with_every_seed(seed: int) -> None:
    evidence = two_doors()
    events = [column for column, f in enumerate(evidence.filters) if f.feature == "event"]
    found = learn(Lexicon(evidence, Plan((("dol", "then"),))), events, seed)
    assert found.best == GridReading(
        {"event": evidence.index[event("changed")]},
        {"ka": evidence.index[Filter("channel 1", 0)], "lu": evidence.index[Filter("channel 1", 2)]},
    )


class Ends(Seeker):
    """A search whose rounds end at costs that are written down."""

    def __init__(self, ends: list[float]) -> None:
        super().__init__(Lexicon(TINY, Plan()), [TINY.index[FACED]], 0)
        self._todo = ends

    def round(self) -> None:
        self._ends.append(self._todo.pop(0))
        self._keep(self._ends[-1], self.reading)


@pytest.mark.parametrize(
    ("ends", "rounds"),
    [
        ([5.0] * 30, 5),  # 1 * 2 / (5 * 4) = UNSEEN
        ([5.0, 5.0 + 1e-9, *[5.0] * 30], 5),  # equal but for rounding
        ([7.0, *[5.0] * 30], 7),  # the lowest cost for the sixth time
        ([5.0, *[7.0] * 30], 9),  # 2 * 3 / (9 * 8) < UNSEEN
        ([5.0, 6.0, *[7.0] * 30], 12),  # 3 * 4 / (12 * 11) < UNSEEN
        ([float(i) for i in range(30)], 20),
    ],
)
def test_a_search_goes_on_while_another_reading_is_likely(ends: list[float], rounds: int) -> None:
    seeker, all_of_them = Ends(list(ends)), len(ends)
    deque(seeker.rounds(), 0)
    assert all_of_them - len(seeker._todo) == rounds
    assert seeker.cost == min(ends[:rounds])


@pytest.mark.parametrize("effort", [2.0, 10.0])
def test_more_effort_is_as_many_times_the_rounds(effort: float) -> None:
    seeker = Ends([5.0] * 100)
    deque(seeker.rounds(effort), 0)
    assert 100 - len(seeker._todo) == 5 * effort


@settings(max_examples=25, derandomize=True)
@given(st.integers(0, 10**6), st.booleans())
def test_descend_ends_no_higher_and_where_nothing_nearby_is_lower(
    lexicon: Lexicon, posterior: Posterior, seed: int, freeze: bool
) -> None:
    rng = np.random.default_rng(seed)
    count = len(lexicon.evidence.filters)
    events = [c for c, f in enumerate(lexicon.evidence.filters) if f.feature == "event"]
    meanings = {word: int(rng.integers(count)) for word in lexicon.words if rng.random() < 0.6}
    start = GridReading({"event": int(rng.choice(events))}, meanings)
    word = str(rng.choice(lexicon.words)) if freeze else None
    cost, end = descend(lexicon, start, frozen=word)
    assert cost <= lexicon.total(start) + 1e-9
    assert cost == pytest.approx(lexicon.total(end))
    assert cost >= posterior.cost - 1e-9
    if word is not None:
        assert end.meanings.get(word) == start.meanings.get(word)
        assert end.constants == start.constants
    near = [end.with_meaning(other, column) for other in lexicon.words if other != word for column in range(-1, count)]
    if word is None:
        near += [end.with_constant(f.feature, i) for i, f in enumerate(lexicon.evidence.filters) if f != SEVERAL]
    assert all(lexicon.total(one) >= cost - 1e-6 for one in near)


def test_a_walk_is_a_function_of_its_generator() -> None:
    lexicon = Lexicon(TINY, Plan())
    start = reading({"event": FACED})
    walks = [wander(lexicon, start, 100, np.random.default_rng(seed)) for seed in (1, 1, 2, 3, 4)]
    assert walks[0] == walks[1]
    assert any(walk != walks[0] for walk in walks[2:])
    assert start == reading({"event": FACED})
