"""The evaluator of reward programs by GRACE's fitness, the negative loss of an AIRL discriminator.

An evaluation runs a program over the trajectories in stages, and ends early if the fitness cannot reach the caller's
minimum (`Bar.floor`). Rewards are cached. The elites (best programs) and the winner of a search also run in strict
mode. Strict mode checks that no reward depends on later states or on other trajectories.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled, Problem
from grace_irl.demos.trajectory import LabelRule
from grace_irl.evaluate.calibration import Calibration, calibrate, upper_bound
from grace_irl.evaluate.columns import LabelColumns, columns, flatten, require_both_sides
from grace_irl.evaluate.discriminator import Objective
from grace_irl.evaluate.episodes import EpisodeLabels
from grace_irl.evaluate.evaluation import EQUAL, Bar, Evaluation, shown
from grace_irl.evaluate.log_pi import LogPi
from grace_irl.evaluate.metrics import metrics_of, monotonicity, ranking, task_metrics
from grace_irl.evaluate.rewards import MemoryCache, RewardCache, RewardSource
from grace_irl.evaluate.separation import Separation
from grace_irl.programs.program import Program
from grace_irl.sandbox.protocol import Limits, Outcome, Sandbox

Floats = NDArray[np.float64]

# A set of at most STAGE_STATES states runs in one stage. In a larger set, the first two stages together run about
# STAGE_STATES states, and each later stage multiplies the number of states so far by STAGE_GROWTH.
STAGE_STATES = 4_096
STAGE_GROWTH = 3
STRICT_STATES = 5_000  # approximate number of states on which an elite runs in strict mode; the winner runs on all


class DiscriminatorEvaluator:
    """An `Evaluator` whose score is the fitness on the training trajectories of a problem (GRACE, eq. 4.1)."""

    def __init__(
        self,
        problem: Problem,
        sandbox: Sandbox,
        *,
        log_pi: LogPi = LogPi(),
        calibrated: bool = True,
        cache: RewardCache | None = None,
        limits: Limits = Limits(),
    ) -> None:
        """Create an evaluator and load the trajectories into the sandbox.

        Args:
            problem: labelled training and held-out trajectories.
            sandbox: the sandbox that runs programs.
            log_pi: log-probabilities log pi(a | s) of the actions in the problem's trajectories.
            calibrated: whether to fit a scale and an offset to each program's rewards.
            cache: cache of rewards. None: a new cache in memory.
            limits: time and memory limits of one run. Each state adds 1 ms to the CPU limit and 5 ms to the wall limit
                (25 ms in strict mode); screens add more.

        Raises:
            InputError: a training task without positive or without negative states.
        """
        require_both_sides(problem.train)
        self._raw = None if calibrated else Calibration(offset=0.0 - log_pi.mean)
        cache = cache or MemoryCache()
        self._train = _Split(problem.train, problem.rule, log_pi, sandbox, cache, limits)
        self._held_out = _Split(problem.held_out, problem.rule, log_pi, sandbox, cache, limits)

    def close(self) -> None:
        """Remove the trajectories from the sandbox."""
        self._train.source.close()
        self._held_out.source.close()

    def evaluate(self, programs: Sequence[Program], bar: Bar = Bar()) -> list[Evaluation]:
        """See `Evaluator`."""
        return [self._evaluate(program, bar) for program in programs]

    def verify(self, program: Program) -> str:
        """See `Evaluator`."""
        for split in (self._train, self._held_out):
            source = split.source
            if not source.digests:
                continue
            outcome, known = source.complete(program, source.digests, source.known(program))
            if outcome.status == "ok":
                outcome = source.differs_in_strict_mode(program, source.digests, known)
            if outcome.status != "ok":
                return f"{outcome.status} in strict mode: {outcome.message}"
        return ""

    def _evaluate(self, program: Program, bar: Bar) -> Evaluation:
        started = time.monotonic()
        evaluation = self._train_evaluation(program, bar)
        return replace(evaluation, seconds=time.monotonic() - started)

    def _train_evaluation(self, program: Program, bar: Bar) -> Evaluation:
        train = self._train
        known = train.source.known(program)
        rewards: dict[str, Floats] = {}
        takes_action = program.takes_action
        for stage in train.stages:
            # Check every stage even if all rewards are cached, so that a resumed run stops at the same stage.
            outcome, known = train.source.complete(program, stage, known)
            if outcome.status != "ok":
                return _invalid(outcome)
            rewards |= {digest: known[digest] for digest in stage}
            if stage is not train.stages[-1] and np.isfinite(bar.floor):
                bound = self._bound(rewards, takes_action)
                if bound < bar.floor - EQUAL:
                    return _stopped(bound, bar.floor, train.source, rewards)
        rows = train.columns(takes_action)
        if rows is None:
            message = (
                "the program rewards transitions, and no task has both transitions into positive states and "
                "transitions into negative ones"
            )
            return Evaluation("contract", message)
        values = flatten(train.items, rewards, takes_action=takes_action)
        objective = Objective.of(values, rows)
        fitted = self._raw or calibrate(objective)
        reached = objective.value(fitted.scale, fitted.offset)
        if reached >= bar.elite - EQUAL:
            outcome = train.source.differs_in_strict_mode(program, train.sample(STRICT_STATES), rewards)
            if outcome.status != "ok":
                return _invalid(outcome)
        ranked = ranking(values, rows.positive)
        episodes, of_tasks = train.episodes(takes_action)
        overall = metrics_of(values, rows, reached, ranked, episodes)
        tasks = task_metrics(values, rows, fitted, ranked.threshold, overall, of_tasks)
        found = Separation(
            overall,
            scale=fitted.scale,
            offset=fitted.offset,
            threshold=ranked.threshold,
            tasks={name: (metrics, None) for name, metrics in tasks.items()},
        )
        if reached < bar.floor - EQUAL:
            return found.evaluation()
        experts = [item.trajectory.digest for item in train.items if item.demonstration.role == "expert"]
        found = replace(found, monotonicity=monotonicity(rewards[digest][takes_action:] for digest in experts))
        return self._with_held_out(program, found, ranked.threshold)

    def _bound(self, rewards: dict[str, Floats], takes_action: bool) -> float:
        """An upper bound of the fitness on all training data, from the rewards of some trajectories.

        Args:
            rewards: rewards of the trajectories that have run, by digest.
            takes_action: whether the program gives rewards for transitions.
        """
        train = self._train
        rows = train.columns(takes_action)
        if rows is None:
            return 0.0
        done = [item.trajectory.digest in rewards for item in train.items]
        part = rows.of_items(np.array(done))
        items = [item for item, run in zip(train.items, done, strict=True) if run]
        objective = Objective.of(flatten(items, rewards, takes_action=takes_action), part)
        return objective.value(self._raw.scale, self._raw.offset) if self._raw else upper_bound(objective)

    def _with_held_out(self, program: Program, trained: Separation, threshold: float) -> Evaluation:
        """Add metrics on held-out data, with the calibration and the threshold of the training data.

        If the program fails on held-out data, the message of its exception is dropped: the message could carry a
        held-out state into a prompt.
        """
        held_out = self._held_out
        rows = held_out.columns(program.takes_action)
        if rows is None:
            return trained.evaluation()
        source = held_out.source
        outcome, rewards = source.complete(program, source.digests, source.known(program))
        if outcome.status != "ok":
            return Evaluation(outcome.status, f"{outcome.status} on a held-out trajectory")
        values = flatten(held_out.items, rewards, takes_action=program.takes_action)
        fitted = Calibration(trained.scale, trained.offset)
        loss = Objective.of(values, rows).value(fitted.scale, fitted.offset)
        ranked = ranking(values, rows.positive, threshold)
        episodes, of_tasks = held_out.episodes(program.takes_action)
        whole = metrics_of(values, rows, loss, ranked, episodes)
        found = task_metrics(values, rows, fitted, ranked.threshold, whole, of_tasks)
        pairs = {name: (metrics, found.get(name)) for name, (metrics, _) in trained.tasks.items()}
        return replace(trained, held_out=whole, tasks=pairs).evaluation()


class _Split:
    """The training or the held-out trajectories, with their stages and columns.

    A stage is a list of trajectories that run together. Columns hold the labels, weights and log pi of all states.
    """

    def __init__(
        self,
        items: Sequence[Labelled],
        rule: LabelRule,
        pi: LogPi,
        sandbox: Sandbox,
        cache: RewardCache,
        limits: Limits,
    ) -> None:
        self.items = tuple(items)
        self._rule = rule
        self.source = RewardSource([item.trajectory for item in items], sandbox, cache, limits)
        self._log_pi = pi
        self._columns: dict[bool, LabelColumns | None] = {}
        self._episodes: dict[bool, tuple[EpisodeLabels, dict[str, EpisodeLabels]]] = {}
        self._lock = threading.Lock()
        length = {item.trajectory.digest: len(item.trajectory.states) for item in items}
        # Digests are hashes, so sorting by digest mixes experts and negatives, in the same order in all runs.
        self._mixed = sorted(length)
        self._length = length
        self.stages = self._stages()

    def columns(self, takes_action: bool) -> LabelColumns | None:
        """The columns for rewards of transitions (`takes_action`) or of states. Each of the two is computed once.

        A row is a transition or a state. The result is None if no task has both positive and negative rows.
        """
        with self._lock:
            if takes_action not in self._columns:
                self._columns[takes_action] = columns(self.items, self._log_pi, takes_action=takes_action)
            return self._columns[takes_action]

    def episodes(self, takes_action: bool) -> tuple[EpisodeLabels, dict[str, EpisodeLabels]]:
        """All episodes, and the episodes of each task. Rows are transitions (`takes_action`) or states.

        Each of the two versions is computed once.
        """
        with self._lock:
            if takes_action not in self._episodes:
                everything = EpisodeLabels.of(self.items, self._rule, takes_action=takes_action)
                of_tasks = EpisodeLabels.by_task(self.items, self._rule, takes_action=takes_action)
                self._episodes[takes_action] = everything, of_tasks
            return self._episodes[takes_action]

    def sample(self, states: int) -> list[str]:
        """Digests of experts and negatives, mixed, with at least `states` states in total.

        The result is all digests if the trajectories have fewer states.
        """
        chosen: list[str] = []
        for digest in self._mixed:
            if states <= 0:
                break
            chosen.append(digest)
            states -= self._length[digest]
        return chosen

    def _stages(self) -> list[list[str]]:
        """Split the trajectories into stages (lists of digests). A set of at most `STAGE_STATES` states is one stage.

        In a larger set, the first stage is the shortest trajectory, so a program that crashes or hangs costs little.
        The later stages are large. An evaluation stops early only if the upper bound of the fitness is low. The bound
        assumes perfect classification of all states that have not run, so it is rarely low after a few states.
        """
        everything = list(self._length)
        if sum(self._length.values()) <= STAGE_STATES:
            return [everything] if everything else []
        first = [min(everything, key=lambda digest: (self._length[digest], digest))]
        stages, done, size = [first], set(first), STAGE_STATES
        while len(done) < len(everything):
            stage = [digest for digest in self.sample(size) if digest not in done]
            done.update(stage)
            stages += [stage] if stage else []
            size *= STAGE_GROWTH
        return stages


def _stopped(bound: float, floor: float, source: RewardSource, rewards: dict[str, Floats]) -> Evaluation:
    done, total = source.states(list(rewards)), source.states(source.digests)
    message = f"stopped after {done} of {total} states: fitness at most {shown(bound)}, below {shown(floor)}"
    return Evaluation("ok", message, bound=bound)


def _invalid(outcome: Outcome) -> Evaluation:
    return Evaluation(outcome.status, outcome.message, outcome.traceback)
