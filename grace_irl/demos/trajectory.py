"""The model of demonstrations: what happened (`Trajectory`) and what it stands for (`Demonstration`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.screenshots import Screenshot
from grace_irl.errors import InputError

StateKind = Literal["vector", "grid", "ui"]
Role = Literal["expert", "negative"]
Split = Literal["train", "held_out"]
LabelRule = Literal["all", "last", "goal"]

KIND_OF_NDIM: dict[int, StateKind] = {1: "ui", 2: "vector", 4: "grid"}


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One episode, as programs see it.

    Attributes:
        states: `(T+1, n)` floats (vector), `(T+1, h, w, 3)` integers (grid) or `(T+1,)` screens (ui), in order;
            a screen is XML in UTF-8, dtype `S` (`grace_irl.states.screen`).
        actions: `(T, ...)`, or None where the source stores states only.
        extra_info: the instruction, or "".
        rewards: `(T,)` true rewards, never shown to a search; or None.
        log_probs: `(T,)` log-probability of each action under the policy that acted; or None.
        terminated: the environment ended the episode.
        truncated: a time limit ended it.
        source: where it came from (file and episode), for messages and provenance.
        screenshots: a picture of each state, or None for a state without; () where the source has none.

    Raises:
        InputError: for shapes that do not fit together, or states that are not finite.
    """

    states: NDArray[Any]
    actions: NDArray[Any] | None = None
    extra_info: str = ""
    rewards: NDArray[np.float64] | None = None
    log_probs: NDArray[np.float64] | None = None
    terminated: bool = False
    truncated: bool = False
    source: str = ""
    screenshots: tuple[Screenshot | None, ...] = ()

    def __post_init__(self) -> None:
        where = self.source or "trajectory"
        if self.states.ndim not in KIND_OF_NDIM or (self.kind == "ui" and self.states.dtype.kind != "S"):
            found = f"{where}: states are {self.states.dtype} of shape {self.states.shape}"
            raise InputError(f"{found}; expected numbers (T+1, n) or (T+1, h, w, 3), or screens (T+1,) in UTF-8 bytes")
        if len(self.states) == 0:
            raise InputError(f"{where}: no states; expected at least one")
        if self.kind == "grid" and not (self.states.shape[3] == 3 and self.states.dtype.kind in "iu"):
            raise InputError(
                f"{where}: grid states are {self.states.dtype} of shape {self.states.shape}; "
                "expected integers of shape (T+1, h, w, 3)"
            )
        if 0 in self.states.shape:
            raise InputError(f"{where}: states of shape {self.states.shape[1:]}; expected at least one number in each")
        if self.kind == "vector" and (self.states.dtype.kind not in "fiu" or self.states.dtype.itemsize > 8):
            raise InputError(f"{where}: vector states are {self.states.dtype}; expected numbers of at most 64 bits")
        if self.states.dtype.kind == "f" and not np.isfinite(self.states).all():
            row = int(np.flatnonzero(~np.isfinite(self.states).all(axis=1))[0])
            raise InputError(f"{where}: state {row} holds NaN or infinity; expected finite numbers: clean the data")
        for name in ("actions", "rewards", "log_probs"):
            column = getattr(self, name)
            if column is not None and (column.ndim == 0 or len(column) != self.num_steps):
                found = "one number as" if column.ndim == 0 else str(len(column))
                raise InputError(f"{where}: {found} {name} for {len(self.states)} states; expected {self.num_steps}")
        for name, least in (("rewards", -np.finfo(np.float64).max), ("log_probs", -np.inf)):  # of a probability of 0
            column = getattr(self, name)
            if column is not None and (column.ndim != 1 or not ((column >= least) & (column < np.inf)).all()):
                raise InputError(
                    f"{where}: {name} of shape {column.shape}, or not finite; expected one finite number for each "
                    "step: clean the data, or leave them out"
                )
        if self.screenshots and len(self.screenshots) != len(self.states):
            raise InputError(
                f"{where}: {len(self.screenshots)} screenshots for {len(self.states)} states; expected one each"
            )

    @property
    def kind(self) -> StateKind:
        """The kind of the states, from their shape."""
        return KIND_OF_NDIM[self.states.ndim]

    @property
    def num_steps(self) -> int:
        """T, the number of actions: one less than the number of states."""
        return len(self.states) - 1

    @cached_property
    def digest(self) -> str:
        """SHA-256 (16 hex digits) of all that a program may see: states, actions and the instruction."""
        # of screens, the padding says only what else was stored beside them
        kind = "ui" if self.kind == "ui" else self.states.dtype.str
        digest = hashlib.sha256(repr((self.states.shape, kind, self.extra_info)).encode())
        if self.kind == "ui":
            for screen in self.states.tolist():
                digest.update(b"%d " % len(screen))
                digest.update(screen)
        else:
            digest.update(np.ascontiguousarray(self.states).data)
        if self.actions is not None:
            digest.update(np.ascontiguousarray(self.actions).data)
        return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Metadata:
    """What is true of a whole set, so that offline and online states are the same thing.

    Attributes:
        kind: the state kind of every trajectory.
        fields: names of a vector's components, or () where unknown.
        environment: Gymnasium id of the environment, or "".
        view: how a state was made from an observation ("vector", "minigrid-full", …), or "".
        label: the rule that fits this data ("all" or "last"), or "" where the source does not say.
    """

    kind: StateKind
    fields: tuple[str, ...] = ()
    environment: str = ""
    view: str = ""
    label: LabelRule | Literal[""] = ""


