"""Reshaping: versions of a program over grids with additional rewards for progress toward the goal.

A synthesised program over grids waits for an event, for example that the agent faces a red ball. A program of another
run comes as source text only. So the reshaper recovers the program's contents, an `Outline`, from the constants in the
source. As a check, the reshaper writes a program from these contents, and compares this program with the source.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from grace_irl.demos.labels import Problem
from grace_irl.programs.parsing import parse
from grace_irl.propose.protocol import Proposal
from grace_irl.states.grid import GRID
from grace_irl.synthesis.grid.meaning import ByFeature, Feature, Filter, Novel, Outline, Plan, WordSlots
from grace_irl.synthesis.grid.scene import EVENTS, HALVES, SIDES, Agent, Perception, find_agent
from grace_irl.synthesis.grid.source import KEYS, PARTING, Shaping, shapings, write_program

MOST = 100_000
"""Maximum length in characters of a source that `recover` parses. Programs of the synthesiser are far shorter."""
ABOUT = re.compile(r'"""Reward 1\.0 where (.*?);\s+(?:0\.0\s+)?elsewhere\b', re.DOTALL)
FEATURES: dict[int | str, Feature] = {
    **{feature: feature for feature in get_args(Feature)},
    **{int(key): feature for feature, key in KEYS.items()},
}
"""By key of a dictionary in a program: the feature for which the key stands."""


@dataclass(frozen=True)
class RecoveredPlan:
    """The contents of a program, recovered from its source. These are the arguments of `write_program`.

    Attributes:
        outline: the agent, the event and the meanings of words.
        happens: the condition of reward 1.0, such as "the agent faces a thing".
        shaping: the formula of the rewards for progress; None if there are no such rewards.
    """

    outline: Outline
    happens: str
    shaping: Shaping | None


def recover(source: str) -> RecoveredPlan | None:
    """Recover the contents of a program from its source.

    The result is None if `write_program` did not write the source. Blank lines are ignored.
    """
    about = ABOUT.match(source)
    if about is None or len(source) > MOST:
        return None
    happens = " ".join(about[1].split())
    head, lines = source.split("\ndef ", 1)[0], _lines(source)
    try:
        constants = {node.targets[0].id: node.value for node in parse(head).body if isinstance(node, ast.Assign)}  # type: ignore[attr-defined]
        outlines = list(_outlines(constants, source))
        tries: list[Shaping | None] = [None, *shapings(headed=True)] if "NEAR" in constants else [None]
        for outline, shaping in itertools.product(outlines, tries):
            if _lines(write_program(outline, happens, shaping)) == lines:
                return RecoveredPlan(outline, happens, shaping)
    except (SyntaxError, ValueError, TypeError, LookupError, AttributeError, RecursionError, MemoryError):
        return None  # the source only resembles a program of the synthesiser
    return None


def _lines(source: str) -> list[str]:
    """The non-empty lines of a source. An exported reward file may have different blank lines."""
    return [line for line in source.splitlines() if line]


def _outlines(constants: dict[str, ast.expr], source: str) -> Iterator[Outline]:
    """Generate the outlines that fit a program's constants. The outlines differ only in their use of unknown words.

    Args:
        constants: the expression of each constant, by name.
        source: the program.
    """
    read = {
        name: ast.literal_eval(node) for name, node in constants.items() if name in ("AGENT", "AHEAD", "BACKGROUND")
    }
    agent = None
    if "AGENT" in read:
        heading = re.search(r"(?:state|first)\[here\]\[(\d)\]", source)
        channel, code = read["AGENT"]
        agent = Agent(channel, code, int(heading[1]) if heading else None, tuple(read.get("AHEAD", {}).items()))
    parting = sorted(
        (word, arrangement)
        for name, arrangement, _ in PARTING
        if name in constants
        for word in _literals(constants[name])
    )
    novels: tuple[Novel, ...] = ("guess", "require") if "NAMES" in constants else ("ignore",)
    for novel in novels:
        yield Outline(
            perception=Perception(agent, read["BACKGROUND"]),
            plan=Plan(tuple(parting)),
            sure=_table(constants.get("WORDS")),
            guessed=_table(constants.get("GUESSES")),
            always=tuple(_filter(key, value) for key, value in _items(constants.get("ALWAYS"))),
            events=tuple(event for event in EVENTS if f'yield "{event}", ' in source),
            novel=novel,
            phrases=tuple(_literals(constants.get("PHRASES"))),
            plain=tuple(_literals(constants.get("PLAIN"))),
            between="\ndef along(" in source,
            slots=WordSlots(
                _slots(constants.get("NEW_BEFORE")),
                _slots(constants.get("NEW_AFTER")),
                unshown=tuple(
                    (word, tuple(FEATURES[key] for key in _literals(keys)))
                    for word, keys in _items(constants.get("UNSHOWN"))
                ),
            ),
        )


