"""The subject of an audit: a program with its data, its metrics and a way to run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grace_irl.audit.contrast import Judge, RunProgram
from grace_irl.demos.labels import Labelled, Problem
from grace_irl.demos.trajectory import Trajectory
from grace_irl.evaluate.separation import Metrics, Separation
from grace_irl.programs.program import Program


class ProgramFailedError(Exception):
    """A program failed on a changed trajectory."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A program under audit.

    Attributes:
        problem: labelled demonstrations. The training data have positive and negative states.
        program: the program.
        separation: metrics of the program, with a threshold.
        rewards: rewards of the program along all trajectories of the problem, `(T+1,)`, by digest.
        run: function that runs the program on changed trajectories.
        judge: function that decides whether an episode fulfils an instruction; None without a simulator.
        does_alike: function that decides whether an episode fulfils one of the given instructions, or a variant that
            names another thing. None without a simulator.

    The function `run` raises `ProgramFailedError` if the program fails.
    """

    problem: Problem
    program: Program
    separation: Separation
    rewards: Mapping[str, NDArray[np.float64]]
    run: RunProgram
    judge: Judge | None = None
    does_alike: Callable[[Trajectory, Sequence[str]], bool] | None = None

    @property
    def threshold(self) -> float:
        """Reward above which a state is paid."""
        return self.separation.threshold or 0.0

    @property
    def tested(self) -> Metrics:
        """Metrics on held-out data, or on training data if nothing is held out."""
        return self.separation.held_out or self.separation.train

    @property
    def side(self) -> str:
        """Name of the data of `tested`."""
        return "held-out" if self.separation.held_out else "training"

    @property
    def recorded(self) -> bool:
        """Whether the states are recorded on devices, so that no environment can make further episodes."""
        return self.problem.metadata.state_kind.annotated

    def given(self, items: Sequence[Labelled]) -> list[Labelled]:
        """These episodes without swaps, if they have other negatives; else all of them.

        A swap has the states of an expert, so it shows nothing about the negatives that the user has given.
        """
        own = [item for item in items if not item.demonstration.swapped]
        return own if any(item.demonstration.role == "negative" for item in own) else list(items)

    def values(self, item: Labelled) -> NDArray[np.float64]:
        """Rewards along a trajectory of the problem, `(T+1,)`."""
        return self.rewards[item.trajectory.digest]

    def pays(self, item: Labelled) -> bool:
        """Whether the program pays a positive state of the trajectory."""
        return bool((self.values(item)[item.positive] > self.threshold).any())

    def pays_anywhere(self, item: Labelled) -> bool:
        """Whether the program pays any state of the trajectory."""
        return bool((np.nan_to_num(self.values(item), nan=-np.inf) > self.threshold).any())

    def paid_experts(self) -> list[Labelled]:
        """Held-out experts whose goal is paid. If there are none, training experts whose goal is paid."""
        for items in (self.problem.held_out, self.problem.train):
            if found := [item for item in items if item.positive.any() and self.pays(item)]:
                return found
        return []