@dataclass(frozen=True, eq=False)
class Demonstration:
    """A trajectory with what it stands for.

    Attributes:
        trajectory: what happened.
        role: whether it shows the task done.
        task: name of the task.
        split: the side that it is on, or None where nobody stated one: `grace_irl.demos.split` then draws.
        goals: indices of the states that reach the goal, where somebody marked them (rule "goal"); or None.
    """

    trajectory: Trajectory
    role: Role
    task: str = "default"
    split: Split | None = None
    goals: tuple[int, ...] | None = None

    @property
    def side(self) -> Split:
        """The split; what states none is for training."""
        return self.split or "train"


@dataclass(frozen=True, eq=False)
class Demonstrations(Sequence[Demonstration]):
    """A set of demonstrations of one state kind and, for vectors, one width.

    Raises:
        InputError: for mixed kinds or widths.
    """

    metadata: Metadata
    items: tuple[Demonstration, ...] = field(default=())

    def __post_init__(self) -> None:
        for item in self.items:
            trajectory = item.trajectory
            if trajectory.kind != self.metadata.kind:
                raise InputError(
                    f"{trajectory.source}: {trajectory.kind} states in a set of {self.metadata.kind} states; "
                    "expected one kind: fit them apart"
                )
            first = self.items[0].trajectory
            if trajectory.kind == "vector" and trajectory.states.shape[1] != first.states.shape[1]:
                raise InputError(
                    f"{trajectory.source}: states of {trajectory.states.shape[1]} numbers beside "
                    f"{first.source} "
                    f"with {first.states.shape[1]}; expected one width: fit them apart"
                )

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __iter__(self) -> Iterator[Demonstration]:
        return iter(self.items)

    def select(
        self, *, role: Role | None = None, split: Split | None = None, task: str | None = None
    ) -> Demonstrations:
        """The demonstrations with this role, side and task (None: any), in order."""
        wanted = {"role": role, "side": split, "task": task}
        kept = (d for d in self.items if all(v is None or getattr(d, k) == v for k, v in wanted.items()))
        return replace(self, items=tuple(kept))

    @property
    def tasks(self) -> tuple[str, ...]:
        """Task names, in order of first appearance."""
        return tuple(dict.fromkeys(d.task for d in self.items))
