"""Table for prompts about grids: for each word, the cell codes near the goal whenever an instruction has the word.
Each cell of a grid has one code in each of three channels. `going_with` does the counting, also for screens.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.propose.tokens import estimate

CHANCE = 0.2
"""Maximum probability that a code is near the goal by chance in all trajectories with a word. Codes with a higher
probability are left out."""

PER_WORD = 3  # maximum number of things (see `Going`) for each word

Thing = TypeVar("Thing", str, tuple[int, int])

_WORD = re.compile(r"\w+")
_CHANNELS = "abc"


Going = dict[str, tuple[int, list[tuple[Thing, int, float]]]]
"""For each word, the number of instructions that have it, and at most `PER_WORD` things that always occur with it.

A thing is a part of the state at the goal: a pair of channel and code in a grid, or a line of a screen. With each thing
come two numbers. One is the number of trajectories that have the thing although their instruction lacks the word. The
other is the probability that all trajectories with the word have the thing by chance. Things with the lowest
probability come first."""


def associations(items: Sequence[Labelled]) -> Going[tuple[int, int]]:
    """Find, for each word that only some instructions have, the codes that are near the goal whenever the word occurs.

    "Near the goal" means in or right beside a cell that the step to the first positive state changed. In a crowded
    grid, the object that the instruction names is most likely there.

    Let q be the share of all trajectories that have the code near the goal. Let n be the number of trajectories whose
    instruction has the word. By chance, all n of them have the code with probability q^n. The codes with the lowest
    probability come first. Words without any code are left out.
    """
    reached = [item for item in items if item.positive.any() and item.trajectory.extra_info]
    texts = [words_of(item.trajectory.extra_info) for item in reached]
    return going_with(texts, [_near_goal(item) for item in reached])


def going_with(texts: Sequence[frozenset[str]], present: Sequence[frozenset[Thing]]) -> Going[Thing]:
    """Find, for each word that only some instructions have, the things that are present whenever the word occurs.

    Args:
        texts: the words of each instruction.
        present: the things at the goal of each instruction's trajectory.
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


def table(items: Sequence[Labelled], tokens: int) -> str:
    """Write the result of `associations` within a token limit; "" if it is empty or the limit is too low.

    Words that are least likely to occur with their codes by chance come first.
    """
    total = sum(bool(item.positive.any() and item.trajectory.extra_info) for item in items)
    lines = [
        "Words and codes, counted over all expert trajectories: codes of channel a, b or c that are near the goal "
        "(in or beside a cell that the step to the positive state changed) in every trajectory with the word, and in "
        "how many of those without it. Counts, no proof:"
    ]
    tokens -= estimate(lines[0])
    for word, (count, codes) in sorted(associations(items).items(), key=lambda entry: (entry[1][1][0][2], entry[0])):
        rest = total - count
        listed = ", ".join(
            f"{_CHANNELS[channel]}={code} (without it {elsewhere} of {rest})" for (channel, code), elsewhere, _ in codes
        )
        line = f"{word} ({count}): {listed}"
        tokens -= estimate(line) + 1
        if tokens < 0:
            break
        lines.append(line)
    return "\n".join(lines) if len(lines) > 1 else ""


def _near_goal(item: Labelled) -> frozenset[tuple[int, int]]:
    """Find the pairs of channel and code near the goal, before and after the step to the first positive state.

    The cells near the goal are those that the step changed, and the cells right beside them.
    """
    states, goal = item.trajectory.states, int(np.flatnonzero(item.positive)[0])
    before, after = states[max(goal - 1, 0)], states[goal]
    near = _grown((before != after).any(axis=2))
    cells = np.concatenate([before[near], after[near]])
    return frozenset((channel, int(code)) for channel in range(3) for code in np.unique(cells[:, channel]))


def _grown(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Extend a mask by the four neighbours of each of its cells."""
    padded = np.pad(mask, 1)
    grown: NDArray[np.bool_] = (
        padded[1:-1, 1:-1] | padded[:-2, 1:-1] | padded[2:, 1:-1] | padded[1:-1, :-2] | padded[1:-1, 2:]
    )
    return grown
