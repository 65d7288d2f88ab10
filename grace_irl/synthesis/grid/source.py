"""The writer of reward programs for grids, from an `Outline` of their contents and `templates/grid.py.j2`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Literal

from grace_irl.propose.templates import written
from grace_irl.synthesis.grid.meaning import (
    ENCLOSED,
    SHARED,
    STATIC,
    Arrangement,
    Feature,
    Filter,
    Hypothesis,
    Outline,
    summary,
)
from grace_irl.synthesis.grid.scene import Perception
from grace_irl.text import packed, quoted

Form = Literal["steps", "half steps", "inverse"]
FORMS: tuple[Form, ...] = ("steps", "half steps", "inverse")
WEIGHTS = (0.4, 0.2, 0.1)
"""Maximum rewards for progress. All are below 0.5, the lowest reward above 0 that an event can earn."""


@dataclass(frozen=True)
class Shaping:
    """The rewards for progress toward the event, by the nearness of the agent to the thing of the event.

    Attributes:
        near: maximum reward for progress.
        form: formula of the nearness, for n steps to the thing on a grid of h rows and w columns. "steps" is
            1 - n / (h + w). "half steps" has the same formula, but counts n from a point halfway to the cell ahead of
            the agent, so n changes if the agent turns. "inverse" is 1 / (1 + n), which decreases quickly.
    """

    near: float
    form: Form

    @property
    def ahead(self) -> bool:
        """Whether the formula uses the agent's heading."""
        return self.form == "half steps"


def shapings(headed: bool) -> tuple[Shaping, ...]:
    """All shapings that are possible, in the order of version numbers.

    Args:
        headed: whether the agent has a heading. Without a heading, the form "half steps" is left out.
    """
    known = [Shaping(near, form) for near in WEIGHTS for form in FORMS]
    return tuple(one for one in known if headed or not one.ahead)


WIDTH, MAX_WIDTH = 100, 120
"""`WIDTH` is the width in characters at which lines of a program are broken. A set, list or dictionary may be on one
line of at most `MAX_WIDTH` characters."""
KEYS: dict[Feature, str] = {"channel 0": "0", "channel 1": "1", "channel 2": "2"}
"""Keys of features in the program. Other features have their name in quotes as the key."""
SAYS: dict[Feature, str] = {
    "event": "what happens to the thing",
    "channel 0": "channel 0 of its code",
    "channel 1": "channel 1 of its code",
    "channel 2": "channel 2 of its code",
    "side": "where it lies, seen from the agent's first cell and heading",
    "half": "the half of the grid in which it lies",
    "shared 0": "channel 1 of the others at the start with its channel 0",
    "shared 1": "channel 0 of the others at the start with its channel 1",
}
PARTING: tuple[tuple[str, Arrangement, str], ...] = (
    ("THEN", "then", "words between steps: what stands before is done first"),
    ("AFTER", "after", "words between steps: what stands behind is done first"),
    ("BOTH", "both", "words between steps that may be done in any order"),
    ("BESIDE", "beside", "words between a thing and the one beside it"),
)
"""For each arrangement of separators (words at which instructions are split, see `Plan`), the name of their set in the
program, the arrangement, and the comment in the program."""
BRANCHES = {
    "taken": ("is_thing(old) and not is_thing(new)", "old"),
    "changed": ("is_thing(old) and is_thing(new)", "new"),
    "placed": ("is_thing(new) and not is_thing(old)", "new"),
}
"""For each event that changes a cell: Python for the event's condition, and the variable with the thing's code."""
STEPS = {
    (False, False): "[words]",
    (False, True): "[cut(words, BESIDE)]",
    (True, False): "cut(words, BOTH)",
    (True, True): "[cut(step, BESIDE) for step in cut(words, BOTH)]",
}
"""Python that splits the words of a stage into its steps. The first value of a key is whether the plan has words in
BOTH, the second is whether it has words in BESIDE."""
VERBS = {"faced": "face", "taken": "take", "changed": "change", "placed": "put down", "entered": "enter"}


