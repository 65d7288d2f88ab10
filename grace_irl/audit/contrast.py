"""Contrast: whether a reward follows the instruction, measured by exchanging the instructions of expert episodes.

A reward *pays* a state if its value for this state is above a threshold. A *swap* is an expert episode with another
instruction. Under the other instruction, the reward should no longer pay the episode's goal, unless the episode fulfils
the other instruction as well. A simulator can decide whether an episode fulfils an instruction. If no simulator can
decide, the swap is doubtful.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Trajectory
from grace_irl.evaluate.episodes import share
from grace_irl.evaluate.separation import Measurement

RunProgram = Callable[[Sequence[Trajectory]], Sequence[NDArray[np.float64]]]
"""A function that runs a program on trajectories. It returns the rewards along each trajectory, `(T+1,)`."""

Judge = Callable[[Trajectory, Sequence[str], int], Sequence[bool | None]]
"""A function that decides which instructions an episode fulfils at or before a given state.

Its arguments are the episode, the instructions and the index of the state. It returns one result per instruction. A
result is None if the function cannot decide."""

MOST_INSTRUCTIONS = 12
"""Maximum number of other instructions that an episode gets."""
MOST_STATES = 10_000
"""Approximate maximum of the states on which a program runs in one call of `swaps`.

Episodes beyond it are left out. The first `LEAST` episodes always run, with fewer instructions if they are long, but at
least one."""
LEAST = 3
"""Number of expert episodes that are always examined."""
EXCHANGED = 5
"""Maximum number of words that `by_word` tries in place of one word of an instruction."""


@dataclass(frozen=True)
class Swap:
    """An expert episode with another instruction.

    Attributes:
        item: the episode, with its own instruction.
        instruction: the other instruction.
        fulfilled: whether the episode fulfils the other instruction as well; None if no simulator can decide.
        paid: whether the reward pays a goal of the episode under the other instruction.
        paid_by_then: whether the reward pays the goal or an earlier state of the episode under the other instruction.
    """

    item: Labelled
    instruction: str
    fulfilled: bool | None
    paid: bool
    paid_by_then: bool

    @property
    def word(self) -> str:
        """The first word at which the own instruction differs from the other instruction; "" if there is none."""
        pairs = zip(self.item.trajectory.extra_info.split(), self.instruction.split(), strict=False)
        return next((own for own, other in pairs if own != other), "")


@dataclass(frozen=True)
class Contrast:
    """The result of giving expert episodes the instructions of other experts.

    Attributes:
        unpaid: share of an expert's swaps in which the goal is no longer paid, averaged over experts; None if no swap
            counts. A swap counts if a simulator decides that the episode does not fulfil the other instruction.
        experts: number of expert episodes with a swap that counts.
        swaps: number of swaps that count.
        doubtful: number of swaps that no simulator can judge.
        doubtful_paid: number of doubtful swaps in which the goal is still paid.
        ignored: words without effect on the reward: at least three experts have a swap of the word, and the goal is
            still paid in all swaps of the word. Swaps do not count if the episode fulfils the new instruction.
    """

    unpaid: Measurement | None
    experts: int
    swaps: int
    doubtful: int
    doubtful_paid: int
    ignored: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The contrast as one line for the terminal."""
        if self.unpaid is None:
            if not self.doubtful:
                return "contrast: unknown; no expert was examined with an instruction that the episode does not fulfil"
            still = f"in {self.doubtful_paid} of these swaps, the goal is still paid"
            return f"contrast: unknown; no simulator can judge {self.doubtful} swaps of instructions ({still})"
        left = f"; {self.doubtful} doubtful swaps left out" if self.doubtful else ""
        return (
            f"contrast: {self.unpaid} of the swaps of instructions leave a goal unpaid "
            f"({self.experts} experts, {self.swaps} swaps{left})"
        )


