"""Programs say what the tables say: on worlds played at random, on the demonstrations that ship, and on small ones."""

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
from grace_irl.propose.synthesis.grid.lexicon import Lexicon, Reading
from grace_irl.propose.synthesis.grid.meaning import SEVERAL, Arrangement, Filter, Hypothesis, Novel, Plan
from grace_irl.propose.synthesis.grid.perception import Agent, Perception
from grace_irl.propose.synthesis.grid.scene import EVENTS, SIDES
from grace_irl.propose.synthesis.grid.search import View, view
from grace_irl.propose.synthesis.grid.source import summary, write_source
from tests.propose.worlds import (
    AGENT,
    CLOSED,
    DOOR,
    FLOOR,
    HEADINGS,
    OPEN,
    WALL,
    World,
    labelled,
    random_play,
    rewards,
    thing,
)

SHIPPED = Path(__file__).resolve().parents[4] / "datasets" / "babyai-go-to-obj"
VOCABULARY = ("zek", "gax", "mip", "tro", "fen", "up", "pick")
INSTRUCTIONS = (
    *("zek gax mip", "pick up tro", "zek fen dol pick up mip", "pick up gax dol zek", "dol", "fen dol gax dol mip"),
    *("Zek, GAX-mip!", "", "tro"),
)
ARRANGEMENTS: tuple[Arrangement, ...] = ("whole", "then", "after", "both", "beside")

PERCEPTION = Perception(Agent(0, AGENT, 2, tuple(sorted(HEADINGS.items()))), (FLOOR, WALL))
FACED, TAKEN, CHANGED = (Filter("event", EVENTS.index(name)) for name in ("faced", "taken", "changed"))
BALL, KEY, RED, BLUE = (
    Filter("channel 0", 14),
    Filter("channel 0", 30),
    Filter("channel 1", 11),
    Filter("channel 1", 17),
)


@cache
def played(seed: int) -> View:
    """Three trajectories of a random agent under three instructions."""
    rng = np.random.default_rng(seed)
    items = []
    for number in range(3):
        stack = random_play(rng, 30).stack()
        instruction = INSTRUCTIONS[int(rng.integers(len(INSTRUCTIONS)))]
        role = "expert" if number == 0 else "negative"
        items.append(Demonstration(Trajectory(stack, extra_info=instruction), role))
    # "pick up" stands together twice, so that it is a phrase.
    for instruction in ("pick up zek", "pick up tro"):
        items.append(Demonstration(Trajectory(items[0].trajectory.states, extra_info=instruction), "negative"))
    return view(labelled(items))


@cache
def shipped() -> View:
    return view(label(load([SHIPPED]), "last").items)


def checked(source: str) -> str:
    """The source, after what holds for every program that is emitted."""
    found = read(source)
    assert found.problems == ()
    assert not found.takes_action
    assert max(map(len, source.splitlines())) <= 120
    assert not [line for line in source.splitlines() if line != line.rstrip()]
    assert source.endswith("\n")
    assert not source.endswith("\n\n")
    return source


def program(seen: View, hypothesis: Hypothesis) -> str:
    return checked(write_source(hypothesis, seen.perception, seen.vocabulary, seen.phrases))


def assert_same(seen: View, plan: Plan, reading: Reading, novel: Novel = "ignore") -> None:
    """The program of a reading without guesses gives 1.0 where the tables fire, else 0.0."""
    filters = seen.evidence.filters
    constants = tuple(sorted(filters[column] for column in reading.constants.values()))
    meanings = tuple(sorted((word, (filters[column],)) for word, column in reading.meanings.items()))
    source = program(seen, Hypothesis(plan, constants, meanings, novel=novel))
    lexicon = Lexicon(seen.evidence, plan)
    for i, scene in enumerate(seen.evidence.scenes):
        fired = seen.evidence.fired(i, plan, lexicon.steps(reading, i))
        paid = rewards(source, scene.states, " ".join(scene.words))
        assert paid.tolist() == fired.astype(float).tolist()


