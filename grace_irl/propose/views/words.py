"""A table for prompts about grids: for each word of the instructions, the codes that always occur with the word.

Each cell of a grid has one code in each of three channels. `going_with` does the counting, also for screens.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.propose.tokens import estimate
from grace_irl.propose.views.actor import Actor, Code

CHANCE = 0.2
"""Maximum probability that all trajectories with a word have a code by chance. Codes with a higher probability are left
out."""

LEAST = 2
"""Minimum number of trajectories with a word. A single trajectory has many codes that the word does not name."""

PER_WORD = 3  # maximum number of things (see `Going`) for each word

Thing = TypeVar("Thing", str, tuple[int, int])

_WORD = re.compile(r"\w+")
_CHANNELS = "abc"


Going = dict[str, tuple[int, list[tuple[Thing, int, float]]]]
"""For each word, the number of instructions with the word, and at most `PER_WORD` things that always occur with it.

A thing is a part of a state: a pair of channel and code in a grid, or a line of a screen. After each thing come two
numbers: the number of trajectories that have the thing although their instruction lacks the word, and the probability
that all trajectories with the word have the thing by chance. Things with the lowest probability come first."""


@dataclass(frozen=True)
class Without:
    """Cells that the table leaves out, because no instruction names them.

    Attributes:
        actor: the actor, or None if it is not known.
        background: codes of the background, each with the numbers of all three channels.
    """

    actor: Actor | None = None
    background: tuple[Code, ...] = ()

    def others(self, state: NDArray[Any]) -> NDArray[np.bool_]:
        """A mask `(h, w)` of the cells of a state that the table uses."""
        found = np.ones(state.shape[:2], dtype=np.bool_) if self.actor is None else ~self.actor.cells(state)
        for code in self.background:
            found &= (state != np.array(code)).any(axis=2)
        return found


def associations(items: Sequence[Labelled], without: Without = Without()) -> Going[tuple[int, int]]:
    """Find the codes that occur with each word of the instructions.

    These are the codes in the first state of every trajectory whose instruction has the word.

    First states contain the things that the instruction names, also in negative trajectories. So all trajectories
    count, except those with an instruction from another trajectory (`Demonstration.swapped`). Trajectories with equal
    first states and instructions count once. The actor's cell and cells of the background are left out.

    Let q be the share of all trajectories whose first state has the code. Let n be the number of trajectories whose
    instruction has the word. By chance, all n of them have the code with probability q^n. The codes with the lowest
    probability come first. The result omits words without codes, words in fewer than `LEAST` instructions, and words in
    all instructions.
    """
    told = _told(items)
    return _often(told, [_at_first(item, without) for item in told])


def near_goals(items: Sequence[Labelled], without: Without = Without()) -> Going[tuple[int, int]]:
    """Find the codes near the goal that occur with each word, for words that only some instructions have.

    "Near the goal" means in or right beside a cell that the step to the first positive state changes. In a crowded
    grid, first states have nearly all codes, but the object that the instruction names is most likely near the goal.
    The counts are as in `associations`, but over expert trajectories only. A code is kept only if it is in the first
    state of every trajectory whose instruction has the word.
    """
    told = _told(items)
    first = _shared(told, without)
    reached = [item for item in told if item.positive.any()]
    found = _often(reached, [_near_goal(item, without) for item in reached])
    kept = {word: (count, [each for each in codes if each[0] in first[word]]) for word, (count, codes) in found.items()}
    return {word: entry for word, entry in kept.items() if entry[1]}


def _often(items: Sequence[Labelled], present: Sequence[frozenset[tuple[int, int]]]) -> Going[tuple[int, int]]:
    """The result of `going_with` for the words of at least `LEAST` trajectories."""
    found = going_with([words_of(item.trajectory.extra_info) for item in items], present)
    return {word: entry for word, entry in found.items() if entry[0] >= LEAST}


def _shared(items: Sequence[Labelled], without: Without) -> dict[str, frozenset[tuple[int, int]]]:
    """Map from each word to the codes in the first state of every trajectory whose instruction has the word."""
    found: dict[str, frozenset[tuple[int, int]]] = {}
    for item in items:
        present = _at_first(item, without)
        for word in words_of(item.trajectory.extra_info):
            found[word] = found.get(word, present) & present
    return found


def going_with(texts: Sequence[frozenset[str]], present: Sequence[frozenset[Thing]]) -> Going[Thing]:
    """Find the things that are present whenever a word occurs, for each word that only some instructions have.

    Args:
        texts: the words of each instruction.
        present: for each instruction, the things in the state that belongs to it.
    """
    counts = Counter(thing for each in present for thing in each)
    found: Going[Thing] = {}
    for word in sorted(frozenset[str]().union(*texts)):
        having = [n for n, text in enumerate(texts) if word in text]
        if len(having) == len(texts):
            continue
        chosen = [
            (thing, counts[thing] - len(having), (counts[thing] / len(texts)) ** len(having))
            for thing in frozenset.intersection(*(present[n] for n in having))
            if counts[thing] < len(texts)
        ]
        chosen = sorted((each for each in chosen if each[2] <= CHANCE), key=lambda each: (each[2], each[0]))
        if chosen:
            found[word] = len(having), chosen[:PER_WORD]
    return found


def words_of(text: str) -> frozenset[str]:
    """The words and numbers of a text, in lower case."""
    return frozenset(_WORD.findall(text.lower()))


def table(items: Sequence[Labelled], tokens: int, without: Without = Without()) -> str:
    """Write the result of `associations`, then the result of `near_goals` for all other words, within a token limit.

    Words whose codes are least probable by chance come first. The text is "" if there are no words, or if the limit is
    too low. If any trajectory has only positive states, the result of `near_goals` is left out, because no step leads
    to the goal.
    """
    told = _told(items)
    aside = " (without the actor and the background)" if without.actor else ""
    first = associations(items, without)
    every = any(item.positive.all() and len(item.positive) > 1 for item in items)
    near = {} if every else {word: entry for word, entry in near_goals(items, without).items() if word not in first}
    lines: list[str] = []
    for title, found, total in (
        (
            f"Words and codes: codes of channel a, b or c in the first state of every trajectory with the word{aside}, "
            "and how many others have them. Counts, no proof:",
            first,
            len(told),
        ),
        (
            f"{'Words that this does not tell' if first else 'Words and codes'}: codes of channel a, b or c near the "
            "goal (in or beside a cell that the step to the positive state changed) of every expert with the word"
            f"{'' if first else aside}, and how many others have them. Counts, no proof:",
            near,
            sum(bool(item.positive.any()) for item in told),
        ),
    ):
        for number, (word, (count, codes)) in enumerate(sorted(found.items(), key=_likely)):
            listed = ", ".join(
                f"{_CHANNELS[channel]}={code} (without it {elsewhere} of {total - count})"
                for (channel, code), elsewhere, _ in codes
            )
            rows = [*([] if number else [title]), f"{word} ({count}): {listed}"]
            tokens -= sum(estimate(row) + 1 for row in rows)
            if tokens < 0:
                return "\n".join(lines)
            lines += rows
    return "\n".join(lines)


def _likely(entry: tuple[str, tuple[int, list[tuple[tuple[int, int], int, float]]]]) -> tuple[float, str]:
    """The sort key of a word: the probability of its first code, and the word."""
    return entry[1][1][0][2], entry[0]


def _told(items: Sequence[Labelled]) -> list[Labelled]:
    """The trajectories with an instruction of their own, one for each pair of first state and instruction."""
    found: dict[tuple[str, bytes], Labelled] = {}
    for item in sorted(items, key=lambda item: not item.positive.any()):  # experts first
        if item.trajectory.extra_info and not item.demonstration.swapped:
            found.setdefault((item.trajectory.extra_info, item.trajectory.states[0].tobytes()), item)
    return list(found.values())


def _at_first(item: Labelled, without: Without) -> frozenset[tuple[int, int]]:
    """Find the pairs of channel and code in the first state."""
    state = item.trajectory.states[0]
    return _pairs(state[without.others(state)])


def _near_goal(item: Labelled, without: Without) -> frozenset[tuple[int, int]]:
    """Find the pairs of channel and code near the goal, before and after the step to the first positive state.

    The cells near the goal are those that the step changed, and the cells right beside them.
    """
    states, goal = item.trajectory.states, int(np.flatnonzero(item.positive)[0])
    before, after = states[max(goal - 1, 0)], states[goal]
    near = _grown((before != after).any(axis=2))
    return _pairs(np.concatenate([state[near & without.others(state)] for state in (before, after)]))


def _pairs(cells: NDArray[Any]) -> frozenset[tuple[int, int]]:
    return frozenset((channel, int(code)) for channel in range(3) for code in np.unique(cells[:, channel]))


def _grown(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Extend a mask by the four neighbours of each of its cells."""
    padded = np.pad(mask, 1)
    grown: NDArray[np.bool_] = (
        padded[1:-1, 1:-1] | padded[:-2, 1:-1] | padded[2:, 1:-1] | padded[1:-1, :-2] | padded[1:-1, 2:]
    )
    return grown
