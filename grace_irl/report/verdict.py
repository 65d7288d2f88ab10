"""Warnings about a run's figures: what a reader of a separation or of an expansion should not overlook."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grace_irl.evaluate.separation import BEST_HERE, Separation
from grace_irl.methods.separated import states
from grace_irl.report.evidence import EvidencePanel
from grace_irl.runs.expand.round import Round, became

GAP = 0.05  # of accuracy between training and held-out data that is worth a warning
FEW = 5  # positive held-out states, below which a figure says little
SHARED = 3  # numbers of states that several trajectories have, before the report calls a reward a counter


def warnings(separation: Separation, evidence: EvidencePanel) -> list[str]:
    """Warnings for the reader, most important first."""
    train, held_out = separation.train, separation.held_out
    found = []
    if held_out is not None and separation.threshold is None:
        found.append(
            f"An older version made this run: an accuracy on held-out data is at the {BEST_HERE}, which flatters it."
        )
    if held_out is None:
        found.append("No data was held out: the figures say how well the reward fits, not how well it carries over.")
    elif train.accuracy - held_out.accuracy > GAP:
        found.append(
            f"Accuracy falls from {train.accuracy:.4f} on training data to {held_out.accuracy:.4f} on held-out data: "
            "the reward has learnt what is peculiar to the demonstrations that it was fitted to."
        )
    if held_out is not None and held_out.experts < FEW:
        found.append(f"Only {states(held_out.experts, 'positive')} held out: that figure says little.")
    if not train.separated:
        few, many = evidence.mistakes
        included = "" if held_out is None else ", held-out ones included"
        found.append(
            f"Training states are not separated: {states(few, 'positive')} and {states(many, 'negative')} lie on the "
            f"wrong side of the threshold{included}."
        )
    elif held_out is not None and not held_out.separated:
        found.append("Training states are separated, held-out ones are not.")
    found += _flat(separation, evidence)
    return found


def _flat(separation: Separation, evidence: EvidencePanel) -> list[str]:
    """Rewards that say nothing of the state."""
    if evidence.groups and min(g.least for g in evidence.groups) == max(g.most for g in evidence.groups):
        return ["The reward is the same for every state."]
    found = []
    if _counts(evidence):
        found.append(
            "The reward depends on nothing but the number of the state: it counts, and tells experts by how long their "
            "episodes are."
        )
    worst = [name for name, (train, _) in separation.tasks.items() if train.accuracy <= 0.5]
    if worst:
        found.append(f"No better than chance on the task {', '.join(worst)}.")
    return found


def _counts(evidence: EvidencePanel) -> bool:
    """Whether states of the same number have the same reward in every trajectory, whatever they are."""
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
    """Warnings for the reader of an expansion."""
    found = []
    for each in rounds:
        if each.alike:
            found.append(
                f"Round {each.number}: {each.alike} of {each.rollouts} rollouts look like an expert's and were not "
                "called negative."
            )
        if each.stalled:
            found.append(
                f"Round {each.number}: learning stalled, although the reward tells the rollouts from experts; "
                f"the reward: {became(each)}."
            )
    return found