@st.composite
def readings(draw: st.DrawFn, seen: View, plan: Plan) -> Reading:
    """A usual event, perhaps more constants, and meanings of words."""
    filters = seen.evidence.filters
    by_feature: dict[str, list[int]] = {}
    for column, f in enumerate(filters):
        by_feature.setdefault(f.feature, []).append(column)
    constants = {"event": draw(st.sampled_from(by_feature["event"]))}
    for feature in ("channel 0", "channel 1", "channel 2", "side"):
        if feature in by_feature and draw(st.integers(0, 4)) == 0:
            constants[feature] = draw(st.sampled_from(by_feature[feature]))
    words = [word for word in seen.vocabulary if word != plan.separator]
    columns = [column for column, f in enumerate(filters) if f != SEVERAL]
    meanings = draw(st.dictionaries(st.sampled_from(words), st.sampled_from(columns), max_size=3)) if words else {}
    return Reading(constants, meanings)  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_programs_on_random_worlds(data: st.DataObject) -> None:
    """The same hypothesis, as tables over what happened and as text: every arrangement, event and feature."""
    seen = played(data.draw(st.integers(0, 5), label="world"))
    plan = data.draw(st.sampled_from([Plan(a, "" if a == "whole" else "dol") for a in ARRANGEMENTS]), label="plan")
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
    reading = Reading(
        {"event": index[FACED], **{f: index[Filter(f, v)] for f, v in constants.items()}},  # type: ignore
        {word: index[Filter(*value)] for word, value in meanings.items() if Filter(*value) in index},  # type: ignore
    )
    assert_same(seen, Plan(), reading, "require")


NEAR = World((6, 8), (2, 2), 40, {(2, 4): thing("red", "ball"), (3, 3): thing("blue", "key")})
"""Faced in turn: nothing; the red ball, in states 1; nothing, the blue key, in states 2 and 3."""
WALK = NEAR.act("forward", "right", "left")


def earned(hypothesis: Hypothesis, instruction: str = "", world: World = WALK, words: str = "") -> list[float]:
    """The rewards of one world under an instruction; `words` were known in training."""
    source = checked(write_source(hypothesis, PERCEPTION, words.split()))
    return rewards(source, world.stack(), instruction).tolist()


SURE_BALL, SURE_KEY, MAYBE_RED = ("mip", (BALL,)), ("tro", (KEY,)), ("gax", (RED,))


@pytest.mark.parametrize(
    ("meanings", "guesses", "instruction", "expected"),
    [
        ((), (), "", [0, 1, 1, 1]),
        ((SURE_BALL,), (), "mip", [0, 1, 0, 1]),
        ((SURE_BALL,), (), "so a MIP, please", [0, 1, 0, 1]),
        ((SURE_BALL, SURE_KEY), (), "tro", [0, 0, 1, 0]),
        ((("mip", (BALL, KEY)),), (), "mip", [0, 1, 1, 1]),  # surely one of the two
        ((), (MAYBE_RED,), "gax", [0, 1, 0.5, 1]),  # whatever does not fit a guess earns half
        ((SURE_KEY,), (MAYBE_RED,), "gax tro", [0, 0, 0.5, 0]),
        ((SURE_BALL,), (MAYBE_RED,), "gax mip", [0, 1, 0, 1]),
        ((("mip", (BALL, KEY)),), (("mip", (KEY,)),), "mip", [0, 0.5, 1, 0.5]),
        ((SURE_BALL,), (MAYBE_RED,), "", [0, 1, 1, 1]),
    ],
)
def test_sure_and_guessed_meanings(
    meanings: tuple[tuple[str, tuple[Filter, ...]], ...],
    guesses: tuple[tuple[str, tuple[Filter, ...]], ...],
    instruction: str,
    expected: list[float],
) -> None:
    assert earned(Hypothesis(Plan(), (FACED,), meanings, guesses), instruction) == expected


