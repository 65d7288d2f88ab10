"""Warnings about instructions: rewards that do not follow them, and demonstrations that do not test it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from grace_irl.audit.contrast import MOST_INSTRUCTIONS, MOST_STATES, Contrast, by_instruction, by_word, contrast, swaps
from grace_irl.audit.subject import ProgramFailedError, Subject
from grace_irl.audit.warning import RewardWarning
from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Trajectory

WRONG = 0.05
"""Share of swaps under which a goal is still paid, above which there is a warning."""
DOUBTFUL = 0.25
"""The same for doubtful swaps. Some of them are fulfilled: instructions of people have several wordings."""
NAMED = 8
"""Maximum number of words that a warning names."""

WRONG_GOALS = "bring episodes of a wrong goal (collect --near-miss), or expand the run"
NEAR_MISSES = f"add swaps of instructions (--swaps, for BabyAI), {WRONG_GOALS}"


def examine(subject: Subject) -> tuple[Contrast | None, list[RewardWarning]]:
    """Exchange instructions. The contrast is None if there is nothing to exchange, or if the program fails."""
    if subject.problem.rule == "all":
        return None, []
    experts = [item for item in subject.problem.items if item.positive.any()]
    texts = {item.trajectory.extra_info for item in experts}
    if texts <= {""}:
        return None, []
    if len(texts) == 1:
        return None, [_one(texts.pop())]
    paid = subject.paid_experts()
    try:
        whole, words = (
            swaps(paid, given(subject.problem.items), subject.threshold, subject.run, subject.judge)
            for given in (by_instruction, by_word)
        )
        found = contrast(whole, words)
        return found, [*_ignored(found), *_far(subject, found)]
    except ProgramFailedError as error:
        failed = f"the program fails if an episode has the instruction of another one: {error}"
        return None, [RewardWarning("fails", failed, "choose another program (show lists them), or search longer")]


def _one(text: str) -> RewardWarning:
    return RewardWarning(
        "one-instruction",
        f"all experts have the same instruction, {text[:80]!r}, so nothing shows which of its words matter",
        "use the reward with this instruction only, or bring experts with other instructions",
    )


def _ignored(found: Contrast) -> Iterator[RewardWarning]:
    if found.unpaid is not None and found.unpaid.value < 1 - WRONG:
        still = f"{1 - found.unpaid.value:.0%} of the experts' goals are also paid under instructions"
        yield RewardWarning("instruction-ignored", f"{still} that they do not fulfil", NEAR_MISSES)
    elif found.unpaid is None and found.doubtful_paid > DOUBTFUL * found.doubtful:
        still = f"in {found.doubtful_paid} of {found.doubtful} cases a goal is still paid under another instruction"
        yield RewardWarning(
            "instruction-ignored", f"{still}, and no simulator tells whether it fulfils that one", NEAR_MISSES
        )
    elif found.ignored:
        words = ", ".join(map(repr, found.ignored[:NAMED])) + (", …" if len(found.ignored) > NAMED else "")
        yield RewardWarning(
            "words-ignored",
            f"in the instruction, other words in place of {words} change nothing",
            "check whether these words matter; if they do, bring negative episodes that differ from the task in them",
        )


def _far(subject: Subject, found: Contrast) -> Iterator[RewardWarning]:
    """Warn if no negative episode would be paid under any instruction, and a simulator has not shown the contrast."""
    if found.unpaid is not None and found.unpaid.value >= 1 - WRONG:
        return
    if any(item.demonstration.swapped for item in subject.problem.items):
        return
    negatives = [item for item in subject.problem.items if not item.positive.any()]
    if not negatives or any(_anywhere(subject, item) for item in negatives):
        return
    texts = sorted({item.trajectory.extra_info for item in subject.problem.items if item.positive.any()})
    texts = texts[:: -(-len(texts) // MOST_INSTRUCTIONS)]
    made: list[Trajectory] = []
    states = 0
    for item in negatives:
        states += len(texts) * len(item.trajectory.states)
        if made and states > MOST_STATES:
            break
        made += [replace(item.trajectory, extra_info=text) for text in texts]
    if not any((np.nan_to_num(values, nan=-np.inf) > subject.threshold).any() for values in subject.run(made)):
        yield RewardWarning(
            "negatives-far",
            "the negatives never come near what the reward pays: none would be paid under any instruction",
            WRONG_GOALS,
        )


def _anywhere(subject: Subject, item: Labelled) -> bool:
    return bool((np.nan_to_num(subject.values(item), nan=-np.inf) > subject.threshold).any())
