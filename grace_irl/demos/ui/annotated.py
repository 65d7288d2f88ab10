"""Trajectories whose source says in words what was done."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

from grace_irl.demos.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class AnnotatedTrajectory(Trajectory):
    """A trajectory with its actions as texts; programs see nothing of them.

    Attributes:
        action_texts: T actions, each a JSON object in AndroidControl's terms (`{"action_type": "click", …}`); or ().
        step_instructions: T texts, what each action is for; or ().
    """

    action_texts: tuple[str, ...] = ()
    step_instructions: tuple[str, ...] = ()

    @classmethod
    def of(cls, trajectory: Trajectory, action_texts: tuple[str, ...], step_instructions: tuple[str, ...]) -> Self:
        """A trajectory with texts."""
        parts = {field.name: getattr(trajectory, field.name) for field in fields(Trajectory)}
        return cls(**parts, action_texts=action_texts, step_instructions=step_instructions)