@pytest.mark.parametrize(
    ("novel", "instruction", "expected"),
    [
        # The key's colour has no name, the ball's has: an unknown word must mean the key's.
        ("require", "qux", [0, 0, 1, 0]),
        ("guess", "qux", [0, 0.5, 1, 0.5]),
        ("ignore", "qux", [0, 1, 1, 1]),
        # Nothing is left open by a word that is known to say nothing, or where a known word names the feature.
        ("require", "zek", [0, 1, 1, 1]),
        ("require", "gax qux", [0, 1, 0, 1]),
    ],
)
def test_words_never_seen_before(novel: Novel, instruction: str, expected: list[float]) -> None:
    hypothesis = Hypothesis(Plan(), (FACED,), (MAYBE_RED,), novel=novel)
    assert earned(hypothesis, instruction, words="zek gax") == expected


def test_a_new_word_says_nothing_where_everything_has_a_name() -> None:
    hypothesis = Hypothesis(Plan(), (FACED,), (MAYBE_RED, ("wog", (BLUE,))), novel="require")
    assert earned(hypothesis, "qux", words="zek gax wog") == [0, 1, 1, 1]


STEPS = (("mip", (BALL,)), ("tro", (KEY,)))
GUESS = (("gax", (RED,)), ("wog", (BLUE,)))


@pytest.mark.parametrize(
    ("arrangement", "instruction", "meanings", "guesses", "expected"),
    [
        ("then", "mip dol tro", STEPS, (), [0, 0, 1, 0]),
        ("then", "tro dol mip", STEPS, (), [0, 0, 0, 1]),
        ("after", "mip dol tro", STEPS, (), [0, 0, 0, 1]),
        ("both", "tro dol mip", STEPS, (), [0, 0, 1, 1]),
        ("then", "tro", STEPS, (), [0, 0, 1, 0]),
        # A step that was done half only is half done from then on; what fits less now earns less now.
        ("then", "gax dol tro", STEPS, GUESS, [0, 0, 1, 0]),
        ("then", "wog dol tro", STEPS, GUESS, [0, 0, 1, 0]),
        ("then", "wog mip dol tro", STEPS, GUESS, [0, 0, 0.5, 0]),
        ("both", "wog mip dol tro", STEPS, GUESS, [0, 0, 0.5, 0.5]),
        ("then", "gax", STEPS, GUESS, [0, 1, 0.5, 1]),
        ("both", "gax dol gax", STEPS, GUESS, [0, 1, 0.5, 1]),
    ],
)
def test_steps(
    arrangement: Arrangement,
    instruction: str,
    meanings: tuple[tuple[str, tuple[Filter, ...]], ...],
    guesses: tuple[tuple[str, tuple[Filter, ...]], ...],
    expected: list[float],
) -> None:
    assert earned(Hypothesis(Plan(arrangement, "dol"), (FACED,), meanings, guesses), instruction) == expected


def test_the_thing_beside_may_be_guessed() -> None:
    world = World((6, 8), (2, 2), 40, {(2, 3): thing("red", "ball"), (1, 3): thing("blue", "key")}).act("take")
    plan = Plan("beside", "dol")
    assert earned(Hypothesis(plan, (TAKEN,), STEPS), "mip dol tro", world) == [0, 1]
    assert earned(Hypothesis(plan, (TAKEN,), STEPS), "mip dol mip", world) == [0, 0]
    assert earned(Hypothesis(plan, (TAKEN,), STEPS, (("gax", (RED,)),)), "mip dol gax tro", world) == [0, 0.5]
    assert earned(Hypothesis(plan, (TAKEN,)), "anything dol else", world) == [0, 1]
    assert earned(Hypothesis(plan, (TAKEN, RED)), "anything dol else", world) == [0, 1]
    assert earned(Hypothesis(plan, (TAKEN, BLUE)), "anything dol else", world) == [0, 0]


