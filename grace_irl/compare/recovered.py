"""A recovered reward, as what policies are paid and as what chooses among them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.compare.standings import ORACLE
from grace_irl.demos.trajectory import Trajectory
from grace_irl.programs.check import read
from grace_irl.rewards.file import RewardFile, load_reward
from grace_irl.rl.method import Paid, TransitionReward

if TYPE_CHECKING:
    from grace_irl.rewards.scale import Form
    from grace_irl.rl.choice import Signal
    from grace_irl.rl.learning import Pay


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


@dataclass(frozen=True)
class Recovered:
    """The reward that a method recovered.

    Attributes:
        reward: None if it recovers none.
        paid: the form in which policies are paid it, if it is a network.
    """

    reward: TransitionReward | None
    paid: Paid = "reward"

    def pay(self, form: Paid | None = None) -> Pay:
        """Pays it to learners; a program in its own form, a network in `form` or, if that is None, in `paid`."""
        from grace_irl.rl.learning import NetPay, ProgramPay

        assert self.reward is not None
        if isinstance(self.reward, ProgramReward):
            return ProgramPay(self.reward.file, self.reward.form, self.reward.allow_weak)
        return NetPay(self.reward, form or self.paid)

    def signal(self, method: str) -> Signal | None:
        """The signal that the method's learner had; None if it recovers no reward, so that nothing chooses."""
        from grace_irl.rl.choice import Signal
        from grace_irl.rl.learning import true_pay

        if method == ORACLE:
            return Signal(true_pay)
        if self.reward is None:
            return None
        centred = self.paid == "centred"
        return Signal(self.pay("reward" if centred else None), centred)
