"""A recovered program as a reward of transitions, in the sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.programs.check import read
from grace_irl.rewards.file import RewardFile, load_reward

if TYPE_CHECKING:
    from grace_irl.rewards.scale import Form


@dataclass(frozen=True)
class ProgramReward:
    """The file that `grace` recovered. Implements `TransitionReward`, for environments without instructions.

    Attributes:
        path: of the file.
        trust: whether policies are trained on it in this process.
        allow_weak: of the sandbox.
        form: in which policies get it.
    """

    path: Path
    trust: bool = False
    allow_weak: bool = False
    form: Form = "raw"

    @property
    def file(self) -> RewardFile:
        """For training."""
        return load_reward(self.path, trust=self.trust)

    def __call__(
        self,
        state: NDArray[Any],
        action: NDArray[Any],
        next_state: NDArray[Any],
        done: NDArray[np.bool_],  # noqa: ARG002
    ) -> NDArray[np.float64]:
        """Rewards `(batch,)`; each transition is an episode of its own: two states, in order."""
        taken = action if read(self.file.source).takes_action else None
        episodes = [
            Trajectory(np.stack(pair), None if taken is None else taken[number : number + 1])
            for number, pair in enumerate(zip(state, next_state, strict=True))
        ]
        rewards = self.file.rewards(episodes, workers=1, allow_weak_sandbox=self.allow_weak)
        return np.array([each[1] for each in rewards])