def test_a_verb_replaces_the_usual_event() -> None:
    world = World((6, 8), (2, 2), 40, {(2, 3): thing("red", "ball")}).act("left", "right", "take")
    hypothesis = Hypothesis(Plan(), (FACED,), (("pick", (TAKEN,)),))
    assert earned(hypothesis, "pick mip", world) == [0, 0, 0, 1]
    assert earned(hypothesis, "mip", world) == [0, 0, 1, 0]


def test_constants_hold_whatever_is_said() -> None:
    world = World((6, 8), (2, 2), 40, {(2, 3): (DOOR, 11, CLOSED)}).act("toggle", "toggle")
    assert earned(Hypothesis(Plan(), (CHANGED,)), "", world) == [0, 1, 1]
    assert earned(Hypothesis(Plan(), (CHANGED, Filter("channel 2", OPEN))), "", world) == [0, 1, 0]
    assert earned(Hypothesis(Plan(), (CHANGED, Filter("channel 2", OPEN)), (SURE_KEY,)), "tro", world) == [0, 0, 0]


def test_phrases_are_read_like_in_training() -> None:
    """Only whole words make a phrase: "pick ups" is not "pick up" and a rest."""
    hypothesis = Hypothesis(Plan(), (FACED,), (("pick up", (BALL,)),))
    source = checked(write_source(hypothesis, PERCEPTION, ["pick up"], ["pick up"]))
    for instruction, expected in {
        "Pick  up": [0, 1, 0, 1],
        "so pick up": [0, 1, 0, 1],
        "pick ups": [0, 1, 1, 1],
        "up pick": [0, 1, 1, 1],
        "toothpick up": [0, 1, 1, 1],
    }.items():
        assert rewards(source, WALK.stack(), instruction).tolist() == expected


def test_a_separator_may_be_a_phrase() -> None:
    hypothesis = Hypothesis(Plan("then", "and then"), (FACED,), STEPS)
    source = checked(write_source(hypothesis, PERCEPTION, ["and then", "mip", "tro"], ["and then"]))
    assert rewards(source, WALK.stack(), "mip, and then tro").tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_programs_without_meanings_have_no_dictionary(arrangement: Arrangement) -> None:
    plan = Plan(arrangement, "" if arrangement == "whole" else "dol")
    source = checked(write_source(Hypothesis(plan, (FACED,), novel="require"), PERCEPTION, VOCABULARY))
    for name in ("WORDS", "GUESSES", "NAMES", "PLAIN", "PHRASES", "agrees", "unnamed"):
        assert name not in source
    assert ("import re" in source) == (arrangement != "whole")


@pytest.mark.parametrize(
    ("event", "function"), [(0, "faced"), (1, "differences"), (2, "differences"), (3, "differences"), (4, "entered")]
)
def test_only_what_is_needed_is_written(event: int, function: str) -> None:
    source = checked(write_source(Hypothesis(Plan(), (Filter("event", event),)), PERCEPTION, ()))
    defined = {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
    assert function in defined
    assert not {"faced", "differences", "entered", "sides"} & (defined - {function})


def test_sources_are_a_function_of_the_hypothesis() -> None:
    hypothesis = Hypothesis(Plan("then", "dol"), (FACED, RED), STEPS, GUESS, "guess")
    texts = {write_source(hypothesis, PERCEPTION, ["zek", "mip", "tro", "gax"], ["pick up"]) for _ in range(3)}
    assert len(texts) == 1


def test_without_an_agent() -> None:
    """Things change although nobody is seen."""
    hypothesis = Hypothesis(Plan(), (CHANGED,), (SURE_BALL,), novel="guess")
    source = checked(write_source(hypothesis, Perception(None, (FLOOR, WALL)), ["mip"]))
    assert "AGENT" not in source
    states = World((5, 5), (1, 1), 40, {(2, 2): thing("red", "key")}).act("left", "left").stack()
    states[:, 1, 1] = FLOOR
    states[2, 2, 2] = thing("red", "ball")
    assert rewards(source, states, "mip").tolist() == [0, 0, 1]


def test_an_agent_that_goes_out_of_sight() -> None:
    """Never in training; but a program must not fall over it."""
    left = Filter("side", SIDES.index("left"))
    states = WALK.stack()
    for hidden in (slice(0, 1), slice(2, 3), slice(0, 4)):
        unseen = states.copy()
        part = unseen[hidden]
        part[part[..., 0] == AGENT] = FLOOR
        for event in range(len(EVENTS)):
            hypothesis = Hypothesis(Plan(), (Filter("event", event), left), (SURE_BALL,), novel="guess")
            source = checked(write_source(hypothesis, PERCEPTION, ["mip"]))
            assert set(rewards(source, unseen, "mip qux").tolist()) <= {0.0, 0.5, 1.0}


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
    hypothesis = Hypothesis(Plan("then", word), (FACED,), ((word, (BALL,)),), ((word, (RED,)),), "guess")
    source = write_source(hypothesis, PERCEPTION, [word, f"{word}s"], [])
    tree = ast.parse(source)
    constants = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert word in constants
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert "__import__" not in names
    assert read(source).problems == ()
    assert all(char == "\n" or char.isprintable() for char in source)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.text(max_size=40))
