"""Python classes that hold demonstrations. All readers, writers and searches share them.

`Trajectory` is one episode. `Demonstration` adds a role and a task. `Demonstrations` is a set of demonstrations.
"""

from __future__ import annotations

import hashlib
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.memory import spelled
from grace_irl.demos.screenshots import Screenshot
from grace_irl.errors import InputError
from grace_irl.states import kind_named, kind_of
from grace_irl.states.kind import KindChoice, StateKind, States
from grace_irl.states.masks import require_unmasked

Role = Literal["expert", "negative"]
Split = Literal["train", "validation", "held_out"]
LabelRule = Literal["all", "last", "goal"]
"""The rule for the positive states of an expert: all its states, its last state, or the states marked as goals."""


def step_rewards(rewards: NDArray[Any], steps: int) -> NDArray[np.float64]:
    """`(steps,)` rewards of the steps between states, from an array with one reward per step or one per state.

    With one reward per state, the last reward belongs to the last state, or to an action whose result is not stored.
    This reward is added to the reward of the last step, so that the episode keeps its return: environments often pay a
    sparse reward at the end. NaN beside the last state counts as no reward. `Trajectory` refuses the result if the
    rewards have another length, or more or fewer dimensions than one.
    """
    rewards = np.asarray(rewards, np.float64)
    if rewards.ndim > 1:
        return rewards[: max(steps, 0)]
    if rewards.ndim == 0 or steps < 0 or len(rewards) != steps + 1:
        return rewards
    kept, last = rewards[:steps].copy(), rewards[steps]
    if steps and not np.isnan(last):
        kept[-1] += last
    return kept


def numbers_of(values: Any, where: str) -> NDArray[Any]:
    """The values as an array of numbers.

    Raises:
        InputError: masked values, rows of different lengths, or values that are no numbers.
    """
    require_unmasked(values, where)
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.empty((), object)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{where}: {array.dtype} {reprlib.repr(values)}; expected numbers, one row for each step")
    return array


def stated_role(value: object, where: str) -> Role:
    """Check and return the role of a demonstration.

    Raises:
        InputError: the role is missing or unknown.
    """
    if value not in get_args(Role):
        found = f"role {reprlib.repr(value)}" if value not in (None, "") else "no role"
        raise InputError(f"{where}: {found}; expected 'expert' or 'negative'")
    return cast(Role, value)


