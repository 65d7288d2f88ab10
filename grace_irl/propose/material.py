"""The material of one prompt, and the workbench of a proposer: data, sandbox and memory of a run."""

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
from grace_irl.sandbox.protocol import Limits, Sandbox

Wrong = Mapping[int, NDArray[np.int64]]
"""Wrong states by the place of their trajectory among the training items, in order; none of what has none."""


def wrong_states(items: Sequence[Labelled], rewards: Mapping[str, NDArray[np.float64]]) -> Wrong:
    """Positive states valued at most, and negative states valued above, the threshold of the best accuracy.

    Args:
        items: the training data.
        rewards: by digest `(T+1,)`, NaN for a state without one; what is missing is passed over.
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
    """The wrong states that are positive, or all of them if none is."""
    found = {place: steps[items[place].positive[steps]] for place, steps in wrong.items()}
    return {place: steps for place, steps in found.items() if len(steps)} or wrong


def drawn(items: Sequence[Labelled], wrong: Wrong, count: int, rng: np.random.Generator) -> list[int]:
    """Places of `count` trajectories with wrong states, or of all if there are fewer.

    Tasks take turns, in a random order that is another one in each round, so that a task that no program learns takes
    no more than its share. In a task positive and negative states have the same chance, as both sides weigh the same
    in the fitness; on a side each wrong state has the same chance, and its trajectory is shown.
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
    """Facts about the program of a prompt.

    Attributes:
        source: its text.
        evaluation: its score.
        rewards: by trajectory digest `(T+1,)`: what it gave each state.
        wrong: states on the wrong side of its threshold.
        overall: what its debug(expert_states, negative_states) said.
        notes: texts of further calls about it, by their steps.
    """

    source: str
    evaluation: Evaluation
    rewards: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    wrong: Wrong = field(default_factory=dict)
    overall: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Material:
    """Input of an operator. Each operator names the attributes that it reads.

    Attributes:
        seed: of every draw (`Request.seed`).
        source, evaluation, rewards, wrong, overall: of the first parent, as in `ParentMaterial`.
        parents: all of them.
        ancestors: what the request names besides.
        debug: by trajectory digest and step (from 0): what the parent's debug_fn said.
        include_expert, incorrect_only, expert_only: the chances of GRACE's table 6, drawn by the search.
        trajectories: what is to be cleaned.
    """

    seed: int = 0
    source: str = ""
    evaluation: Evaluation | None = None
    rewards: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    wrong: Wrong = field(default_factory=dict)
    debug: Mapping[tuple[str, int], str] = field(default_factory=dict)
    overall: str = ""
    include_expert: bool = False
    incorrect_only: bool = False
    expert_only: bool = False
    trajectories: tuple[Labelled, ...] = ()
    parents: tuple[ParentMaterial, ...] = ()
    ancestors: tuple[ParentMaterial, ...] = ()


@dataclass(frozen=True, eq=False)
class Workbench:
    """The data, the sandbox and the memory of a run.

    Attributes:
        problem: labelled demonstrations; proposers look at `problem.train` only.
        sandbox: for what programs say of themselves (debug functions).
        seed: of the run.
        limits: of one run in the sandbox.
        rewards: what programs that were scored gave each state, by trajectory digest.
        folder: of the run, for files that belong to it.
        note: tells the user something in one line.
    """

    problem: Problem
    sandbox: Sandbox
    seed: int = 0
    limits: Limits = field(default_factory=Limits)
    rewards: RewardCache = field(default_factory=MemoryCache)
    folder: Path = Path()
    note: Callable[[str], None] = lambda _: None
