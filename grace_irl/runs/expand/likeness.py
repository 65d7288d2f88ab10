"""Detection of rollouts that look like an expert's trajectory, so that these rollouts do not become negatives.

As negatives, such rollouts would lower the reward of good behaviour.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from grace_irl.config import Config
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Trajectory
from grace_irl.evaluate.ranks import average_ranks
from grace_irl.rewards.file import load_reward
from grace_irl.runs.sandbox import limits_of

FOLDS = 2  # number of parts of the data for cross-validation
MOST_STATES = 5_000  # maximum number of states of each side (experts, others) in the fit of a classifier
MOST_NUMBERS = 1_500  # maximum number of entries of a state; longer states are reduced to evenly spaced entries
RIDGE = 1e-3  # factor of the ridge penalty in the mean loss; keeps the weights finite for separable data
_Z_MOST = 5.0  # entries are clipped at this number of standard deviations


def resemblance(experts: Sequence[NDArray[Any]], others: Sequence[NDArray[Any]], seed: int = 0) -> Floats:
    """Measure how well a classifier separates the states of each trajectory in `others` from the experts' states.

    The classifier is a logistic regression on the entries of a state and their squares. It is cross-validated: the
    trajectories of each side (experts and others) are split at random into two folds, and a classifier fitted to one
    fold judges the other fold. If a side has only one trajectory, its two halves are the folds.

    Args:
        experts, others: arrays of states `(T+1, …)`, one per trajectory, with states of equal shape.
        seed: seed of the random split.

    Returns:
        One AUC for each trajectory in `others`: the probability that the classifier ranks an expert's state above a
        state of the trajectory. Ties count one half. 1 is full separation, 0.5 is none.

    Raises:
        ValueError: no experts or no others.
    """
    if not experts or not others:
        raise ValueError("no trajectories to tell apart")
    rng = np.random.default_rng(seed)
    sides = [[_flat(each) for each in side] for side in (experts, others)]
    # Both sides have equal weight in the mean and the deviation. If one side alone set the scale, the scaling itself
    # could separate the sides.
    mean = np.mean([np.concatenate(side).mean(axis=0) for side in sides], axis=0)
    deviation = np.sqrt(np.mean([((np.concatenate(side) - mean) ** 2).mean(axis=0) for side in sides], axis=0))
    deviation = np.where(deviation > 1e-12, deviation, 1.0)
    dealt = [_deal([_features((part - mean) / deviation) for part in side], rng) for side in sides]
    found: dict[int, list[tuple[float, int]]] = {}
    for fold in range(FOLDS):
        fitted = [np.concatenate([part for _, place, part in side if place != fold]) for side in dealt]
        weights = _classifier(*(_sample(part, rng) for part in fitted))
        mine = np.concatenate([part for _, place, part in dealt[0] if place == fold])
        reference = mine @ weights
        for index, place, part in dealt[1]:
            if place == fold:
                found.setdefault(index, []).append((_auc(reference, part @ weights), len(part)))
    return np.array(
        [np.average([a for a, _ in found[i]], weights=[n for _, n in found[i]]) for i in range(len(others))]
    )


def _flat(states: NDArray[Any]) -> Floats:
    return np.asarray(states, dtype=np.float64).reshape(len(states), -1)


def _features(z: Floats) -> Floats:
    z = np.clip(z, -_Z_MOST, _Z_MOST)
    return np.hstack([np.ones((len(z), 1)), z, z**2])


def _deal(parts: Sequence[Floats], rng: np.random.Generator) -> list[tuple[int, int, Floats]]:
    """Assign the trajectories of one side to random folds. Return (index of the trajectory, fold, features) for each.

    A single trajectory is cut in half, so that no fold is empty. If it has one state, both folds contain this state.
    """
    if len(parts) == 1:
        middle = max(len(parts[0]) // 2, 1)
        halves = (parts[0][:middle], parts[0][middle:] if len(parts[0]) > 1 else parts[0])
        return [(0, fold, half) for fold, half in enumerate(halves)]
    order = rng.permutation(len(parts))
    return [(int(index), place % FOLDS, parts[index]) for place, index in enumerate(order)]


def _sample(features: Floats, rng: np.random.Generator) -> Floats:
    if len(features) <= MOST_STATES:
        return features
    return features[rng.choice(len(features), MOST_STATES, replace=False)]


def _classifier(experts: Floats, others: Floats) -> Floats:
    """Fit a logistic regression with experts as the positive class. Both classes have equal weight.

    Returns:
        The weights, one per feature.
    """
    features = np.vstack([experts, others])
    truth = np.repeat([1.0, 0.0], [len(experts), len(others)])
    share = np.where(truth > 0, 0.5 / len(experts), 0.5 / len(others))

    def loss(weights: Floats) -> tuple[float, Floats]:
        logits = features @ weights
        value = np.sum(share * (np.logaddexp(0.0, logits) - truth * logits)) + RIDGE * weights[1:] @ weights[1:]
        gradient = features.T @ (share * (expit(logits) - truth))
        gradient[1:] += 2 * RIDGE * weights[1:]
        return float(value), gradient

    result = minimize(loss, np.zeros(features.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    weights: Floats = result.x
    return weights


def _auc(above: Floats, below: Floats) -> float:
    """The probability that a value of `above` exceeds a value of `below`. Ties count one half."""
    ranks = average_ranks(np.concatenate([above, below]))[: len(above)]
    return float((ranks.sum() - len(above) * (len(above) + 1) / 2) / (len(above) * len(below)))


Floats = NDArray[np.float64]


def like_experts(
    reward: Path, played: Sequence[Trajectory], demonstrations: Demonstrations, config: Config
) -> list[bool]:
    """Whether each rollout looks like an expert's trajectory, judged without the environment's own reward.

    The condition depends on the label rule:

    - "all": a classifier cannot separate the rollout's states from the experts' states (the AUC of `resemblance` is at
      most `config.expand.alike`). This test uses no reward.
    - "last": the environment terminated the rollout, and the reward of the rollout's last state is at least G. G is the
      lowest reward of an expert's last state, among experts whose episodes the environment terminated. Without such
      experts, no rollout passes.
    - "goal", if the environment terminated the episode of at least one expert in a goal state: the condition of "last",
      with these experts only.
    - "goal" otherwise: the environment terminated the rollout, and the reward of the rollout's last state is at least
      H. H is the minimum over experts of the highest reward in the expert's goal states. A rollout also passes if the
      classifier cannot separate two groups of states: the rollout's states with rewards of at least H, and the goal
      states of experts with the same instruction.

    Args:
        reward: the file of a reward program.
        played: the rollouts.
        demonstrations: the demonstrations of the run. For rule "goal", experts without a goal state are ignored.
        config: the configuration of the run.

    Raises:
        GraceError: the reward fails on a rollout.
    """
    experts = list(demonstrations.select(role="expert"))
    rule = config.data.label or demonstrations.metadata.label or "all"
    if rule == "all":
        return _alike([_rows(each.trajectory) for each in experts], [_rows(each) for each in played], config)
    if rule == "goal":
        experts = [each for each in experts if each.goals]
    ended = [each for each in experts if each.trajectory.terminated and _ends_in_goal(each, rule)]
    known = ended if ended or rule == "last" else experts
    if not known:
        return [False] * len(played)
    rewards = load_reward(reward).rewards(
        [*(each.trajectory for each in known), *played],
        workers=config.sandbox.workers,
        allow_weak_sandbox=config.sandbox.allow_weak,
        limits=limits_of(config.sandbox),
    )
    theirs, ours = rewards[: len(known)], rewards[len(known) :]
    if ended:
        goal = min(float(values[-1]) for values in theirs)
        return [each.terminated and bool(values[-1] >= goal) for each, values in zip(played, ours, strict=True)]
    return _at_goals(known, theirs, played, ours, config)


NO_ENDS = (
    "no expert's episode says that the environment ended it, so every rollout becomes a negative, also one that "
    "reaches the goal; expected marks of the ends: a column 'done' or 'terminated', or terminated=True"
)
"""The line for the user if label rule "last" cannot recognise a success (`recognises_success`)."""


def recognises_success(demonstrations: Demonstrations) -> bool:
    """Whether a rollout can pass the test of `like_experts`.

    With label rule "last", the environment must have terminated the episode of at least one expert.

    Args:
        demonstrations: the demonstrations of the run, with their label rule.
    """
    experts = demonstrations.select(role="expert")
    return demonstrations.metadata.label != "last" or any(each.trajectory.terminated for each in experts)


def _ends_in_goal(expert: Demonstration, rule: str) -> bool:
    return rule == "last" or expert.trajectory.num_steps in (expert.goals or ())


def _at_goals(
    experts: Sequence[Demonstration],
    theirs: Sequence[Floats],
    played: Sequence[Trajectory],
    ours: Sequence[Floats],
    config: Config,
) -> list[bool]:
    """The test of `like_experts` for rule "goal", if no expert's episode was terminated in a goal state.

    Args:
        experts: expert demonstrations with goal states.
        theirs: rewards `(T+1,)` of the experts' states, one array per expert.
        played: the rollouts.
        ours: rewards `(T+1,)` of the rollouts' states, one array per rollout.
        config: the configuration of the run.
    """
    marked = [np.array(each.goals) for each in experts]
    goal = min(np.fmax.reduce(values[at]) for values, at in zip(theirs, marked, strict=True))
    found = [each.terminated and bool(values[-1] >= goal) for each, values in zip(played, ours, strict=True)]
    known: dict[str, list[Floats]] = {}
    for expert, at in zip(experts, marked, strict=True):
        known.setdefault(expert.trajectory.extra_info, []).append(_rows(expert.trajectory)[at])
    for text, states in known.items():
        mine = [
            (number, _rows(each)[values >= goal])
            for number, (each, values) in enumerate(zip(played, ours, strict=True))
            if each.extra_info == text and not found[number] and (values >= goal).any()
        ]
        same = _alike(states, [each for _, each in mine], config) if mine else []
        for (number, _), alike in zip(mine, same, strict=True):
            found[number] = alike
    return found


def _rows(trajectory: Trajectory) -> Floats:
    """The states of a trajectory as vectors, `(T+1, n)`.

    Long vectors, such as pictures, are reduced to `MOST_NUMBERS` evenly spaced entries. States without numbers become
    zeros, `(T+1, 1)`.
    """
    found = trajectory.state_kind.numbers(trajectory.states)
    if found is None:
        return np.zeros((len(trajectory.states), 1))
    count = found.shape[1]
    if count <= MOST_NUMBERS:
        return found
    return found[:, np.linspace(0, count - 1, MOST_NUMBERS).round().astype(np.intp)]


def _alike(experts: Sequence[Floats], played: Sequence[Floats], config: Config) -> list[bool]:
    """For each trajectory, whether the classifier fails to separate its states from the experts' states."""
    return [bool(chance <= config.expand.alike) for chance in resemblance(experts, played, config.seed)]