def by_instruction(items: Sequence[Labelled]) -> dict[tuple[str, str], list[str]]:
    """Map from a task and an expert's instruction to other instructions of the task's experts.

    Each instruction gets at most `MOST_INSTRUCTIONS` others, at equal steps through the sorted instructions.
    """
    by_task: dict[str, set[str]] = {}
    for item in items:
        if item.demonstration.role == "expert":
            by_task.setdefault(item.task, set()).add(item.trajectory.extra_info)
    found = {}
    for task, texts in by_task.items():
        ordered = sorted(texts)
        for place, own in enumerate(ordered):
            rest = ordered[place + 1 :] + ordered[:place]  # start after the own text, so that no text is preferred
            found[task, own] = sampled(rest)
    return found


def sampled(texts: list[str]) -> list[str]:
    """At most `MOST_INSTRUCTIONS` of these instructions, at equal steps."""
    return texts[:: -(-len(texts) // MOST_INSTRUCTIONS) or 1]


def by_word(items: Sequence[Labelled]) -> dict[tuple[str, str], list[str]]:
    """Map from a task and an instruction to copies of the instruction with one word replaced.

    At most `EXCHANGED` peers (`_peers`) replace each word. A copy contains a peer at most as often as one of the task's
    instructions does. Example: in "the box and the box behind the ball", "and" and "behind" are peers. But there is no
    copy with two "and", unless an instruction of the task has two.
    """
    found = {}
    for task, texts in _texts(items).items():
        peers = _peers(texts)
        most: Counter[str] = Counter()
        for words in texts:
            most |= Counter(words)
        for words in texts:
            made = []
            for place, window in enumerate(_windows(words)):
                others = {peer for peer in peers(window) if words.count(peer) < most[peer]} - {words[place]}
                for other in sorted(others)[:EXCHANGED]:
                    made.append(" ".join((*words[:place], other, *words[place + 1 :])))
            found[task, " ".join(words)] = made
    return found


def by_end(items: Sequence[Labelled]) -> dict[tuple[str, str], list[str]]:
    """Map from a task and an instruction to copies of the instruction with another end.

    An end consists of all words behind a word, perhaps none. A word gets the ends of its peers (`_peers`) instead of
    its own end, if one of the peers' ends is empty. Example: the instructions are "pick up a ball", "pick up a key" and
    "pick up a key on your left". "ball" and "key" are peers, so one copy is "pick up a ball on your left". In this way,
    all experts test a phrase that only few instructions contain. The result has at most `MOST_INSTRUCTIONS` copies of
    each instruction, taken at equal steps from the sorted copies.
    """
    found = {}
    for task, texts in _texts(items).items():
        peers = _peers(texts)
        ends: dict[str, set[tuple[str, ...]]] = {}
        for words in texts:
            for place, word in enumerate(words):
                ends.setdefault(word, set()).add(words[place + 1 :])
        for words in texts:
            made: set[tuple[str, ...]] = set()
            for place, window in enumerate(_windows(words)):
                following = set().union(*(ends[other] for other in peers(window)))
                start = words[: place + 1]
                made |= {(*start, *end) for end in following if () in following and not (end and _ends(start, end))}
            found[task, " ".join(words)] = sampled(sorted(map(" ".join, made - {words})))
    return found


def _ends(words: tuple[str, ...], end: tuple[str, ...]) -> bool:
    """Whether the words end with `end`."""
    return words[-len(end) :] == end


def _texts(items: Sequence[Labelled]) -> dict[str, set[tuple[str, ...]]]:
    """The instructions of each task, as tuples of words."""
    by_task: dict[str, set[tuple[str, ...]]] = {}
    for item in items:
        by_task.setdefault(item.task, set()).add(tuple(item.trajectory.extra_info.split()))
    return by_task


def _peers(texts: Iterable[tuple[str, ...]]) -> Callable[[tuple[str, str, str]], set[str]]:
    """A function from a window (`_windows`) to the peers of its middle word.

    A peer is a word that directly follows the window's first word in some instruction, and directly precedes the
    window's last word in the same or another instruction.
    """
    behind: dict[str, set[str]] = {}
    ahead: dict[str, set[str]] = {}
    for words in texts:
        for before, word, after in _windows(words):
            behind.setdefault(before, set()).add(word)
            ahead.setdefault(after, set()).add(word)
    return lambda window: behind[window[0]] & ahead[window[2]]


def _windows(words: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """Triples of a preceding word, a word and a following word; "" replaces a word that does not exist."""
    padded = ("", *words, "")
    return zip(padded, words, padded[2:], strict=False)  # none for an empty instruction


def swaps(
    experts: Sequence[Labelled],
    instructions: dict[tuple[str, str], list[str]],
    threshold: float,
    run: RunProgram,
    judge: Judge | None,
    least: float = 0.0,
) -> list[Swap]:
    """Give expert episodes other instructions, and determine which goals the reward still pays.

    Args:
        experts: expert episodes whose goals are paid under their own instruction.
        instructions: the other instructions by task and own instruction (`by_instruction`, `by_word`, `by_end`).
        threshold: reward above which a state is paid.
        run: function that runs the program.
        judge: function that decides which other instructions an episode fulfils; None without a simulator.
        least: a goal counts as paid if the reward pays more than this share of the expert's positive states.
    """
    chosen: list[tuple[Labelled, list[str]]] = []
    states = 0
    for item in experts:
        own = item.trajectory.extra_info
        given = instructions.get((item.task, own)) or instructions.get((item.task, " ".join(own.split())), [])
        length = len(item.trajectory.states)
        if len(chosen) < LEAST:
            most = max(1, MOST_STATES // (LEAST * length))
            given = given[:: -(-len(given) // most) or 1]
        if given and (len(chosen) < LEAST or states + len(given) * length <= MOST_STATES):
            states += len(given) * length
            chosen.append((item, given))
    made = [(item, text) for item, given in chosen for text in given]
    if not made:
        return []
    rewards = run([replace(item.trajectory, extra_info=text) for item, text in made])
    fulfilled: list[bool | None] = []
    for item, given in chosen:
        goal = int(np.flatnonzero(item.positive)[-1])
        fulfilled += judge(item.trajectory, given, goal) if judge is not None else [None] * len(given)
    found = []
    for (item, text), said, values in zip(made, fulfilled, rewards, strict=True):
        paid = values > threshold
        by_then = bool(paid[: int(np.flatnonzero(item.positive)[-1]) + 1].any())
        found.append(Swap(item, text, said, bool(paid[item.positive].mean() > least), by_then))
    return found


def contrast(exchanged: Sequence[Swap], words: Sequence[Swap]) -> Contrast:
    """Compute the contrast from swaps.

    Args:
        exchanged: swaps of whole instructions.
        words: swaps of single words.
    """
    by_expert: dict[Labelled, list[bool]] = {}
    for swap in exchanged:
        if swap.fulfilled is False:
            by_expert.setdefault(swap.item, []).append(not swap.paid)
    doubtful = [swap for swap in exchanged if swap.fulfilled is None]
    mean = float(np.mean([np.mean(each) for each in by_expert.values()])) if by_expert else 0.0
    of_word: dict[str, list[Swap]] = {}
    for swap in words:
        if swap.fulfilled is not True:
            of_word.setdefault(swap.word, []).append(swap)
    return Contrast(
        unpaid=share(mean, len(by_expert)),
        experts=len(by_expert),
        swaps=sum(map(len, by_expert.values())),
        doubtful=len(doubtful),
        doubtful_paid=sum(swap.paid for swap in doubtful),
        ignored=tuple(sorted(word for word, made in of_word.items() if _without_effect(made))),
    )


def _without_effect(made: Sequence[Swap]) -> bool:
    """Whether these swaps of one word come from at least three experts, and the goal is still paid in all swaps."""
    return len({swap.item for swap in made}) > 2 and all(swap.paid for swap in made)