def stated_split(value: object, where: str) -> Split | None:
    """Check and return the split of a demonstration; None if the value is None or "".

    Raises:
        InputError: the split is unknown.
    """
    if value is None or value == "":
        return None
    if value not in get_args(Split):
        raise InputError(f"{where}: split {reprlib.repr(value)}; expected 'train', 'validation' or 'held_out', or none")
    return cast(Split, value)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One episode. Reward programs see only the states, the actions and the instruction.

    Attributes:
        states: T+1 states in order. Their kind (`grace_irl.states`) determines the type: an array of `(T+1, n)` numbers
            for vectors, `(T+1, h, w, 3)` integers for grids, `(T+1, h, w, c)` bytes for images, `(T+1,)` texts for
            screens, or `RecordStates` for records.
        actions: numbers `(T, ...)`, one row per action; None if the source stores states only.
        extra_info: the instruction, for example "go to the red ball"; "" without one.
        rewards: `(T,)` rewards of the environment, or None. The search for a reward program never sees them.
        log_probs: `(T,)` log-probabilities of the actions under the policy that chose them, or None.
        terminated: whether the environment ended the episode.
        truncated: whether a time limit ended the episode.
        source: file and episode of origin, for messages and provenance.
        screenshots: one picture per state, None for a state without a picture; () if the source has no pictures.
        action_texts: T actions as JSON texts in the format of the data set AndroidControl, for example
            `{"action_type": "click", …}`; or ().
        step_instructions: T texts with the purpose of each action, or ().
        kind: name of the states' kind ("vector", "grid", "ui", …). "" selects the kind that recognises the states.

    Actions, rewards and log-probabilities may be lists of numbers; they become arrays.

    Raises:
        InputError: shapes that do not match, actions that are no numbers, masked values, or states, rewards or
            log-probabilities that are not finite. Only a log-probability may be -inf.
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
        if not isinstance(self.extra_info, str):
            raise InputError(f"{where}: extra_info {reprlib.repr(self.extra_info)}; expected a text, '' for none")
        require_unmasked(self.states, where)
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
            if column is None:
                continue
            column = numbers_of(column, f"{where}, {name}")
            object.__setattr__(self, name, column)
            if column.ndim == 0 or len(column) != self.num_steps:
                found = "one number as" if column.ndim == 0 else str(len(column))
                raise InputError(f"{where}: {found} {name} for {len(self.states)} states; expected {self.num_steps}")
        for name, least in (("rewards", -np.finfo(np.float64).max), ("log_probs", -np.inf)):  # log(0) = -inf is valid
            column = getattr(self, name)
            if column is not None and (column.ndim != 1 or not ((column >= least) & (column < np.inf)).all()):
                found = (
                    f"{name} of shape {column.shape}" if column.ndim != 1 else f"{name} that are missing or not finite"
                )
                raise InputError(
                    f"{where}: {found}; expected one finite number for each step: clean the data, or leave {name} out"
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
        """First 16 hex digits of the SHA-256 of the data for reward programs: states, actions and instruction."""
        kind = self.state_kind
        digest = hashlib.sha256(repr((*kind.identity(self.states), self.extra_info)).encode())
        kind.feed(digest, self.states)
        if self.actions is not None:
            digest.update(np.ascontiguousarray(self.actions).data)
        return digest.hexdigest()[:16]

    def outline(self) -> Trajectory:
        """A small copy for metrics, after a reward program has rewarded the states.

        The copy keeps the digest, the length, `rewards`, `terminated` and `truncated`. All states of the copy
        equal the first state, and take the memory of one state. The actions are left out.
        """
        parts = self.state_kind.parts(self.states).items()
        states = {name: np.broadcast_to(part[:1].copy(), part.shape) for name, part in parts}
        found = replace(
            self,
            states=self.state_kind.whole(states),
            actions=None,
            log_probs=None,
            screenshots=(),
            action_texts=(),
            step_instructions=(),
        )
        found.__dict__["digest"] = self.digest
        return found


@dataclass(frozen=True)
class Metadata:
    """Facts about a set of demonstrations.

    `environment` and `view` are enough to create an environment whose states have the form of the stored states.

    Attributes:
        kind: name of the states' kind, such as "grid".
        fields: names of a vector's components; () if they are unknown.
        environment: Gymnasium id of the environment, or "".
        view: name of the conversion from observation to state ("vector", "minigrid-full", …), or "".
        label: label rule for these data, or "" if the source gives none.
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


SWAPPED = ", with the instruction of another expert"
"""Last words of `source` in the trajectory of a swap (`Demonstration.swapped`)."""


@dataclass(frozen=True, eq=False)
class Demonstration:
    """A trajectory with its role, its task and its split (training, validation or held-out).

    Attributes:
        trajectory: the episode.
        role: "expert" if the episode is an example of the task, "negative" if it is a counterexample.
        task: name of the task.
        split: name of the split; None if the source states none. `grace_irl.demos.split` then draws a split.
        goals: 0-based indices of the states that reach the goal, for label rule "goal"; None if no source marks them.
        swapped: whether the instruction of another expert episode replaces this episode's own instruction
            (`--swaps`). The new instruction may name things that are not in this episode's world. Files do not store
            this flag.

    Raises:
        InputError: an unknown role or split, or a task that is no text.
    """

    trajectory: Trajectory
    role: Role
    task: str = "default"
    split: Split | None = None
    goals: tuple[int, ...] | None = None
    swapped: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.trajectory, Trajectory):
            raise InputError(f"demonstration: {reprlib.repr(self.trajectory)}; expected a Trajectory")
        where = self.trajectory.source or "demonstration"
        stated_role(self.role, where)
        object.__setattr__(self, "split", stated_split(self.split, where))
        if not isinstance(self.task, str):
            raise InputError(f"{where}: task {self.task!r}; expected a text")

    def of_kind(self, kind: StateKind) -> Demonstration:
        """A copy with this kind for the states. If the kind does not recognise them, return `self`."""
        if not kind.recognises(self.trajectory.states):
            return self
        return replace(self, trajectory=replace(self.trajectory, kind=kind.name))

    @property
    def side(self) -> Split:
        """The stated split, or "train" if none is stated."""
        return self.split or "train"


@dataclass(frozen=True)
class Sampled:
    """The sizes of a sample and of the sampled set, and known goal states of the whole set.

    Attributes:
        size: maximum size of the sample in bytes.
        trajectories: number of trajectories in the sample.
        states: number of states in the sample.
        of_trajectories: number of trajectories in the set.
        of_states: number of states in the set.
        of_bytes: size of the set in bytes.
        goals: 1-based indices of goal states by trajectory digest, which also hold outside the sample (`with_goals`).
    """

    size: int
    trajectories: int
    states: int
    of_trajectories: int
    of_states: int
    of_bytes: int
    goals: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """One line for the user."""
        return (
            f"a sample: {self.trajectories:,} of {self.of_trajectories:,} trajectories, {self.states:,} of "
            f"{self.of_states:,} states ({spelled(self.size)} of {spelled(self.of_bytes)}; --sample)"
        )


@dataclass(frozen=True, eq=False)
class Demonstrations(Sequence[Demonstration]):
    """A set of demonstrations with one kind of state. All vectors of a set have the same length.

    Attributes:
        metadata: metadata of the set.
        items: the demonstrations, in order.
        origins: name and metadata of each file, without files of role "negative"; () for a set made in memory.
        choice: the chosen kind and the reason, if the shape and dtype of the states fit several kinds; else None.
        notes: lines for the user about how the data were read.
        sampled: sizes of this sample and of the sampled set; None if this set is no sample.

    The states of one trajectory may fit several kinds. So each item gets the kind of `metadata`, if this kind
    recognises the item's states.

    Raises:
        InputError: states of different kinds or with different signatures (`StateKind.signature`), such as vectors of
            different lengths; or a number of `metadata.fields` that is not the length of the vectors.
    """

    metadata: Metadata
    items: tuple[Demonstration, ...] = field(default=())
    origins: tuple[tuple[str, Metadata], ...] = ()
    choice: KindChoice | None = None
    notes: tuple[str, ...] = ()
    sampled: Sampled | None = None

    def __post_init__(self) -> None:
        kind = self.metadata.state_kind
        for each in self.items:
            if not isinstance(each, Demonstration):
                raise InputError(f"an item is a {type(each).__name__}; expected Demonstrations, each with its role")
        items = tuple(item if item.trajectory.kind == kind.name else item.of_kind(kind) for item in self.items)
        object.__setattr__(self, "items", items)
        for item in self.items:
            trajectory = item.trajectory
            if trajectory.kind != self.metadata.kind:
                raise InputError(
                    f"{trajectory.source}: {trajectory.kind} states in a set of {self.metadata.kind} states; "
                    "expected one kind: fit each by itself"
                )
            first, kind = self.items[0].trajectory, trajectory.state_kind
            if kind.signature(trajectory.states) != kind.signature(first.states):
                said = kind.unlike(trajectory.states, first.states, first.source)
                raise InputError(f"{trajectory.source}: {said}: fit each by itself")
        if self.items:  # all have the signature of the first
            first = self.items[0].trajectory
            first.state_kind.check_fields(first.states, self.metadata.fields, first.source or "demonstrations")

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __iter__(self) -> Iterator[Demonstration]:
        return iter(self.items)

    def select(
        self, *, role: Role | None = None, split: Split | None = None, task: str | None = None
    ) -> Demonstrations:
        """The demonstrations of this role, split (`Demonstration.side`) and task, in order. None matches any value."""
        wanted = {"role": role, "side": split, "task": task}
        kept = (d for d in self.items if all(v is None or getattr(d, k) == v for k, v in wanted.items()))
        return replace(self, items=tuple(kept))

    @property
    def tasks(self) -> tuple[str, ...]:
        """Task names, in order of first appearance."""
        return tuple(dict.fromkeys(d.task for d in self.items))
