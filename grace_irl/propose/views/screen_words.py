"""Words and numbers of instructions that come back on the screens that reach the goal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from grace_irl.demos.labels import Labelled
from grace_irl.propose.tokens import estimate
from grace_irl.propose.views.outline import Item, Outline, named, quoted
from grace_irl.propose.views.words import going_with, words_of

MAX_TRAJECTORIES = 200
"""Expert trajectories that are looked at; their instructions are compared with each other's screens."""

MOST_PLACES = 8
LEAST_GAP = 0.25  # between how often a place shares words with its own instruction and with other ones
EXAMPLE = 60  # characters of what a place says, and of its instruction


@dataclass(frozen=True)
class Reached:
    """The first positive screen of a trajectory.

    Attributes:
        instruction: of the trajectory.
        words: of the instruction; those that all instructions have are left out, where instructions differ.
        items: what the screen shows and the trajectory's first screen does not; all of it where that is the same.
    """

    instruction: str
    words: frozenset[str]
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Sharing:
    """A place whose text has words or numbers of the instruction.

    Attributes:
        place: the node without its texts, and which of its texts.
        package: of the node.
        own: trajectories whose own instruction shares a word with it.
        other: share of the other trajectories' different instructions that do, on average; 0 to 1.
        example: what it says, once; the words; the instruction.
        name: `Item.name` of the node that says it.
    """

    place: str
    package: str
    own: int
    other: float
    example: tuple[str, tuple[str, ...], str]
    name: str


def reached(items: Sequence[Labelled], outline: Callable[[bytes], Outline]) -> list[Reached]:
    """The trajectories with an instruction and a positive state, evenly drawn where there are many."""
    having = [item for item in items if item.positive.any() and item.trajectory.extra_info]
    having = having[:: max(1, -(-len(having) // MAX_TRAJECTORIES))]
    texts = [frozenset(map(_plain, words_of(item.trajectory.extra_info))) for item in having]
    everywhere = frozenset.intersection(*texts) if len(set(texts)) > 1 else frozenset()
    found = []
    for item, text in zip(having, texts, strict=True):
        states, goal = item.trajectory.states, int(np.flatnonzero(item.positive)[0])
        known = outline(states[0]).keys if goal else frozenset()
        shown = tuple(each for each in outline(states[goal]).items if each.key not in known)
        words = frozenset(word for word in text - everywhere if len(word) > 1 or word.isdigit())
        found.append(Reached(item.trajectory.extra_info, words, shown))
    return found


def sharing(found: Sequence[Reached]) -> list[Sharing]:
    """The places that share words with their own instruction, and seldom with others; best first."""
    said: dict[tuple[str, str], list[dict[str, str]]] = {}
    names: dict[tuple[str, str], str] = {}
    for number, each in enumerate(found):
        for item in each.items:
            for name, text in (("text", item.text), ("desc", item.desc)):
                if text and not (name == "desc" and text == item.text):
                    node = item.written(leave_out=("text", "desc", "hint", "states"))
                    rows = said.setdefault((item.package, f"{node} {name}"), [{} for _ in found])
                    names[item.package, f"{node} {name}"] = item.name
                    for word in words_of(text):
                        rows[number].setdefault(_plain(word), text)
    ranked = []
    for (package, place), rows in said.items():
        common = [each.words & row.keys() for each, row in zip(found, rows, strict=True)]
        own = sum(map(bool, common))
        pairs = [
            bool(other.words & row.keys())
            for number, row in enumerate(rows)
            for other in found
            if row and other.words != found[number].words
        ]
        with_others = sum(pairs) / len(pairs) if pairs else 0.0
        gap = own / len(found) - with_others
        if own and gap >= LEAST_GAP:
            number = max(range(len(found)), key=lambda n: len(common[n]))
            words = tuple(sorted(common[number]))
            example = rows[number][words[0]], words, found[number].instruction
            ranked.append(
                (-gap, -len(words), package, Sharing(place, package, own, with_others, example, names[package, place]))
            )
    ranked.sort(key=lambda entry: (*entry[:3], entry[3].place))
    return [entry[3] for entry in ranked[:MOST_PLACES]]


def words_table(found: Sequence[Reached], places: Sequence[Sharing], tokens: int) -> str:
    """Both tables as text, within so many tokens; "" where nothing is shared, or there is no room."""
    packages = {item.package for each in found for item in each.items}

    def of(package: str) -> str:
        return f" of {named(package)}" if len(packages) > 1 else ""

    shared = [
        f"{each.place}{of(each.package)}: {each.own} of {len(found)}"
        + (f" (with other instructions {each.other:.0%})" if each.other else "")
        + f", such as {quoted(each.example[0], EXAMPLE)} with {', '.join(map(repr, each.example[1]))} of "
        + quoted(each.example[2], EXAMPLE)
        for each in places
    ]
    marked = [frozenset(f"{item.line}{of(item.package)}" for item in each.items if item.stateful) for each in found]
    going = going_with([each.words for each in found], marked) if found else {}
    likely = sorted(going.items(), key=lambda entry: (entry[1][1][0][2], entry[0]))
    states = [
        f"{word!r} ({count}): "
        + ", ".join(f"{line} (without it {elsewhere} of {len(found) - count})" for line, elsewhere, _ in chosen)
        for word, (count, chosen) in likely
    ]
    lines: list[str] = []
    for title, rows in (
        (
            "What shares words or numbers with its instruction on the first positive screen, and is not on the first "
            "screen, counted over the expert trajectories; counts, no proof:",
            shared,
        ),
        ("Nodes in a state of their own that are there whenever the instruction has a word:", states),
    ):
        for row in rows:
            cost = estimate(row) + 1 + (estimate(title) + 1 if title else 0)
            if cost > tokens:
                break
            lines += [title, row] if title else [row]
            title = ""
            tokens -= cost
    return "\n".join(lines)


def _plain(word: str) -> str:
    """Numbers as numbers: 08 is 8."""
    return word.lstrip("0") or "0" if word.isdigit() else word
