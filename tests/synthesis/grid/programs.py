"""Programs of small hypotheses, and what they pay on one small world."""

from __future__ import annotations

from grace_irl.programs.check import read
from grace_irl.synthesis.grid.meaning import Arrangement, Filter, Hypothesis
from grace_irl.synthesis.grid.scene import EVENTS, Agent, Perception
from grace_irl.synthesis.grid.source import write_source
from tests.synthesis.worlds import AGENT, FLOOR, HEADINGS, WALL, World, rewards, thing

VOCABULARY = ("zek", "gax", "mip", "tro", "fen", "up", "pick")
ARRANGEMENTS: tuple[Arrangement, ...] = ("then", "after", "both", "beside")

PERCEPTION = Perception(Agent(0, AGENT, 2, tuple(sorted(HEADINGS.items()))), (FLOOR, WALL))
FACED, TAKEN, CHANGED = (Filter("event", EVENTS.index(name)) for name in ("faced", "taken", "changed"))
BALL, KEY, RED, BLUE = (
    Filter("channel 0", 14),
    Filter("channel 0", 30),
    Filter("channel 1", 11),
    Filter("channel 1", 17),
)

NEAR = World((6, 8), (2, 2), 40, {(2, 4): thing("red", "ball"), (3, 3): thing("blue", "key")})
"""Faced in turn: nothing; the red ball, in states 1; nothing, the blue key, in states 2 and 3."""
WALK = NEAR.act("forward", "right", "left")

SURE_BALL, SURE_KEY, MAYBE_RED = ("mip", (BALL,)), ("tro", (KEY,)), ("gax", (RED,))
STEPS = (("mip", (BALL,)), ("tro", (KEY,)))
GUESS = (("gax", (RED,)), ("wog", (BLUE,)))


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


def earned(
    hypothesis: Hypothesis, instruction: str = "", world: World = WALK, words: str = "", phrases: tuple[str, ...] = ()
) -> list[float]:
    """The rewards of one world under an instruction; `words` and `phrases` were known in training."""
    source = checked(write_source(hypothesis, PERCEPTION, [*words.split(), *phrases], phrases))
    return rewards(source, world.stack(), instruction).tolist()
