"""The material of one prompt, beside what all prompts of a run share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.propose.mistakes import Wrong
from grace_irl.search.protocol import Request


@dataclass(frozen=True, eq=False)
class Material:
    """What an operator works on. Which attributes it reads: see each operator.

    Attributes:
        seed: of every draw (`Request.seed`).
        source: of the parent.
        evaluation: of the parent.
        rewards: by trajectory digest `(T+1,)`: what the parent gave each state.
        wrong: states on the wrong side of the parent's threshold.
        debug: by trajectory digest and step (from 0): what the parent's debug_fn said.
        overall: what the parent's debug(expert_states, negative_states) said.
        include_expert, incorrect_only, expert_only: the chances of GRACE's table 6, drawn by the search.
        problems: what static checks said of the source, each with its line.
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
    problems: tuple[str, ...] = ()
    trajectories: tuple[Labelled, ...] = ()


class Chances(TypedDict):
    """Table 6's draws, by the names that `Material` has for them."""

    include_expert: bool
    incorrect_only: bool
    expert_only: bool


def chances(request: Request) -> Chances:
    """Table 6's draws as a request carries them."""
    drawn = dict(request.context)
    return Chances(
        include_expert=bool(drawn.get("include_expert", False)),
        incorrect_only=bool(drawn.get("incorrect_only", False)),
        expert_only=bool(drawn.get("expert_only", False)),
    )