def write_source(
    hypothesis: Hypothesis, perception: Perception, vocabulary: Sequence[str], phrases: Sequence[str] = ()
) -> str:
    """Write the program of a hypothesis.

    Args:
        hypothesis: the interpretation of the instructions.
        perception: the agent and the background, which all trajectories share.
        vocabulary: all words and phrases of the training instructions.
        phrases: groups of words that are read as one word.
    """
    return write_program(Outline.of(hypothesis, perception, vocabulary, phrases), summary(hypothesis))


def write_program(outline: Outline, happens: str, shaping: Shaping | None = None) -> str:
    """Write the program of an outline. Parts that the outline does not need are left out.

    Args:
        outline: the contents of the program.
        happens: the condition of reward 1.0, such as "the agent faces a thing".
        shaping: the formula of the rewards for progress; None for rewards at goals only.
    """
    elsewhere = "0.0 elsewhere"
    if shaping:
        more = "the more steps are done and the nearer the agent is to the next"
        elsewhere = f"elsewhere up to {shaping.near}, {more if outline.plan.steps else 'the nearer the agent is to it'}"
    about = fill(f"Reward 1.0 where {happens}; {elsewhere}.", WIDTH)
    values = _values(outline) | {"about": f"{about}\n" if "\n" in about else about, "shaping": shaping}
    return written("grace_irl.synthesis", "grid.py.j2", values)


def _values(o: Outline) -> dict[str, Any]:
    """Variables of the template: the outline, values derived from it, tables, and functions that write tables."""
    plan, agent, events = o.plan, o.perception.agent, set(o.events)
    faced, entered = ["faced(state)"] * ("faced" in events), ["entered(self.first, state)"] * ("entered" in events)
    kept = "stages" if plan.steps else "parts" if plan.beside else "words"
    return {
        "o": o,
        "agent": agent,
        "heading": agent.heading_channel if agent else None,
        "sources": [*faced, *["differences(before, state)"] * bool(events & set(BRANCHES)), *entered],
        "seen": [*faced, *entered],
        "graded": bool(o.guessed) or o.novel == "guess",  # whether things can earn half the reward
        "moving": events != {"entered"},  # whether the current cells of things matter
        "from_start": bool(events & {"placed", "entered"}),  # whether the cells of things at the start matter
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
        "SHARED": SHARED,
        "ENCLOSED": ENCLOSED,
        "key": _key,
        "either": _either,
        "slots": [
            (name, where, [f"{quoted(word)}: {KEYS[feature]}" for word, feature in pairs])
            for name, where, pairs in (("NEW_BEFORE", "before", o.slots.before), ("NEW_AFTER", "behind", o.slots.after))
        ],
        "unshown": [
            f"{quoted(word)}: {{{', '.join(KEYS[feature] for feature in features)}}}"
            for word, features in o.slots.unshown
        ],
        "quoted": quoted,
        "texts": _texts,
        "collection": _collection,
    }


def _key(feature: Feature) -> str:
    return KEYS.get(feature, f'"{feature}"')


def _value(f: Filter) -> str:
    return f'"{f}"' if f.feature in ("event", "side", "half") else str(f.value)


def _either(filters: Iterable[Filter]) -> str:
    return f"{{{', '.join(map(_value, filters))}}}"


def _texts(words: Iterable[str]) -> list[str]:
    return list(map(quoted, words))


def _collection(name: str, brackets: str, entries: Sequence[str], comment: str) -> str:
    """Python of a collection, on one line if it fits."""
    head, tail = f"{name} = {brackets[0]}", brackets[1]
    short = f"{head}{', '.join(entries)}{tail}  # {comment}"
    return short if len(short) <= MAX_WIDTH else "\n".join([f"{head}  # {comment}", *packed(entries, WIDTH), tail])
