"""Warnings about rewards that do not follow instructions, and about demonstrations that cannot reveal such rewards.

A *swap* is an expert episode with another instruction. A swap is doubtful if no simulator can decide whether the
episode fulfils the other instruction (`grace_irl.audit.contrast`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from grace_irl.audit.asked import StatedGoals, spoken, words_of
from grace_irl.audit.contrast import (
    MOST_STATES,
    Contrast,
    Swap,
    by_end,
    by_instruction,
    by_word,
    contrast,
    sampled,
    swaps,
)
from grace_irl.audit.subject import ProgramFailedError, Subject
from grace_irl.audit.warning import RewardWarning
from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Trajectory

WRONG = 0.1
"""Maximum share of swaps in which the goal is still paid. With a larger share, there is a warning."""
DOUBTFUL = 0.5
"""Maximum share of doubtful swaps in which the goal is still paid. With a larger share, there is a warning.

If the instructions are wordings of two tasks, episodes fulfil the other instruction in up to half of the swaps."""
SHOWN = 0.8
"""If the confidence interval of `Contrast.unpaid` begins at this value or above, `_far` does not warn."""
MOST_MADE = 40
"""Maximum number of instructions with one word replaced that `_far` tests."""
FAR = 0.1
"""`_far` warns if at most this share of the negatives comes near a paid state."""
MOST = 0.5
"""With label rule "all", an expert counts as paid if the reward pays more than this share of the expert's states."""
NAMED = 8
"""Maximum number of words that a warning names."""

WRONG_GOALS = "bring episodes with a wrong goal (collect --near-miss), or expand the run"
RECORDED = "record episodes that end at a wrong goal"


def examine(subject: Subject) -> tuple[Contrast | None, list[RewardWarning]]:
    """Measure the contrast of a reward, and find warnings about instructions.

    The contrast is None if the experts have no instruction or only one, if the program fails, or with label rule "all".
    With rule "all", all expert states are positive, so an episode has no goal that a simulator could judge.
    """
    experts = [item for item in subject.problem.items if item.positive.any()]
    texts = {item.trajectory.extra_info for item in experts}
    if texts <= {""}:
        return None, []
    if len({spoken(text) for text in texts}) == 1:
        return None, [_one(min(texts))]
    try:
        return _exchanged(subject)
    except ProgramFailedError as error:
        failed = f"the program fails on episodes with another instruction or with shuffled states: {error}"
        return None, [RewardWarning("fails", failed, "choose another program (show lists them), or search longer")]


def _exchanged(subject: Subject) -> tuple[Contrast | None, list[RewardWarning]]:
    whole_episode = subject.problem.rule == "all"
    least, judge = (MOST, None) if whole_episode else (0.0, subject.judge)
    paid = [item for item in subject.paid_experts() if (subject.values(item)[item.positive] > subject.threshold).mean()
            > least]  # fmt: skip
    whole, words = (
        swaps(paid, given(subject.problem.items), subject.threshold, subject.run, judge, least)
        for given in (by_instruction, by_word)
    )
    found, asked = contrast(whole, words), StatedGoals.of(subject)
    if found.unpaid is None and asked.excused():
        if whole_episode:
            return None, []
        # An excuse is for a reward that needs no text. This one reads the text if most swaps leave the goal unpaid.
        reads = found.doubtful > 0 and found.doubtful_paid <= DOUBTFUL * found.doubtful
        return found, list(_ignored(subject, found, asked)) if reads else []
    if whole_episode:
        return None, [each for each in _ignored(subject, found, asked) if each.code == "instruction-ignored"]
    of_words = list(_ignored(subject, found, asked)) or list(_unshown(subject, paid)) or list(_ends(subject, paid))
    return found, [*of_words, *_misread((*whole, *words)), *_far(subject, found)]


def _one(text: str) -> RewardWarning:
    return RewardWarning(
        "one-instruction",
        f"all experts have the same instruction, {text[:80]!r}, so nothing shows which of its words matter",
        "use the reward with this instruction only, or bring experts with other instructions",
    )


def _ignored(subject: Subject, found: Contrast, asked: StatedGoals) -> Iterator[RewardWarning]:
    # Without a simulator, a word counts only if the goals of experts depend on the word.
    doubtful = found.unpaid is None and asked.known
    ignored = [word for word in found.ignored if not doubtful or words_of(word) & asked.telling]
    if found.unpaid is not None and found.unpaid.value < 1 - WRONG:
        still = f"in {1 - found.unpaid.value:.0%} of the swaps, a goal is paid under an instruction"
        yield RewardWarning("instruction-ignored", f"{still} that its episode does not fulfil", _near_misses(subject))
    elif found.unpaid is None and found.doubtful_paid > DOUBTFUL * found.doubtful:
        still = f"in {found.doubtful_paid} of {found.doubtful} swaps of instructions, an expert's goal is still paid"
        yield RewardWarning(
            "instruction-ignored",
            f"{still}, and no simulator can judge whether the episode fulfils the other instruction",
            _near_misses(subject),
        )
    elif ignored:
        words = ", ".join(map(repr, ignored[:NAMED])) + (", …" if len(ignored) > NAMED else "")
        yield RewardWarning(
            "words-ignored",
            f"the reward still pays the goal if another word replaces {words} in the instruction",
            "check whether these words matter; if they do, bring negative episodes that would be right if the "
            "instruction had other words there",
        )


