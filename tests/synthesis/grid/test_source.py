"""Programs say what the tables say, on worlds played at random and on the demonstrations that ship; what they hold."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.demos import load
from grace_irl.demos.labels import label
from grace_irl.demos.trajectory import Demonstration, Trajectory
from grace_irl.programs.check import read
from grace_irl.synthesis.grid.lexicon import Lexicon, split_words
from grace_irl.synthesis.grid.meaning import SEVERAL, Filter, Hypothesis, Novel, Plan
from grace_irl.synthesis.grid.reading import GridReading
from grace_irl.synthesis.grid.scene import EVENTS, SIDES
from grace_irl.synthesis.grid.search import PerceivedStates, view
from grace_irl.synthesis.grid.source import write_source
from tests.synthesis.grid.programs import (
    ARRANGEMENTS,
    BALL,
    FACED,
    GUESS,
    MAYBE_RED,
    PERCEPTION,
    RED,
    STEPS,
    SURE_KEY,
    TAKEN,
    VOCABULARY,
    WALK,
    checked,
)
from tests.synthesis.worlds import FLOOR, WALL, labelled, random_play, rewards

SHIPPED = Path(__file__).resolve().parents[3] / "datasets" / "babyai-go-to-obj"
INSTRUCTIONS = (
    *("zek gax mip", "pick up tro", "zek fen dol pick up mip", "pick up gax dol zek", "dol", "fen dol gax dol mip"),
    *("Zek, GAX-mip!", "", "tro"),
)


@cache
def played(seed: int) -> PerceivedStates:
    """Three trajectories of a random agent under three instructions."""
    rng = np.random.default_rng(seed)
    items = []
    for number in range(3):
        stack = random_play(rng, 30).stack()
        instruction = INSTRUCTIONS[int(rng.integers(len(INSTRUCTIONS)))]
        role = "expert" if number == 0 else "negative"
        items.append(Demonstration(Trajectory(stack, extra_info=instruction), role))
    # "pick up" stands together three times, so that it is a phrase.
    for instruction in ("pick up zek", "pick up tro", "gax pick up"):
        items.append(Demonstration(Trajectory(items[0].trajectory.states, extra_info=instruction), "negative"))
    return view(labelled(items))


@cache
def shipped() -> PerceivedStates:
    return view(label(load([SHIPPED]), "last").items)


def program(seen: PerceivedStates, hypothesis: Hypothesis) -> str:
    return checked(write_source(hypothesis, seen.perception, seen.vocabulary, seen.phrases))


def assert_same(seen: PerceivedStates, plan: Plan, reading: GridReading, novel: Novel = "ignore") -> None:
    """The program of a reading without guesses gives 1.0 where the tables fire, else 0.0."""
    filters = seen.evidence.filters
    constants = tuple(sorted(filters[column] for column in reading.constants.values()))
    meanings = tuple(sorted((word, (filters[column],)) for word, column in reading.meanings.items()))
    source = program(
        seen, Hypothesis(plan, constants, meanings, novel=novel, between=Lexicon(seen.evidence, plan).between)
    )
    lexicon = Lexicon(seen.evidence, plan)
    for i, scene in enumerate(seen.evidence.scenes):
        fired = seen.evidence.fired(i, lexicon.stages(reading, i))
        paid = rewards(source, scene.states, " ".join(scene.words))
        assert paid.tolist() == fired.astype(float).tolist()


@st.composite
def readings(draw: st.DrawFn, seen: PerceivedStates, plan: Plan) -> GridReading:
    """A usual event, perhaps more constants, and meanings of words."""
    filters = seen.evidence.filters
    by_feature: dict[str, list[int]] = {}
    for column, f in enumerate(filters):
        by_feature.setdefault(f.feature, []).append(column)
    constants = {"event": draw(st.sampled_from(by_feature["event"]))}
    for feature in ("channel 0", "channel 1", "channel 2", "side", "shared 0", "shared 1"):
        if feature in by_feature and draw(st.integers(0, 4)) == 0:
            constants[feature] = draw(st.sampled_from(by_feature[feature]))
    words = [word for word in seen.vocabulary if word not in dict(plan.separators)]
    columns = [column for column, f in enumerate(filters) if f != SEVERAL]
    meanings = draw(st.dictionaries(st.sampled_from(words), st.sampled_from(columns), max_size=3)) if words else {}
    return GridReading(constants, meanings)  # type: ignore[arg-type]


plans = st.dictionaries(st.sampled_from(("dol", "fen", "pick up")), st.sampled_from(ARRANGEMENTS), max_size=3).map(
    lambda separators: Plan(tuple(sorted(separators.items())))
)


@settings(max_examples=150, derandomize=True)
@given(st.data())
def test_programs_on_random_worlds(data: st.DataObject) -> None:
    """The same hypothesis, as tables over what happened and as text: every arrangement, event and feature."""
    seen = played(data.draw(st.integers(0, 5), label="world"))
    plan = data.draw(plans, label="plan")
    reading = data.draw(readings(seen, plan), label="reading")
    # All words are known, so how to take unknown ones changes nothing.
    assert_same(seen, plan, reading, data.draw(st.sampled_from(["ignore", "guess", "require"])))


def test_random_worlds_show_everything() -> None:
    """Or the property above would say little."""
    events: set[int] = set()
    for seed in range(6):
        seen = played(seed)
        assert seen.perception.agent == PERCEPTION.agent
        assert set(seen.perception.background) == {FLOOR, WALL}
        assert "pick up" in seen.phrases
        for scene in seen.evidence.scenes:
            events |= set(scene.happenings.event.tolist())
    assert events == set(range(len(EVENTS)))


@pytest.mark.parametrize(
    ("constants", "meanings"),
    [
        ({}, {}),
        ({"channel 1": 0}, {}),
        ({}, {"ball": ("channel 0", 6), "key": ("channel 0", 5), "box": ("channel 0", 7)}),
        ({"side": 0}, {"red": ("channel 1", 0), "blue": ("channel 1", 2)}),
    ],
)
def test_programs_on_the_demonstrations_that_ship(
    constants: dict[str, int], meanings: dict[str, tuple[str, int]]
) -> None:
    seen = shipped()
    index = seen.evidence.index
    reading = GridReading(
        {"event": index[FACED], **{f: index[Filter(f, v)] for f, v in constants.items()}},  # type: ignore
        {word: index[Filter(*value)] for word, value in meanings.items() if Filter(*value) in index},  # type: ignore
    )
    assert_same(seen, Plan(), reading, "require")


@pytest.mark.parametrize("plan", [Plan(), *(Plan((("dol", arrangement),)) for arrangement in ARRANGEMENTS)])
def test_programs_without_meanings_have_no_dictionary(plan: Plan) -> None:
    source = checked(write_source(Hypothesis(plan, (FACED,), novel="require"), PERCEPTION, VOCABULARY))
    for name in ("WORDS", "GUESSES", "NAMES", "PLAIN", "PHRASES", "agrees", "unnamed"):
        assert name not in source
    assert ("import re" in source) == (plan != Plan())


@pytest.mark.parametrize(
    ("event", "function"), [(0, "faced"), (1, "differences"), (2, "differences"), (3, "differences"), (4, "entered")]
)
def test_only_what_is_needed_is_written(event: int, function: str) -> None:
    source = checked(write_source(Hypothesis(Plan(), (Filter("event", event),)), PERCEPTION, ()))
    defined = {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
    assert function in defined
    assert not {"faced", "differences", "entered", "sides"} & (defined - {function})


def test_sources_are_a_function_of_the_hypothesis() -> None:
    hypothesis = Hypothesis(Plan((("dol", "then"),)), (FACED, RED), STEPS, GUESS, "guess")
    texts = {write_source(hypothesis, PERCEPTION, ["zek", "mip", "tro", "gax"], ["pick up"]) for _ in range(3)}
    assert len(texts) == 1


HOSTILE = (
    'a"b',
    "a\\",
    'x", __import__("os"), "',
    "new\nline",
    "\u202e\u2066",
    "nul\0",
    "{x}",
    "%s",
    "$but_agent",
    "'''",
)


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_words_stay_words(word: str) -> None:
    """No instruction splits into such words; if one did, they would be nothing but text."""
    hypothesis = Hypothesis(Plan(((word, "then"),)), (FACED,), ((word, (BALL,)),), ((word, (RED,)),), "guess")
    source = write_source(hypothesis, PERCEPTION, [word, f"{word}s"], [])
    tree = ast.parse(source)
    constants = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert word in constants
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert "__import__" not in names
    assert read(source).problems == ()
    assert all(char == "\n" or char.isprintable() for char in source)


@settings(max_examples=100, derandomize=True)
@given(st.text(max_size=40))
def test_any_instruction_can_be_read_and_written(text: str) -> None:
    """What a person may have typed, as the only instruction of the training data and as a new one."""
    words = split_words(text)
    meanings = tuple((word, (BALL,)) for word in dict.fromkeys(words))
    source = write_source(Hypothesis(Plan(), (FACED,), meanings, novel="guess"), PERCEPTION, words)
    assert read(source).problems == ()
    assert rewards(source, WALK.stack(), text).tolist() == ([0, 1, 0, 1] if words else [0, 1, 1, 1])


def test_everything_at_once_makes_no_long_lines() -> None:
    """Events, codes and a side that always hold."""
    constants = (TAKEN, BALL, RED, Filter("channel 2", 50), Filter("side", SIDES.index("behind")))
    hypothesis = Hypothesis(Plan((("dol", "after"),)), constants, (("go", (FACED,)), SURE_KEY), (MAYBE_RED,), "require")
    checked(write_source(hypothesis, PERCEPTION, VOCABULARY, ("pick up",)))


def test_many_words_make_no_long_lines() -> None:
    words = [f"word{number}" for number in range(200)]
    phrases = [f"one{number} two{number} three{number}" for number in range(20)]
    meanings = tuple((phrase, tuple(Filter("channel 0", v) for v in range(20))) for phrase in phrases)
    hypothesis = Hypothesis(Plan(), (FACED,), meanings, novel="require")
    source = checked(write_source(hypothesis, PERCEPTION, [*words, *phrases], phrases))
    assert source.count("one7 two7 three7") == 2
