"""The choice of a run's best program: by validation episodes, by contrast, and then by size.

The front contains the programs that score higher than all smaller programs. The rivals are the winner of the search and
the programs that the training data cannot tell apart from the winner. If enough episodes are set aside for validation,
the front and the rivals are compared on these episodes, and the nearly best programs compete (`sizes.nearly_best`).
Otherwise, only the rivals compete. The smallest competitor with about the highest contrast wins. Contrast is the share
of other instructions under which a program no longer pays an expert's goal (`audit.contrast`). Contrast comes before
size, because a small program may ignore the instruction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grace_irl.audit.contrast import Judge, by_instruction, swaps
from grace_irl.audit.subject import ProgramFailedError
from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Trajectory
from grace_irl.evaluate.rewards import RewardSource
from grace_irl.evaluate.separation import Separation
from grace_irl.evaluate.sizes import FEWEST, Floats, episode_aucs, ladder, nearly_best
from grace_irl.propose.material import Workbench
from grace_irl.propose.protocol import SizeFigures
from grace_irl.runs.auditing import in_simulator, rewards_on
from grace_irl.runs.front import pareto
from grace_irl.runs.record import Record, candidate
from grace_irl.search.ranks import rivals

MOST_RIVALS = 8
"""Maximum number of programs whose contrast is compared. The smallest programs are taken."""


class Preference:
    """The choice of the best program of a run.

    Args:
        bench: data, sandbox and cache of rewards of the run.
        judge: function that decides whether an episode fulfils an instruction.
    """

    def __init__(self, bench: Workbench, judge: Judge = in_simulator) -> None:
        self._bench = bench
        self._judge = judge
        self._experts = [
            item for item in bench.problem.train if item.positive.any() and item.demonstration.role == "expert"
        ]
        self._instructions = by_instruction(bench.problem.train)
        self._spoken = bench.problem.rule != "all" and any(self._instructions.values())
        self._sizes: tuple[SizeFigures, ...] | None = None

    @property
    def sizes(self) -> tuple[SizeFigures, ...] | None:
        """Figures of the judged programs from the last validation, smallest first; None without validation."""
        return self._sizes

    def __call__(self, order: Sequence[Record], known: Sequence[Record]) -> Record:
        """Choose the best program.

        Args:
            order: the valid programs of the search, best first; at least one.
            known: all programs of the run.
        """
        equals = [each.program.id for each in rivals([candidate(record) for record in order])]
        front = [each for each in pareto(_finished(known)) if each.program.id not in equals]
        same = [each for each in order if each.program.id in equals]
        same.sort(key=lambda each: equals.index(each.program.id))
        judged = self._on_validation([*front, *same]) if _validates(self._bench) else {}
        if not judged:
            return self._by_contrast(same)
        records = sorted((each for each in (*front, *same) if each.program.id in judged), key=_smallest)
        rungs = ladder({place: judged[each.program.id] for place, each in enumerate(records)})
        best = self._by_contrast([records[place] for place in nearly_best(rungs)])
        self._sizes = tuple(
            SizeFigures("", each.program.id, rung.auc, rung.worse, rung.error, each is best)
            for each, rung in zip(records, rungs, strict=True)
        )
        return best

    def _on_validation(self, records: Sequence[Record]) -> dict[str, Floats]:
        """The AUC of each validation episode, `(E,)`, by program id. Programs that fail on an episode are left out."""
        items, bench = self._bench.problem.validation, self._bench
        source = RewardSource([item.trajectory for item in items], bench.sandbox, bench.rewards, bench.limits)
        try:
            found = {}
            for record in records:
                outcome, rewards = source.complete(record.program, source.digests, source.known(record.program))
                if outcome.status == "ok":
                    first = int(record.program.takes_action)  # no transition leads to the first state
                    found[record.program.id] = _by_task(
                        items,
                        [rewards[item.trajectory.digest][first:] for item in items],
                        [item.positive[first:] for item in items],
                    )
            return found
        finally:
            source.close()

    def _by_contrast(self, records: Sequence[Record]) -> Record:
        """The first program with about the highest contrast on training experts.

        The contrast of a program is the mean of `_unpaid`. The contrast of the chosen program is at most one standard
        error below the highest contrast. This is the standard error of the mean difference, with one difference per
        expert.
        """
        if len(records) == 1 or not self._spoken:
            return records[0]
        found = [(record, self._unpaid(record)) for record in records[:MOST_RIVALS]]
        known = [(record, shares) for record, shares in found if len(shares)]
        if not known:
            return records[0]
        most = max((shares for _, shares in known), key=lambda shares: float(shares.mean()))
        return next(record for record, shares in known if _as_good(shares, most))

    def _unpaid(self, record: Record) -> Floats:
        """The share of swaps in which the program no longer pays the goals, for each expert with swaps.

        A swap is an expert's episode with another instruction. A swap is left out if the episode fulfils the other
        instruction, too. If no simulator can decide this, the swap is included. The share is 0 if the program does not
        pay the goals under the expert's own instruction: a program must not win because it pays less.
        """
        separation = Separation.of(record.evaluation)
        if separation is None or separation.threshold is None:
            return np.zeros(0)

        def run(changed: Sequence[Trajectory]) -> list[NDArray[np.float64]]:
            try:
                return rewards_on(self._bench, record.program, changed)
            except ProgramFailedError:  # a program that fails counts as paying every state
                return [np.full(len(each.states), np.inf) for each in changed]

        own = self._bench.rewards.get(record.program.id, [item.trajectory.digest for item in self._experts])
        made = swaps(self._experts, self._instructions, separation.threshold, run, self._judge)
        by_expert: dict[Labelled, list[bool]] = {}
        for swap in made:
            if swap.fulfilled is not True:
                values = own.get(swap.item.trajectory.digest)  # None if run.db has lost them
                pays = values is None or bool((values[swap.item.positive] > separation.threshold).any())
                by_expert.setdefault(swap.item, []).append(pays and not swap.paid)
        return np.array([np.mean(each) for each in by_expert.values()])


def _validates(bench: Workbench) -> bool:
    """Whether enough episodes of each role in the run are set aside for validation."""
    counts = Counter(item.demonstration.role for item in bench.problem.validation)
    return all(counts[role] >= FEWEST for role in {item.demonstration.role for item in bench.problem})


def _finished(records: Sequence[Record]) -> list[Record]:
    """The valid programs with complete evaluations. Reshaped versions are left out, because `Reshaping` judges them."""
    return [
        each
        for each in records
        if each.evaluation.valid and each.evaluation.complete and each.program.operator != "reshape"
    ]


def _smallest(record: Record) -> tuple[int, int]:
    return record.program.size, record.index


def _by_task(items: Sequence[Labelled], rewards: Sequence[Floats], positive: Sequence[NDArray[np.bool_]]) -> Floats:
    """The AUC of each episode, `(E,)`, in comparison with episodes of the same task."""
    found = np.empty(len(items))
    for task in dict.fromkeys(item.task for item in items):
        own = [place for place, item in enumerate(items) if item.task == task]
        found[own] = episode_aucs([rewards[place] for place in own], [positive[place] for place in own])
    return found


def _as_good(shares: NDArray[np.float64], most: NDArray[np.float64]) -> bool:
    if len(shares) != len(most):
        return False
    worse = most - shares
    error = float(worse.std(ddof=1) / np.sqrt(len(worse))) if len(worse) > 1 else 0.0
    return float(worse.mean()) <= error