def _near_misses(subject: Subject) -> str:
    """Advice to bring negatives that come near a goal of another instruction."""
    wrong = _wrong_goals(subject)
    if subject.problem.rule == "all" or _has_swaps(subject) or subject.recorded:
        return wrong
    return f"add swaps of instructions (--swaps, for BabyAI), {wrong}"


def _wrong_goals(subject: Subject) -> str:
    return RECORDED if subject.recorded else WRONG_GOALS


def _has_swaps(subject: Subject) -> bool:
    return any(item.demonstration.swapped for item in subject.problem.items)


def _unshown(subject: Subject, paid: Sequence[Labelled]) -> Iterator[RewardWarning]:
    """Warn if the reward pays goals of experts under instructions with new words.

    These instructions come from negatives. A word is new if no expert's instruction contains the word. A simulator must
    decide that the expert's episode does not fulfil the instruction. A swap counts only if the goal is paid with the
    new words or without them. Else the other words of the instruction are why the goal is unpaid: after "pick up the
    ball", "pick up the purple key" shows nothing about "purple".

    Args:
        subject: the program under audit, with its data.
        paid: experts whose goals are paid under their own instruction.
    """
    if subject.judge is None:
        return
    given: dict[tuple[str, str], list[str]] = {}
    shown: dict[str, frozenset[str]] = {}
    for task, own in by_instruction(subject.problem.items):
        shown[task] = shown.get(task, frozenset()) | words_of(own)
        given[task, own] = []
    texts = sorted({(item.task, item.trajectory.extra_info) for item in subject.problem.items})
    unshown = [(task, text, words_of(text) - shown[task]) for task, text in texts if task in shown]
    unshown = [each for each in unshown if each[2]]
    for task, own in given:
        given[task, own] = sampled([text for other, text, _ in unshown if other == task])
    made = swaps(paid, given, subject.threshold, subject.run, subject.judge)
    short = {key: [_without(text, words_of(text) - shown[key[0]]) for text in some] for key, some in given.items()}
    try:
        payable = [swap.paid for swap in swaps(paid, short, subject.threshold, subject.run, None)]
    except ProgramFailedError:  # the program may need a word in the place of each new one
        payable = [True] * len(made)
    counted = [swap for swap, one in zip(made, payable, strict=True) if swap.fulfilled is False and (swap.paid or one)]
    wrong = {swap.instruction for swap in counted if swap.paid}
    if sum(swap.paid for swap in counted) > WRONG * len(counted):
        words = sorted({word for _, text, new in unshown if text in wrong for word in new})
        named = ", ".join(map(repr, words[:NAMED])) + (", …" if len(words) > NAMED else "")
        yield RewardWarning(
            "words-unshown",
            f"no expert's instruction has {named}, and the reward pays goals under instructions with such words that "
            "the episodes do not fulfil",
            "bring experts whose instructions have these words",
        )


def _without(text: str, words: frozenset[str]) -> str:
    """The words of an instruction without some words, which are in lower case."""
    return " ".join(word for word in text.split() if not words_of(word) & words)


def _ends(subject: Subject, paid: Sequence[Labelled]) -> Iterator[RewardWarning]:
    """Warn if the reward pays goals under instructions with another end (`by_end`).

    A swap counts only if a simulator decides that the episode does not fulfil the changed instruction.

    Args:
        subject: the program under audit, with its data.
        paid: experts whose goals are paid under their own instruction.
    """
    if subject.judge is None:
        return
    given = by_end(subject.problem.items)
    made = [
        swap for swap in swaps(paid, given, subject.threshold, subject.run, subject.judge) if swap.fulfilled is False
    ]
    wrong = sorted((swap.instruction, swap.item.trajectory.extra_info) for swap in made if swap.paid)
    if len(wrong) > WRONG * len(made):
        example, own = (repr(text[:80]) for text in wrong[0])
        still = f"in {len(wrong)} of {len(made)} swaps of an instruction's end, such as {example} for {own}"
        yield RewardWarning(
            "words-ignored",
            f"{still}, a goal is paid under an instruction that its episode does not fulfil",
            _near_misses(subject),
        )


