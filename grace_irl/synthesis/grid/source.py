"""Reward programs for grids, as people read them: the facts of an outline, put into `templates/grid.py.j2`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Literal

from grace_irl.propose.templates import written
from grace_irl.synthesis.grid.meaning import STATIC, Arrangement, Feature, Filter, Hypothesis, Outline, summary
from grace_irl.synthesis.grid.scene import Perception
from grace_irl.text import packed, quoted

Form = Literal["steps", "half steps", "inverse"]
FORMS: tuple[Form, ...] = ("steps", "half steps", "inverse")
WEIGHTS = (0.4, 0.2, 0.1)
"""Of progress: all less than the 0.5 that a guess earns, the least that a program pays for a goal."""


@dataclass(frozen=True)
class Shaping:
    """The measure of nearness, and its worth.

    Attributes:
        near: the most that progress is worth.
        form: nearness n steps away from a thing, on a grid of h rows and w columns: "steps" is 1 - n / (h + w);
            "half steps" the same, counted from halfway to the cell ahead of the agent, so that a turn counts, too;
            "inverse" is 1 / (1 + n), which falls off fast.
    """

    near: float
    form: Form

    @property
    def ahead(self) -> bool:
        """Whether the agent's heading counts."""
        return self.form == "half steps"


def shapings(headed: bool) -> tuple[Shaping, ...]:
    """All of them, in the order of trying.

    Args:
        headed: whether the agent has a heading.
    """
    known = [Shaping(near, form) for near in WEIGHTS for form in FORMS]
    return tuple(one for one in known if headed or not one.ahead)


WIDTH, MAX_WIDTH = 100, 120
"""Characters that a line is broken at, and of the longest that is left whole."""
KEYS: dict[Feature, str] = {"channel 0": "0", "channel 1": "1", "channel 2": "2"}
"""The spelling of a feature in the program, if that is not its name in quotes."""
SAYS: dict[Feature, str] = {
    "event": "what happens to the thing",
    "channel 0": "channel 0 of its code",
    "channel 1": "channel 1 of its code",
    "channel 2": "channel 2 of its code",
    "side": "where it lies, seen from the agent's first cell and heading",
}
PARTING: tuple[tuple[str, Arrangement, str], ...] = (
    ("THEN", "then", "words between steps: what stands before is done first"),
    ("AFTER", "after", "words between steps: what stands behind is done first"),
    ("BOTH", "both", "words between steps that may be done in any order"),
    ("BESIDE", "beside", "words between a thing and the one beside it"),
)
"""Sets of separating words, by what they do."""
BRANCHES = {
    "taken": ("is_thing(old) and not is_thing(new)", "old"),
    "changed": ("is_thing(old) and is_thing(new)", "new"),
    "placed": ("is_thing(new) and not is_thing(old)", "new"),
}
"""Events between two states: the condition on a cell, and the code that is the thing's."""
STEPS = {
    (False, False): "[words]",
    (False, True): "[cut(words, BESIDE)]",
    (True, False): "cut(words, BOTH)",
    (True, True): "[cut(step, BESIDE) for step in cut(words, BOTH)]",
}
"""The steps of a stage, from its words: by whether they are cut at BOTH, and at BESIDE."""
VERBS = {"faced": "face", "taken": "take", "changed": "change", "placed": "put down", "entered": "enter"}


def write_source(
    hypothesis: Hypothesis, perception: Perception, vocabulary: Sequence[str], phrases: Sequence[str] = ()
) -> str:
    """The program of a hypothesis.

    Args:
        vocabulary: every word and phrase that the training instructions used.
        phrases: words that are read as one.
    """
    return write_program(Outline.of(hypothesis, perception, vocabulary, phrases), summary(hypothesis))


def write_program(outline: Outline, happens: str, shaping: Shaping | None = None) -> str:
    """The program of an outline. It holds nothing that the outline does not need.

    Args:
        happens: the condition of 1.0, as half a sentence.
        shaping: how it pays for progress; None if it pays for goals alone.
    """
    elsewhere = "0.0 elsewhere"
    if shaping:
        more = "the more steps are done and the nearer the agent is to the next"
        elsewhere = f"elsewhere up to {shaping.near}, {more if outline.plan.steps else 'the nearer the agent is to it'}"
    about = fill(f"Reward 1.0 where {happens}; {elsewhere}.", WIDTH)
    values = _values(outline) | {"about": f"{about}\n" if "\n" in about else about, "shaping": shaping}
    return written("grace_irl.synthesis", "grid.py.j2", values)


def _values(o: Outline) -> dict[str, Any]:
    """The values of the templates: the outline, what follows from it, tables, and functions that write tables."""
    plan, agent, events = o.plan, o.perception.agent, set(o.events)
    faced, entered = ["faced(state)"] * ("faced" in events), ["entered(self.first, state)"] * ("entered" in events)
    kept = "stages" if plan.steps else "parts" if plan.beside else "words"
    return {
        "o": o,
        "agent": agent,
        "heading": agent.heading_channel if agent else None,
        "sources": [*faced, *["differences(before, state)"] * bool(events & set(BRANCHES)), *entered],
        "seen": [*faced, *entered],
        "graded": bool(o.guessed) or o.novel == "guess",  # things can fit by half
        "moving": events != {"entered"},  # the present places of things matter
        "from_start": bool(events & {"placed", "entered"}),  # so do those at the start
        "ordered": plan.of("then", "after"),
        "steps": STEPS[bool(plan.of("both")), plan.beside],
        "words": "words, " if o.described else "",
        "described_by": "self.parts" if plan.beside else "self.words",
        "said": f"{{self.{kept}}}: " if o.instructed else "",
        "verb": VERBS[o.events[0]] if len(o.events) == 1 else "do something with",
        "verbs": [f'{name}["event"]' for name, of in (("WORDS", o.sure), ("GUESSES", o.guessed)) if "event" in of],
        "always": [f"{_key(f.feature)}: {_value(f)}" for f in o.always],
        "BRANCHES": BRANCHES,
        "PARTING": PARTING,
        "SAYS": SAYS,
        "STATIC": STATIC,
        "key": _key,
        "either": _either,
        "quoted": quoted,
        "texts": _texts,
        "collection": _collection,
    }


def _key(feature: Feature) -> str:
    return KEYS.get(feature, f'"{feature}"')


def _value(f: Filter) -> str:
    return f'"{f}"' if f.feature in ("event", "side") else str(f.value)


def _either(filters: Iterable[Filter]) -> str:
    return f"{{{', '.join(map(_value, filters))}}}"


def _texts(words: Iterable[str]) -> list[str]:
    return list(map(quoted, words))


def _collection(name: str, brackets: str, entries: Sequence[str], comment: str) -> str:
    """A collection, on one line if it fits."""
    head, tail = f"{name} = {brackets[0]}", brackets[1]
    short = f"{head}{', '.join(entries)}{tail}  # {comment}"
    return short if len(short) <= MAX_WIDTH else "\n".join([f"{head}  # {comment}", *packed(entries, WIDTH), tail])
