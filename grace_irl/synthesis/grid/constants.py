"""The constants of a reward program: what its tables say, one table per kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from grace_irl.synthesis.grid.meaning import Arrangement, Feature, Filter
from grace_irl.synthesis.grid.outline import Outline
from grace_irl.synthesis.grid.progress import Shaping
from grace_irl.synthesis.grid.scene import EVENTS, SIDES
from grace_irl.synthesis.quote import packed, quoted

WIDTH, MAX_WIDTH = 100, 120
"""Characters that a line is broken at, and of the longest that is left whole."""
KEYS: dict[Feature, str] = {"channel 0": "0", "channel 1": "1", "channel 2": "2"}
"""How a feature is written in the program, where that is not its name in quotes."""
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


def write_constants(outline: Outline, shaping: Shaping | None) -> list[str]:
    """The lines that define them."""
    agent = outline.perception.agent
    lines = []
    if agent is not None:
        lines.append(f"AGENT = ({agent.channel}, {agent.code})  # the channel and code of the one thing that moves")
        if agent.heading_channel is not None and (
            "faced" in outline.events or outline.sides or (shaping is not None and shaping.ahead)
        ):
            ahead = ", ".join(f"{code}: {offset}" for code, offset in agent.headings)
            lines.append(f"AHEAD = {{{ahead}}}  # channel {agent.heading_channel} of its cell: one step ahead")
    lines.append(f"BACKGROUND = {outline.perception.background}  # cells without a thing")
    if shaping:
        lines.append(f"NEAR = {shaping.near}  # the most that progress is worth: less than any goal")
    if outline.always:
        entries = [f"{_key(f.feature)}: {_value(f)}" for f in outline.always]
        lines += _packed("ALWAYS = {", entries, "}", "what the thing has to be, whatever the instruction says")
    if outline.phrases:
        lines += _packed("PHRASES = [", map(quoted, outline.phrases), "]", "words that are read as one")
    lines += [
        f"{name} = {{{', '.join(map(quoted, words))}}}  # {about}"
        for name, arrangement, about in PARTING
        if (words := outline.plan.of(arrangement))
    ]
    if outline.sure:
        lines += ["# What a word says about a thing: by feature, the values of which it must have one."]
        lines += _dictionary("WORDS", outline.sure)
    if outline.guessed:
        lines += ["# What a word may well say, as far as the demonstrations show."]
        lines += _dictionary("GUESSES", outline.guessed)
    if outline.novel != "ignore":
        lines += _names(outline)
    return lines


def _names(outline: Outline) -> list[str]:
    """Everything that has a name, for words that were never seen before."""
    lines = []
    if not outline.guessed or not outline.sure:
        lines.append(f"NAMES = {'WORDS' if outline.sure else 'GUESSES'}")
    elif set(outline.sure) & set(outline.guessed):
        lines.append("NAMES = {f: {**GUESSES.get(f, {}), **WORDS.get(f, {})} for f in {**GUESSES, **WORDS}}")
    else:
        lines.append("NAMES = {**GUESSES, **WORDS}")
    if not outline.plain:
        return [*lines, "PLAIN = set()  # words that say nothing about a thing"]
    return [*lines, *_packed("PLAIN = {", map(quoted, outline.plain), "}", "words that say nothing about a thing")]


def _key(feature: Feature) -> str:
    return KEYS.get(feature, f'"{feature}"')


def _value(f: Filter) -> str:
    if f.feature == "event":
        return f'"{EVENTS[f.value]}"'
    return f'"{SIDES[f.value]}"' if f.feature == "side" else str(f.value)


def _packed(head: str, entries: Iterable[str], tail: str, comment: str) -> list[str]:
    """A collection, on one line where it fits."""
    entries = list(entries)
    short = f"{head}{', '.join(entries)}{tail}  # {comment}"
    return [short] if len(short) <= MAX_WIDTH else [f"{head}  # {comment}", *packed(entries, WIDTH), tail]


def _dictionary(name: str, by_feature: Mapping[Feature, Mapping[str, tuple[Filter, ...]]]) -> list[str]:
    lines = [f"{name} = {{"]
    for feature, words in sorted(by_feature.items()):
        lines.append(f"    {_key(feature)}: {{  # {SAYS[feature]}")
        for word, filters in sorted(words.items()):
            lines.append(f"        {quoted(word)}: {{{', '.join(map(_value, filters))}}},")
        lines.append("    },")
    return [*lines, "}"]