def test_any_instruction_can_be_read_and_written(text: str) -> None:
    """What a person may have typed, as the only instruction of the training data and as a new one."""
    from grace_irl.propose.synthesis.grid.instruction import split_words

    words = split_words(text)
    meanings = tuple((word, (BALL,)) for word in dict.fromkeys(words))
    source = write_source(Hypothesis(Plan(), (FACED,), meanings, novel="guess"), PERCEPTION, words)
    assert read(source).problems == ()
    assert rewards(source, WALK.stack(), text).tolist() == ([0, 1, 0, 1] if words else [0, 1, 1, 1])


def test_everything_at_once_makes_no_long_lines() -> None:
    """Events, codes and a side that always hold."""
    constants = (TAKEN, BALL, RED, Filter("channel 2", 50), Filter("side", SIDES.index("behind")))
    hypothesis = Hypothesis(Plan("after", "dol"), constants, (("go", (FACED,)), SURE_KEY), (MAYBE_RED,), "require")
    checked(write_source(hypothesis, PERCEPTION, VOCABULARY, ("pick up",)))


def test_many_words_make_no_long_lines() -> None:
    words = [f"word{number}" for number in range(200)]
    phrases = [f"one{number} two{number} three{number}" for number in range(20)]
    meanings = tuple((phrase, tuple(Filter("channel 0", v) for v in range(20))) for phrase in phrases)
    hypothesis = Hypothesis(Plan(), (FACED,), meanings, novel="require")
    source = checked(write_source(hypothesis, PERCEPTION, [*words, *phrases], phrases))
    assert source.count("one7 two7 three7") == 2


@pytest.mark.parametrize(
    ("hypothesis", "text"),
    [
        (Hypothesis(Plan(), (FACED,)), "the agent faces a thing"),
        (Hypothesis(Plan(), (TAKEN, RED)), "a thing with channel 1 = 11 has just gone from its cell"),
        (Hypothesis(Plan(), (FACED,), (SURE_BALL,)), "the agent faces the thing that the instruction describes"),
        (
            Hypothesis(Plan("then", "dol"), (FACED,), (SURE_BALL,)),
            "the agent faces the thing that the instruction describes, as the last step of the instruction",
        ),
        (
            Hypothesis(Plan("beside", "dol"), (TAKEN,), (SURE_BALL,)),
            "the thing that the instruction describes has just gone from its cell, "
            "beside the other thing that it describes",
        ),
        (
            Hypothesis(Plan(), (FACED,), (("pick", (TAKEN,)),)),
            "what the instruction says has just happened to the thing that the instruction describes",
        ),
    ],
)
def test_summary(hypothesis: Hypothesis, text: str) -> None:
    assert summary(hypothesis) == text
