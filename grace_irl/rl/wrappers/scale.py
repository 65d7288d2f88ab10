"""In which form a recovered reward reaches the learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import InputError

Form = Literal["raw", "logit", "probability"]


@dataclass(frozen=True)
class Scale:
    """Turns a program's reward r into what the learner gets.

    `raw` gives r. `logit` gives `scale * r + offset`, the logit of the discriminator D that was fitted: what AIRL
    trains on (`log D - log (1 - D)`, Fu et al. 2018, with log pi = 0). `probability` gives D itself, in [0, 1].

    Where episodes may end early, the sign of the reward is a bonus or a fine on every step survived: see
    docs/training.md.

    Attributes:
        form: which of the three.
        scale, offset: the calibration of the reward file.
    """

    form: Form = "raw"
    scale: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            raise InputError(f"reward scale {self.form!r}; expected one of {', '.join(get_args(Form))}")

    def __call__(self, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same shape, in the form chosen."""
        if self.form == "raw":
            return rewards
        logit = self.scale * rewards + self.offset
        return logit if self.form == "logit" else 0.5 * (1.0 + np.tanh(0.5 * logit))
