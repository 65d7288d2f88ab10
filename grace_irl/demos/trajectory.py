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
from grace_irl.states import kind_named, kind_of
from grace_irl.states.kind import KindChoice, StateKind, States

Role = Literal["expert", "negative"]
Split = Literal["train", "held_out"]
LabelRule = Literal["all", "last", "goal"]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One episode, as programs see it.

    Attributes:
        states: T+1 states in order, as their kind has them (`grace_irl.states`): `(T+1, n)` numbers for vectors,
            `(T+1, h, w, 3)` integers for grids, `(T+1,)` texts for screens.
        actions: `(T, ...)`, or None if the source stores states only.
        extra_info: the instruction, or "".
        rewards: `(T,)` true rewards, never shown to a search; or None.
        log_probs: `(T,)` log-probability of each action under the policy that acted; or None.
        terminated: the environment ended the episode.
        truncated: a time limit ended it.
        source: its origin (file and episode), for messages and provenance.
        screenshots: a picture of each state, or None for a state without; () if the source has none.
        action_texts: T actions as AndroidControl has them, each a JSON object (`{"action_type": "click", …}`); or ().
            Programs see nothing of them, nor of the instructions of steps.
        step_instructions: T texts, what each action is for; or ().
        kind: name of the states' kind; "" stands for the kind that recognises them.

    Raises:
        InputError: for shapes that do not fit together, or states that are not finite.
    """

    states: States
    actions: NDArray[Any] | None = None
    extra_info: str = ""
    rewards: NDArray[np.float64] | None = None
    log_probs: NDArray[np.float64] | None = None
    terminated: bool = False
    truncated: bool = False
    source: str = ""
    screenshots: tuple[Screenshot | None, ...] = ()
    action_texts: tuple[str, ...] = ()
    step_instructions: tuple[str, ...] = ()
    kind: str = ""

    def __post_init__(self) -> None:
        where = self.source or "trajectory"
        if not self.kind:
            object.__setattr__(self, "kind", kind_of(self.states, where).name)
        elif not self.state_kind.recognises(self.states):
            found = f"{where}: {self.kind} states are {self.state_kind.describe(self.states)}"
            raise InputError(f"{found}; expected {self.state_kind.expected}")
        if len(self.states) == 0:
            raise InputError(f"{where}: no states; expected at least one")
        self.state_kind.check(self.states, where)
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
    def state_kind(self) -> StateKind:
        """The kind of the states."""
        return kind_named(self.kind)

    @property
    def num_steps(self) -> int:
        """T, the number of actions: one less than the number of states."""
        return len(self.states) - 1

    @cached_property
    def digest(self) -> str:
        """SHA-256 (16 hex digits) of all that a program may see: states, actions and the instruction."""
        kind = self.state_kind
        digest = hashlib.sha256(repr((*kind.identity(self.states), self.extra_info)).encode())
        kind.feed(digest, self.states)
        if self.actions is not None:
            digest.update(np.ascontiguousarray(self.actions).data)
        return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Metadata:
    """Facts about a whole set, so that offline and online states are the same thing.

    Attributes:
        kind: name of the kind of every trajectory's states.
        fields: names of a vector's components, or () if unknown.
        environment: Gymnasium id of the environment, or "".
        view: how a state was made from an observation ("vector", "minigrid-full", …), or "".
        label: the rule that fits these data, or "" if the source does not state one (`grace_irl.demos.label_rule`).
    """

    kind: str
    fields: tuple[str, ...] = ()
    environment: str = ""
    view: str = ""
    label: LabelRule | Literal[""] = ""

    @property
    def state_kind(self) -> StateKind:
        """The kind of the states.

        Raises:
            InputError: no kind has this name.
        """
        return kind_named(self.kind)


@dataclass(frozen=True, eq=False)
class Demonstration:
    """A trajectory with what it stands for.

    Attributes:
        trajectory: what happened.
        role: whether it shows the task done.
        task: name of the task.
        split: the side that it is on, or None if nobody stated one: `grace_irl.demos.split` then draws.
        goals: indices of the states that reach the goal, if somebody marked them (rule "goal"); or None.
    """

    trajectory: Trajectory
    role: Role
    task: str = "default"
    split: Split | None = None
    goals: tuple[int, ...] | None = None

    def of_kind(self, kind: StateKind) -> Demonstration:
        """The same with states of this kind, if it recognises them; else the demonstration itself."""
        if not kind.recognises(self.trajectory.states):
            return self
        return replace(self, trajectory=replace(self.trajectory, kind=kind.name))

    @property
    def side(self) -> Split:
        """The split; what states none is for training."""
        return self.split or "train"


@dataclass(frozen=True, eq=False)
class Demonstrations(Sequence[Demonstration]):
    """A set of demonstrations of one state kind and, for vectors, one width.

    Attributes:
        metadata: of the set.
        items: the demonstrations, in order.
        origins: name and metadata of each file that may hold experts; () of a set that was made in memory.
        choice: the kind of the states, if their form leaves several, with the reason; else None.

    Trajectories that the kind of `metadata` recognises count as being of that kind: of one trajectory alone it may be
    hard to say.

    Raises:
        InputError: for mixed kinds or widths.
    """

    metadata: Metadata
    items: tuple[Demonstration, ...] = field(default=())
    origins: tuple[tuple[str, Metadata], ...] = ()
    choice: KindChoice | None = None

    def __post_init__(self) -> None:
        kind = self.metadata.state_kind
        items = tuple(item if item.trajectory.kind == kind.name else item.of_kind(kind) for item in self.items)
        object.__setattr__(self, "items", items)
        for item in self.items:
            trajectory = item.trajectory
            if trajectory.kind != self.metadata.kind:
                raise InputError(
                    f"{trajectory.source}: {trajectory.kind} states in a set of {self.metadata.kind} states; "
                    "expected one kind: fit them apart"
                )
            first, kind = self.items[0].trajectory, trajectory.state_kind
            if kind.signature(trajectory.states) != kind.signature(first.states):
                said = kind.unlike(trajectory.states, first.states, first.source)
                raise InputError(f"{trajectory.source}: {said}: fit them apart")

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
