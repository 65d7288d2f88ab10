"""The content of one prompt (`Material`), and the data and tools of a proposer during a run (`Workbench`).

This module also finds the states that a program misclassifies, and samples trajectories with such states for prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled, Problem
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.evaluate.metrics import ranking
from grace_irl.evaluate.rewards import MemoryCache, RewardCache
from grace_irl.propose.protocol import Attempt, Proposal
from grace_irl.sandbox.protocol import Limits, Sandbox
from grace_irl.work import Workplace

Wrong = Mapping[int, NDArray[np.int64]]
"""Map from the index of a training trajectory to the sorted steps of its misclassified states (`wrong_states`)."""


def wrong_states(items: Sequence[Labelled], rewards: Mapping[str, NDArray[np.float64]]) -> Wrong:
    """Find the states that a program misclassifies, called wrong states.

    A program classifies a state as positive if the state's reward is above the threshold with the best accuracy on
    these data. A state is wrong if its class differs from its label.

    Args:
        items: the training data.
        rewards: rewards `(T+1,)` by trajectory digest, NaN for a state without a reward. Trajectories without an
            entry are skipped.
    """
    known = [place for place, item in enumerate(items) if item.trajectory.digest in rewards]
    if not known:
        return {}
    values = np.concatenate([rewards[items[place].trajectory.digest] for place in known])
    positive = np.concatenate([items[place].positive for place in known])
    valued = ~np.isnan(values)
    sides = positive[valued]
    if not sides.any() or sides.all():
        return {}
    threshold = ranking(values[valued], sides).threshold
    wrong = valued & (positive == (values <= threshold))
    ends = np.cumsum([len(items[place].positive) for place in known])[:-1]
    steps = (np.flatnonzero(part) for part in np.split(wrong, ends))
    return {place: found for place, found in zip(known, steps, strict=True) if len(found)}


def of_experts(items: Sequence[Labelled], wrong: Wrong) -> Wrong:
    """The wrong states that are positive, or all wrong states if none is positive."""
    found = {place: steps[items[place].positive[steps]] for place, steps in wrong.items()}
    return {place: steps for place, steps in found.items() if len(steps)} or wrong


def drawn(items: Sequence[Labelled], wrong: Wrong, count: int, rng: np.random.Generator) -> list[int]:
    """Sample at most `count` trajectories with wrong states, without replacement. Return their indices.

    Tasks take turns, in a new random order in each round, so that a task with many wrong states does not dominate. If a
    task has wrong states of both labels, a label is drawn first. Positive and negative have the same probability,
    because they have the same weight in the fitness. Then one of the task's wrong states with this label is drawn, and
    its trajectory is added.
    """
    left: dict[str, dict[bool, dict[int, int]]] = {}
    for place, steps in wrong.items():
        positives = int(items[place].positive[steps].sum())
        for positive, number in ((True, positives), (False, len(steps) - positives)):
            if number:
                left.setdefault(items[place].task, {}).setdefault(positive, {})[place] = number
    chosen: list[int] = []
    while left and len(chosen) < count:
        tasks = list(left)
        for task in (tasks[int(n)] for n in rng.permutation(len(tasks))[: count - len(chosen)]):
            sides = list(left[task].values())
            states = sides[int(rng.integers(len(sides)))]
            weights = np.array(list(states.values()), dtype=np.float64)
            place = list(states)[int(rng.choice(len(states), p=weights / weights.sum()))]
            chosen.append(place)
            for side in sides:
                side.pop(place, None)
            left[task] = {positive: side for positive, side in left[task].items() if side}
            if not left[task]:
                del left[task]
    return chosen


@dataclass(frozen=True, eq=False)
class ParentMaterial:
    """Facts about a program that a prompt shows: a parent or an ancestor of the new program.

    Attributes:
        source: the program's text.
        evaluation: the program's scores.
        rewards: rewards `(T+1,)` by trajectory digest.
        wrong: states that the program misclassifies (`wrong_states`).
        overall: output of one call of the program's debug(expert_states, negative_states).
        notes: the model's texts from follow-up calls about the program, by operator of the call (`Parent.notes`).
        tried: versions that earlier generations made of the program, oldest first.
    """

    source: str
    evaluation: Evaluation
    rewards: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    wrong: Wrong = field(default_factory=dict)
    overall: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    tried: tuple[Attempt, ...] = ()


@dataclass(frozen=True, eq=False)
class Material:
    """The content of one prompt, from which an operator (a function for one kind of prompt) writes the text.

    Attributes:
        seed: seed of all random draws (`Request.seed`).
        source, evaluation, rewards, wrong, overall, tried: facts about the first parent, as in `ParentMaterial`.
        parents: all parents.
        ancestors: further programs that the request names, such as the parents of a parent.
        debug: output of the first parent's debug_fn, by pairs of trajectory digest and step (from 0).
        include_expert: whether the prompt shows one more expert trajectory for comparison. The search sets
            `include_expert`, `incorrect_only` and `expert_only` at random (GRACE, table 6).
        incorrect_only: whether a trajectory with wrong states is shown only by its first state, the wrong states that
            were drawn, and the state before each.
        expert_only: whether only wrong states that are positive are drawn, if there are any.
        trajectories: trajectories of a prompt that asks for their goal states; () in other prompts.
    """

    seed: int = 0
    source: str = ""
    evaluation: Evaluation | None = None
    rewards: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    wrong: Wrong = field(default_factory=dict)
    debug: Mapping[tuple[str, int], str] = field(default_factory=dict)
    overall: str = ""
    tried: tuple[Attempt, ...] = ()
    include_expert: bool = False
    incorrect_only: bool = False
    expert_only: bool = False
    trajectories: tuple[Labelled, ...] = ()
    parents: tuple[ParentMaterial, ...] = ()
    ancestors: tuple[ParentMaterial, ...] = ()


@dataclass(frozen=True, eq=False)
class Workbench:
    """The data and tools of a proposer during a run.

    Attributes:
        problem: labelled demonstrations. Proposers read the states and labels of `problem.train` only.
        sandbox: the sandbox that runs debug functions.
        seed: seed of the run.
        limits: limits of one sandbox run.
        rewards: cache of the rewards that evaluated programs gave to states.
        folder: folder of the run.
        note: callback that shows one line to the user.
        workplace: place where the policies that judge programs are trained.
        limit: function that returns the reason why no further call of a model may be made; "" if one may.
        keep: callback that stores all answers of one call at once, by index of the request.
    """

    problem: Problem
    sandbox: Sandbox
    seed: int = 0
    limits: Limits = field(default_factory=Limits)
    rewards: RewardCache = field(default_factory=MemoryCache)
    folder: Path = Path()
    note: Callable[[str], None] = lambda _: None
    workplace: Workplace = field(default_factory=Workplace)
    limit: Callable[[], str] = lambda: ""
    keep: Callable[[Mapping[int, Proposal]], None] = lambda _: None
