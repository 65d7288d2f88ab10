"""Warnings in the report, about the metrics of a run and about expansion (rounds that train policies on the reward)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grace_irl.audit.warning import Audit
from grace_irl.evaluate.separation import BEST_HERE, Separation
from grace_irl.methods.account import capitalised
from grace_irl.methods.separated import states
from grace_irl.report.evidence import EvidencePanel
from grace_irl.runs.expand.round import Round, became

GAP = 0.05  # difference of training and held-out accuracy above which there is a warning
FEW = 5  # number of positive held-out states below which there is a warning
SHARED = 3  # minimum number of steps that occur in two or more trajectories; with fewer, `_counts` is False


def warnings(separation: Separation, evidence: EvidencePanel, audit: Audit | None = None) -> list[str]:
    """Warnings for the reader, most important first.

    Args:
        separation: metrics of the best program.
        evidence: rewards of the best program.
        audit: audit of the best program; None for runs of older versions, and for runs that have not ended.
    """
    found = [f"{sentence(each.found)} {sentence(each.advice)}" for each in audit.warnings] if audit else []
    found += _unaudited(separation, evidence) if audit is None else []
    return [*found, *_of_metrics(separation, evidence), *_flat(separation, evidence)]


def sentence(clause: str) -> str:
    """The clause with a capital first letter and a full stop."""
    return f"{capitalised(clause)}."


def _unaudited(separation: Separation, evidence: EvidencePanel) -> list[str]:
    """Warnings for runs without an audit. An audit contains equivalent warnings."""
    train, held_out = separation.train, separation.held_out
    found = []
    if held_out is None:
        found.append("No data was held out: the figures say how well the reward fits, not how well it carries over.")
    elif train.accuracy - held_out.accuracy > GAP:
        found.append(
            f"Accuracy falls from {train.accuracy:.4f} on training data to {held_out.accuracy:.4f} on held-out data: "
            "the reward has learnt what is peculiar to the demonstrations that it was fitted to."
        )
    if held_out is not None and held_out.experts < FEW:
        found.append(f"Only {states(held_out.experts, 'positive')} held out: the accuracy on them says little.")
    if _counts(evidence):
        found.append(
            "The reward depends only on the step of the episode, not on what a state contains: it can tell experts "
            "only by the length of their episodes."
        )
    return found


def _of_metrics(separation: Separation, evidence: EvidencePanel) -> list[str]:
    train, held_out = separation.train, separation.held_out
    found = []
    if held_out is not None and separation.threshold is None:
        found.append(
            "An older version made this run. The accuracy on held-out data is too good, because its threshold is the "
            f"{BEST_HERE}."
        )
    if not train.separated:
        few, many = evidence.mistakes
        of = "" if held_out is None else "of all states, held-out ones included, "
        found.append(
            f"Training states are not separated: {of}{states(few, 'positive')} and {states(many, 'negative')} lie on "
            "the wrong side of the threshold."
        )
    elif held_out is not None and not held_out.separated:
        found.append("Training states are separated, held-out ones are not.")
    return found


def _flat(separation: Separation, evidence: EvidencePanel) -> list[str]:
    """Warnings about rewards that do not depend on the state, or that are no better than chance on a task."""
    if evidence.groups and min(g.least for g in evidence.groups) == max(g.most for g in evidence.groups):
        return ["The reward is the same for every state."]
    worst = [name for name, (train, _) in separation.tasks.items() if train.accuracy <= 0.5]
    return [f"No better than chance on the task {', '.join(worst)}."] if worst else []


def _counts(evidence: EvidencePanel) -> bool:
    """Whether the reward depends only on the step: the states at a step have equal rewards in all trajectories."""
    longest = max((each.row.states for each in evidence.trajectories), default=0)
    least, most = np.full(longest, np.inf), np.full(longest, -np.inf)
    number = np.zeros(longest, dtype=np.int64)
    for each in evidence.trajectories:
        steps = np.flatnonzero(each.known)
        least[steps] = np.minimum(least[steps], each.values[steps])
        most[steps] = np.maximum(most[steps], each.values[steps])
        number[steps] += 1
    shared = number > 1
    return int(shared.sum()) >= SHARED and bool((least == most)[shared].all())


def cautions(rounds: Sequence[Round]) -> list[str]:
    """Warnings for the reader of an expansion's report."""
    found = []
    for each in rounds:
        if each.alike:
            found.append(
                f"Round {each.number}: {each.alike} of {each.rollouts} rollouts look like an expert's and were not "
                "called negative."
            )
        if each.stalled:
            found.append(
                f"Round {each.number}: learning stalled, although the reward is lower for rollouts than for experts. "
                f"The reward: {became(each)}."
            )
    return found
