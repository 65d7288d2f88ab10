"""Parts of a demonstration that AndroidControl has no place for, kept as JSON in a feature of each record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.source import stated_role, stated_split
from grace_irl.demos.trajectory import Demonstration, LabelRule, Metadata, Role, Split
from grace_irl.demos.ui.residue import Residue
from grace_irl.errors import InputError

ARRAYS = ("actions", "rewards", "log_probs")
"""Attributes of a trajectory that are numbers. AndroidControl's own actions are texts."""

UI = Metadata(kind="ui", view="uiautomator")


@dataclass(frozen=True)
class About:
    """What is kept beside one episode.

    Attributes:
        metadata: of the set that it was written in.
        role: of the episode; None where nobody stated one.
        task, split, goals, terminated, truncated: see `Demonstration` and `Trajectory`.
        arrays: those of `ARRAYS` that the trajectory has.
        screens: what each screen says beyond its forest, one for each state; or ().
    """

    metadata: Metadata = UI
    role: Role | None = None
    task: str = "default"
    split: Split | None = None
    goals: tuple[int, ...] | None = None
    terminated: bool = False
    truncated: bool = False
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    screens: tuple[Residue | None, ...] = ()

    @classmethod
    def of(cls, demonstration: Demonstration, metadata: Metadata, screens: tuple[Residue | None, ...]) -> About:
        """What is to be kept beside a demonstration."""
        trajectory = demonstration.trajectory
        arrays = {name: getattr(trajectory, name) for name in ARRAYS}
        return cls(
            metadata,
            demonstration.role,
            demonstration.task,
            demonstration.split,
            demonstration.goals,
            trajectory.terminated,
            trajectory.truncated,
            {name: array for name, array in arrays.items() if array is not None},
            screens,
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON, which keeps shapes and dtypes of numbers."""
        return {
            "metadata": asdict(self.metadata),
            "role": self.role,
            "task": self.task,
            "split": self.split,
            "goals": None if self.goals is None else [int(goal) for goal in self.goals],
            "terminated": bool(self.terminated),
            "truncated": bool(self.truncated),
            "arrays": {
                name: {"dtype": array.dtype.str, "shape": list(array.shape), "values": array.tolist()}
                for name, array in self.arrays.items()
            },
            "screens": list(self.screens),
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any] | None, where: str) -> About:
        """Reads what `to_json` wrote; of None, which the records of others have, the defaults.

        Raises:
            InputError: something else.
        """
        if kept is None:
            return cls()
        try:
            goals, arrays = kept.get("goals"), dict(kept.get("arrays", {}))
            return cls(
                _metadata(kept["metadata"]),
                stated_role(kept["role"], where),
                _text(kept.get("task", "default")),
                stated_split(kept.get("split"), where),
                None if goals is None else tuple(int(goal) for goal in goals),
                bool(kept.get("terminated", False)),
                bool(kept.get("truncated", False)),
                {name: _array(name, arrays[name]) for name in ARRAYS if name in arrays},
                tuple(kept.get("screens", ())),
            )
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:160]
            raise InputError(
                f"{where}: what grace-irl keeps beside its screens cannot be used ({reason}); expected what it "
                "wrote: write the file again"
            ) from None


def _metadata(stated: Mapping[str, Any]) -> Metadata:
    label = stated.get("label", "")
    if label not in (*get_args(LabelRule), ""):
        raise ValueError(f"label {label!r}")
    return Metadata("ui", (), _text(stated.get("environment", "")), _text(stated.get("view", "")), label)


def _text(stated: object) -> str:
    """A text that can be written again: JSON may hold halves of characters."""
    text = str(stated)
    text.encode()
    return text


def _array(name: str, kept: Mapping[str, Any]) -> NDArray[Any]:
    dtype = np.dtype(str(kept["dtype"]))
    if dtype.kind not in "biuf":
        raise ValueError(f"numbers of dtype {dtype}")
    array = np.array(kept["values"], dtype).reshape([int(side) for side in kept["shape"]])
    if not array.ndim or (array.ndim > 1 and name != "actions"):
        raise ValueError(f"{name} of shape {array.shape}")
    return array
