"""A summary, in words, of what a program watches for."""

from __future__ import annotations

from grace_irl.synthesis.grid.meaning import Hypothesis
from grace_irl.synthesis.grid.scene import EVENTS

HAPPENS = {
    "faced": "the agent faces {thing}",
    "taken": "{thing} has just gone from its cell",
    "changed": "{thing} has just changed in its cell",
    "placed": "{thing} has just come to a cell",
    "entered": "the agent stands where {thing} was at the start",
}


def summary(hypothesis: Hypothesis) -> str:
    """What the program watches for, as half a sentence."""
    usual = {f.feature: f for f in hypothesis.constants}
    verbs = [f for _, filters in (*hypothesis.meanings, *hypothesis.guesses) for f in filters if f.feature == "event"]
    events = {EVENTS[f.value] for f in [usual["event"], *verbs]}
    if hypothesis.meanings or hypothesis.guesses:
        thing = "the thing that the instruction describes"
    else:
        kinds = [str(f) for name, f in sorted(usual.items()) if name != "event"]
        thing = f"a thing with {' and '.join(kinds)}" if kinds else "a thing"
    if len(events) > 1:
        text = f"what the instruction says has just happened to {thing}"
    else:
        text = HAPPENS[events.pop()].format(thing=thing)
    if hypothesis.plan.beside:
        text += ", beside the other thing that it describes"
    if hypothesis.plan.steps:
        text += ", as the last step of the instruction"
    return text
