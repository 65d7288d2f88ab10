"""A recovered reward, as what policies are paid and as what chooses among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_irl.compare.programs import ProgramReward
from grace_irl.compare.standings import ORACLE
from grace_irl.rl.method import Paid, TransitionReward

if TYPE_CHECKING:
    from grace_irl.rl.choice import Signal
    from grace_irl.rl.learning import Pay


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
        from grace_irl.rl.learning import net_pay, program_pay

        assert self.reward is not None
        if isinstance(self.reward, ProgramReward):
            return program_pay(self.reward.file, self.reward.form, allow_weak_sandbox=self.reward.allow_weak)
        return net_pay(self.reward, form or self.paid)

    def signal(self, method: str) -> Signal | None:
        """The signal that the method's learner had; None if it recovers no reward, so that nothing chooses."""
        from grace_irl.rl.choice import Signal

        if method == ORACLE:
            return Signal(lambda venv: venv)
        if self.reward is None:
            return None
        centred = self.paid == "centred"
        return Signal(self.pay("reward" if centred else None), centred)