def _misread(made: Sequence[Swap]) -> Iterator[RewardWarning]:
    """Warn if the reward leaves episodes of experts unpaid under other instructions that they fulfil.

    For example, it does not pay for taking a red ball under "take the red object". A swap counts only if a simulator
    decides that the episode fulfils the other instruction. The episode may do so before its own goal. The share of
    unpaid swaps is a mean over experts, as in `Contrast.unpaid`, and a single expert is no sign.

    Args:
        made: swaps of experts whose goals are paid under their own instruction.
    """
    right = {(swap.item, swap.instruction): swap.paid_by_then for swap in made if swap.fulfilled}
    paid: dict[Labelled, list[bool]] = {}
    for (item, _), one in right.items():
        paid.setdefault(item, []).append(one)
    missed = float(np.mean([1 - np.mean(each) for each in paid.values()])) if paid else 0.0
    unpaid = sorted((text, item.trajectory.extra_info) for (item, text), one in right.items() if not one)
    if missed > WRONG and sum(not all(each) for each in paid.values()) > 1:
        example, own = (repr(text[:80]) for text in unpaid[0])
        still = f"in {len(unpaid)} of {len(right)} swaps of instructions, such as {example} for {own}"
        yield RewardWarning(
            "words-misread",
            f"{still}, an episode is not paid under an instruction that it fulfils",
            "bring more experts with such instructions",
        )


def _far(subject: Subject, found: Contrast) -> Iterator[RewardWarning]:
    """Warn if hardly any negative comes near a paid state, unless the contrast shows that the reward follows the text.

    The contrast shows this if the confidence interval of `Contrast.unpaid` begins at `SHOWN` or above. A high share
    alone is not enough, because swaps of few experts show little. If some negatives of the data are swaps (`--swaps`),
    there is no warning.

    A negative is tested with its own instruction and with at most `MOST_INSTRUCTIONS` instructions of experts. The
    negative comes near if the reward pays one of its states under a tested instruction, or if a simulator decides that
    the episode does the task of an expert's instruction, perhaps with a thing that the instruction does not name.
    If too few negatives come near, at most `MOST_MADE` instructions with one word replaced (`by_word`) are tested as
    well, since a near miss may do a task that no expert does.

    If there are too many states, some negatives are tested. Their digests choose them, so that the order of files does
    not matter.
    """
    if found.unpaid is not None and found.unpaid.low >= SHOWN:
        return
    if _has_swaps(subject):
        return
    negatives = [item for item in subject.problem.items if not item.positive.any()]
    negatives.sort(key=lambda item: item.trajectory.digest)
    texts = sampled(sorted({item.trajectory.extra_info for item in subject.problem.items if item.positive.any()}))
    near = [
        paid
        or _anywhere(subject, subject.values(item))
        or (subject.does_alike is not None and subject.does_alike(item.trajectory, texts))
        for item, paid in zip(negatives, _paid_under(subject, negatives, texts), strict=False)
    ]
    if near and sum(near) <= FAR * len(near):
        made = sorted({text for each in by_word(subject.problem.items).values() for text in each} - {*texts})
        paid = _paid_under(subject, negatives[: len(near)], made[:: -(-len(made) // MOST_MADE) or 1])
        near = [one or other for one, other in zip_longest(near, paid, fillvalue=False)]
    if near and sum(near) <= FAR * len(near):
        drawn = f" (of {len(negatives)})" if len(near) < len(negatives) else ""
        none = f"none of {len(near)} negatives{drawn}" if drawn else "none"
        said = f"no negative comes near what the reward pays: {none} would be paid under the instructions tried"
        if any(near):
            only = f"only {sum(near)} of {len(near)} negatives{drawn} do"
            said = f"hardly any negative comes near what the reward pays: {only}"
        yield RewardWarning("negatives-far", said, _wrong_goals(subject))


def _paid_under(subject: Subject, items: Sequence[Labelled], texts: Sequence[str]) -> list[bool]:
    """Whether the reward pays a state of each episode under one of these instructions.

    The program runs on at most `MOST_STATES` states. The states of an episode count once per instruction. Episodes
    beyond this limit have no entry in the result. The first episode always has an entry.
    """
    made: list[Trajectory] = []
    states = 0
    for item in items:
        states += len(texts) * len(item.trajectory.states)
        if made and states > MOST_STATES:
            break
        made += [replace(item.trajectory, extra_info=text) for text in texts]
    paid = [_anywhere(subject, values) for values in subject.run(made)] if made else []
    return [any(paid[place : place + len(texts)]) for place in range(0, len(paid), len(texts))] if texts else []


def _anywhere(subject: Subject, values: NDArray[np.float64]) -> bool:
    return bool((np.nan_to_num(values, nan=-np.inf) > subject.threshold).any())
