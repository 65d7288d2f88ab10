"""The meaning of a run's figures, in words, and warnings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grace_irl.evaluate.evaluation import BEST_HERE, Evaluation, Metrics
from grace_irl.report.evidence import EvidencePanel
from grace_irl.runs.expand.round import Round, became

GAP = 0.05  # of accuracy between training and held-out data that is worth a warning
FEW = 5  # positive held-out states, below which a figure says little
SHARED = 3  # numbers of states that several trajectories have, before the report calls a reward a counter


def verdict(evaluation: Evaluation | None) -> str:
    """One or two sentences on how good the reward is."""
    if evaluation is None or evaluation.train is None:
        return "No valid reward was found."
    if evaluation.held_out is None:
        return f"On its training data, the reward {_parts(evaluation.train)}. Nothing was held out to test it on."
    return f"On held-out data, which no proposer saw, the reward {_parts(evaluation.held_out)}."


def _parts(metrics: Metrics) -> str:
    counted = f"{_states(metrics.experts, 'positive')} from {_states(metrics.negatives, 'negative')}"
    if metrics.separated:
        apart = f"separates {counted}: each positive one is worth more than every negative one"
        if metrics.accuracy == 1:
            return apart
        return (
            f"{apart}. At the threshold that is best on training data its balanced accuracy is {metrics.accuracy:.4f}"
        )
    return (
        f"tells {counted} with a balanced accuracy of {metrics.accuracy:.4f} (0.5 is chance), but does not separate "
        f"them; a positive state outranks a negative one with probability {metrics.auc:.4f}"
    )


def _states(count: int, name: str) -> str:
    return f"{count:,} {name} state{'' if count == 1 else 's'}"


def warnings(evaluation: Evaluation | None, evidence: EvidencePanel) -> list[str]:
    """Warnings for the reader, most important first."""
    if evaluation is None or evaluation.train is None:
        return ["There is no valid program: see below why candidates failed."]
    train, held_out = evaluation.train, evaluation.held_out
    found = []
    if held_out is not None and evaluation.threshold is None:
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
        found.append(f"Only {_states(held_out.experts, 'positive')} held out: that figure says little.")
    if not train.separated:
        few, many = evidence.mistakes
        included = "" if held_out is None else ", held-out ones included"
        found.append(
            f"Training states are not separated: {_states(few, 'positive')} and {_states(many, 'negative')} lie on the "
            f"wrong side of the threshold{included}."
        )
    elif held_out is not None and not held_out.separated:
        found.append("Training states are separated, held-out ones are not.")
    found += _flat(evaluation, evidence)
    return found


def _flat(evaluation: Evaluation, evidence: EvidencePanel) -> list[str]:
    """Rewards that say nothing of the state."""
    if evidence.groups and min(g.least for g in evidence.groups) == max(g.most for g in evidence.groups):
        return ["The reward is the same for every state."]
    found = []
    if _counts(evidence):
        found.append(
            "The reward depends on nothing but the number of the state: it counts, and tells experts by how long their "
            "episodes are."
        )
    worst = [name for name, (train, _) in evaluation.tasks.items() if train.accuracy <= 0.5]
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