def _items(node: ast.expr | None) -> list[tuple[Any, ast.expr]]:
    """Keys and values of a dictionary expression, in order."""
    if not isinstance(node, ast.Dict):
        return []
    return [(ast.literal_eval(key), value) for key, value in zip(node.keys, node.values, strict=True) if key]


def _slots(node: ast.expr | None) -> tuple[tuple[str, Feature], ...]:
    """Pairs of a known word and a feature. An unknown word beside the known word names the feature."""
    return tuple((word, FEATURES[ast.literal_eval(value)]) for word, value in _items(node))


def _literals(node: ast.expr | None) -> list[Any]:
    """The elements of a set or list expression, in order."""
    return [ast.literal_eval(each) for each in node.elts] if isinstance(node, ast.Set | ast.List) else []


def _filter(key: int | str, value: ast.expr) -> Filter:
    said, feature = ast.literal_eval(value), FEATURES[key]
    names = {"event": EVENTS, "side": SIDES, "half": HALVES}.get(feature)
    return Filter(feature, said if names is None else names.index(said))


def _table(node: ast.expr | None) -> ByFeature:
    table: ByFeature = {}
    for key, words in _items(node):
        filters = {
            word: tuple(_filter(key, value) for value in values.elts)
            for word, values in _items(words)
            if isinstance(values, ast.Set)
        }
        table[FEATURES[key]] = filters
    return table


FOREIGN = "cannot reshape: the program is not a synthesised program over grids"
RESHAPED = (GRID.name,)
"""State kinds whose programs can be reshaped."""

UNSEEN = "cannot reshape: the program does not know which cell the agent is in"


def why_not(problem: Problem) -> str:
    """Name the problem's states, such as "vectors", if their rewards cannot be reshaped; else return ""."""
    kind = problem.metadata.state_kind
    if kind.name not in RESHAPED:
        return kind.plural
    return "grids labelled 'all'" if problem.rule == "all" else ""


class Reshaper:
    """A writer of reshaped programs. Of a program it reads only the source, so the program may be of another run.

    Some versions need the agent's heading, which is the direction that the agent faces. If the source does not read
    the heading, the reshaper learns the heading codes from the training data.

    Args:
        problem: labelled demonstrations.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._agent: Agent | None = None
        self._looked = False

    def reshape(self, source: str, version: int) -> Proposal:
        """Write a version of a program, or return a failure.

        The result depends only on the program, the version number and the training data.

        Args:
            source: the program.
            version: number of the version, from 0. Versions differ in the formula of the rewards for progress.
        """
        if kind := why_not(self._problem):
            return Proposal("", failure=f"cannot reshape rewards for {kind}")
        found = recover(source)
        if found is None:
            return Proposal("", failure=FOREIGN)
        outline = self._with_heading(found.outline)
        agent = outline.perception.agent
        if agent is None:
            return Proposal("", failure=UNSEEN)
        known = [one for one in shapings(headed=agent.heading_channel is not None) if one != found.shaping]
        if version >= len(known):
            return Proposal("", failure=f"cannot reshape further: there are only {len(known)} versions")
        shaping = known[version]
        about = f"{shaping.near:g} at most for progress, by {shaping.form}; 1.0 where {found.happens}."
        return Proposal(write_program(outline, found.happens, shaping), reasoning=about)

    def _with_heading(self, outline: Outline) -> Outline:
        """Add a heading to an outline without one, if the training data show the same agent with a heading."""
        agent = outline.perception.agent
        if agent is None or agent.heading_channel is not None:
            return outline
        if not self._looked:
            states = [np.asarray(item.trajectory.states, dtype=np.int64) for item in self._problem.train]
            self._agent, self._looked = find_agent(states), True
        seen = self._agent
        if seen is None or (seen.channel, seen.code) != (agent.channel, agent.code):
            return outline
        return replace(outline, perception=replace(outline.perception, agent=seen))
