"""Warnings about instructions: rewards that do not follow them, and demonstrations that do not test it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grace_irl.audit.asked import Asked, words_of
from grace_irl.audit.contrast import MOST_INSTRUCTIONS, MOST_STATES, Contrast, by_instruction, by_word, contrast, swaps
from grace_irl.audit.subject import ProgramFailedError, Subject
from grace_irl.audit.warning import RewardWarning
from grace_irl.demos.trajectory import Trajectory

WRONG = 0.1
"""Share of swaps under which a goal is still paid, above which there is a warning."""
DOUBTFUL = 0.5
"""The same for doubtful swaps. Up to half of them are fulfilled if there are two tasks in many wordings."""
SHOWN = 0.8
"""Minimum lower end of the interval of a contrast that makes up for negatives which never come near."""
FAR = 0.1
"""Share of negatives that would be paid under any instruction, up to which negatives are far from what is paid."""
MOST = 0.5
"""Share of an expert's states of which more must be paid, if all of them are positive."""
NAMED = 8
"""Maximum number of words that a warning names."""

WRONG_GOALS = "bring episodes of a wrong goal (collect --near-miss), or expand the run"
NEAR_MISSES = f"add swaps of instructions (--swaps, for BabyAI), {WRONG_GOALS}"


def examine(subject: Subject) -> tuple[Contrast | None, list[RewardWarning]]:
    """Exchange instructions.

    The contrast is None if there is nothing to exchange, if the program fails, or with label rule "all", where an
    episode has no goal that a simulator could judge.
    """
    experts = [item for item in subject.problem.items if item.positive.any()]
    texts = {item.trajectory.extra_info for item in experts}
    if texts <= {""}:
        return None, []
    if len({words_of(text) for text in texts}) == 1:
        return None, [_one(min(texts))]
    try:
        return _exchanged(subject)
    except ProgramFailedError as error:
        failed = f"the program fails if an episode has the instruction of another one: {error}"
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
    found, asked = contrast(whole, words), Asked.of(subject)
    if found.unpaid is None and asked.excused():
        return None if whole_episode else found, []
    if whole_episode:
        return None, [each for each in _ignored(found, asked) if each.code == "instruction-ignored"]
    return found, [*_ignored(found, asked), *_far(subject, found)]


def _one(text: str) -> RewardWarning:
    return RewardWarning(
        "one-instruction",
        f"all experts have the same instruction, {text[:80]!r}, so nothing shows which of its words matter",
        "use the reward with this instruction only, or bring experts with other instructions",
    )


def _ignored(found: Contrast, asked: Asked) -> Iterator[RewardWarning]:
    # No simulator tells whether a word matters. It may, if the goals of experts depend on it.
    doubtful = found.unpaid is None and asked.known
    ignored = [word for word in found.ignored if not doubtful or words_of(word) & asked.telling]
    if found.unpaid is not None and found.unpaid.value < 1 - WRONG:
        still = f"{1 - found.unpaid.value:.0%} of the experts' goals are also paid under instructions"
        yield RewardWarning("instruction-ignored", f"{still} that they do not fulfil", NEAR_MISSES)
    elif found.unpaid is None and found.doubtful_paid > DOUBTFUL * found.doubtful:
        still = f"in {found.doubtful_paid} of {found.doubtful} cases a goal is still paid under another instruction"
        yield RewardWarning(
            "instruction-ignored", f"{still}, and no simulator tells whether it fulfils that one", NEAR_MISSES
        )
    elif ignored:
        words = ", ".join(map(repr, ignored[:NAMED])) + (", …" if len(ignored) > NAMED else "")
        yield RewardWarning(
            "words-ignored",
            f"in the instruction, other words in place of {words} change nothing",
            "check whether these words matter; if they do, bring negative episodes that differ from the task in them",
        )


def _far(subject: Subject, found: Contrast) -> Iterator[RewardWarning]:
    """Warn if hardly a negative episode comes near what is paid, and no simulator has shown the contrast.

    An episode comes near if it would be paid under any instruction, or does with another thing what an instruction asks
    for. Swaps of a few experts show little: the interval of the contrast counts, and not its value.
    """
    if found.unpaid is not None and found.unpaid.low >= SHOWN:
        return
    if any(item.demonstration.swapped for item in subject.problem.items):
        return
    negatives = [item for item in subject.problem.items if not item.positive.any()]
    texts = sorted({item.trajectory.extra_info for item in subject.problem.items if item.positive.any()})
    texts = texts[:: -(-len(texts) // MOST_INSTRUCTIONS)]
    made: list[Trajectory] = []
    states = examined = 0
    for item in negatives:
        states += len(texts) * len(item.trajectory.states)
        if made and states > MOST_STATES:
            break
        made += [replace(item.trajectory, extra_info=text) for text in texts]
        examined += 1
    if not made:
        return
    paid = [_anywhere(subject, values) for values in subject.run(made)]
    near = sum(
        any(paid[place * len(texts) : (place + 1) * len(texts)])
        or _anywhere(subject, subject.values(item))
        or (subject.does_alike is not None and subject.does_alike(item.trajectory, texts))
        for place, item in enumerate(negatives[:examined])
    )
    if near <= FAR * examined:
        said = "the negatives never come near what the reward pays: none would be paid under any instruction"
        if near:
            said = f"the negatives hardly ever come near what the reward pays: only {near} of {examined} do"
        yield RewardWarning("negatives-far", said, WRONG_GOALS)


def _anywhere(subject: Subject, values: NDArray[np.float64]) -> bool:
    return bool((np.nan_to_num(values, nan=-np.inf) > subject.threshold).any())
