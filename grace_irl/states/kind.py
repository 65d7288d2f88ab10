"""The protocol of a kind of state, and the parts that its states are stored as."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

if TYPE_CHECKING:
    from rich.console import RenderableType

WORD = re.compile(r"\w+")

States = Any
"""The states of one trajectory, in order: what has a length and gives one state by index and some by slice. An array
for most kinds."""

Parts = Mapping[str, NDArray[Any]]
"""States as they are stored: arrays of one row per state, by name. Numbers, or texts in UTF-8 (dtype `S`). A kind whose
states are one array has one part, named ""."""

Allocate = Callable[[Sequence[int], DTypeLike], NDArray[Any]]
"""Gives an uninitialised array of a shape and dtype: `numpy.empty`, or a region's `allocate`."""


class PartLayout(NamedTuple):
    """One part of a state.

    Attributes:
        name: "" for the only part.
        dtype: numpy's text of the type in which its numbers are stored (`<f8`); "" of texts.
        shape: of one state's part; () of a number or a text.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def is_text(self) -> bool:
        """Whether the part is a text."""
        return not self.dtype


VALUES = 256
"""Of a byte."""


class ValueTally:
    """Different values in each channel of states of bytes, over any number of trajectories."""

    def __init__(self) -> None:
        self._seen = np.zeros((0, VALUES), np.bool_)
        self.side = 0
        """The shorter side of the largest states."""

    def add(self, states: NDArray[Any]) -> None:
        """Takes `(..., h, w, c)` bytes."""
        self.side = max(self.side, min(states.shape[-3:-1]))
        seen = self.counted(states) > 0
        most = max(len(seen), len(self._seen))
        one, other = (np.pad(each, ((0, most - len(each)), (0, 0))) for each in (seen, self._seen))
        self._seen = one | other

    @property
    def channels(self) -> int:
        """The number of channels; of states that differ in it, the largest."""
        return len(self._seen)

    @property
    def highest(self) -> int:
        """The largest value of all channels."""
        return int(np.flatnonzero(self._seen.any(axis=0)).max(initial=0))

    @property
    def most(self) -> int:
        """Different values of the channel that has most of them."""
        return int(self._seen.sum(axis=1).max(initial=0))

    @staticmethod
    def counted(states: NDArray[Any]) -> NDArray[np.int64]:
        """The count of each value in each channel of `(..., c)` bytes: `(c, 256)`."""
        flat = states.reshape(-1, states.shape[-1])
        return np.stack([np.bincount(flat[:, channel], minlength=VALUES) for channel in range(flat.shape[1])])


class Census(Protocol):
    """Gathers what `grace-irl demos inspect` prints about the states of a set, in one pass."""

    def add(self, states: States, where: str) -> None:
        """Counts the states of one trajectory.

        Raises:
            InputError: they do not fit those before, or one cannot be read.
        """
        ...

    def to_json(self, fields: Sequence[str], most: int) -> dict[str, Any]:
        """The counts as plain values, under keys of their own.

        Args:
            fields: names of a state's numbers, or ().
            most: entries of a list without end.
        """
        ...

    def table(self, fields: Sequence[str], most: int) -> RenderableType:
        """The counts for a terminal; arguments as for `to_json`."""
        ...


class Scrambler(ABC):
    """Takes the meaning out of states: what is equal stays equal, and nothing else is known about them."""

    @abstractmethod
    def states(self, states: States, word: Callable[[str], str], where: str) -> States:
        """The scrambled copy of one trajectory's states.

        Args:
            states: of the kind.
            word: gives the invented word for a word in lower case.
            where: file and episode, for messages.

        Raises:
            InputError: states that the map was not made for.
        """

    def text(self, text: str, word: Callable[[str], str]) -> str:
        """The scrambled instruction: its words are replaced, all in lower case."""
        return in_invented_words(text, word)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of a scrambled state's numbers, which say nothing; () if they have none."""
        return ()

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The map as plain values."""


def in_invented_words(text: str, word: Callable[[str], str]) -> str:
    """A text whose words are replaced, all in lower case."""
    return WORD.sub(lambda match: word(match[0].lower()), text)


class StateKind(ABC):
    """A kind of state. One object serves the whole program; it holds no data.

    Attributes:
        name: as files, headers and messages have it.
        plural: what messages call several states.
        expected: what the states of a trajectory are, for messages.
        shows_actions: programs may reward transitions between such states.
        prompts_actions: prompts explain what an action is; not for kinds whose actions are small numbers that say
            nothing which two states in a row do not say.
        sides: the sides of a state that may differ between trajectories, by name; () if all states have one shape.
        heavy: a state takes kilobytes, so files are read in small batches.
        parsed: programs parse states, which takes CPU by the byte.
        annotated: episodes may carry screenshots and actions in words.
        has_parts: states are dicts of named parts, whose names programs need.
        named_fields: the numbers of a state may have names (`Metadata.fields`).
        label: the label rule of data of which nothing else is known ("last": tasks end where a goal is reached).
        view: the view of states in files that do not say theirs.
        stored_as: what a column of a file holds for one state, for messages.
    """

    name: ClassVar[str]
    plural: ClassVar[str]
    expected: ClassVar[str]
    shows_actions: ClassVar[bool] = True
    prompts_actions: ClassVar[bool] = True
    sides: ClassVar[tuple[str, ...]] = ()
    heavy: ClassVar[bool] = False
    parsed: ClassVar[bool] = False
    annotated: ClassVar[bool] = False
    has_parts: ClassVar[bool] = False
    named_fields: ClassVar[bool] = False
    label: ClassVar[Literal["all", "last"]] = "all"
    view: ClassVar[str] = ""
    stored_as: ClassVar[str] = "a list of numbers"

    # Recognising and refusing

    @abstractmethod
    def recognises(self, states: States) -> bool:
        """Whether the states of a trajectory are of this kind, judged by their type and dimensions alone.

        Of states that several kinds recognise, the first of them in `grace_irl.states.KINDS` that is `likely` has them.
        """

    @abstractmethod
    def recognises_state(self, state: Any) -> bool:
        """The same of one state, as an environment gives it."""

    def likely(self, values: ValueTally) -> bool:
        """Whether states of bytes with these values are rather of this kind than of others that recognise them."""
        return True

    def seen_in(self, values: ValueTally) -> str:
        """The reason for which states of bytes with these values count as this kind, in a few words."""
        return f"{values.most} different values in a channel"

    def objection(self, values: ValueTally) -> str:
        """The reason why states of bytes with these values cannot be of this kind, even if somebody says so; or ""."""
        return ""

    @abstractmethod
    def check(self, states: States, where: str) -> None:
        """Refuses states that cannot be used.

        Raises:
            InputError: what was found, what was expected, what to do.
        """

    def check_fields(  # noqa: B027 - most kinds have none
        self, states: States, fields: Sequence[str], where: str
    ) -> None:
        """Refuses names of fields that do not fit, and states that a reader must not build a trajectory of.

        Raises:
            InputError: what was found, with the name of the field if it is known.
        """

    def describe(self, states: States) -> str:
        """Type and shape of a trajectory's states, for messages."""
        return f"{states.dtype} of shape {states.shape}"

    def signature(self, states: States) -> Hashable:
        """Facts that all trajectories of a set share, such as a vector's width; None if nothing has to be shared."""
        return None

    def unlike(self, states: States, others: States, beside: str) -> str:
        """One clause on two trajectories whose signatures differ: "states of 3 numbers beside FILE with 4".

        Args:
            states, others: of the two.
            beside: where the others are from.
        """
        return f"{self.describe(states)} beside {beside} with {self.describe(others)}"

    # Sizes and identity

    def shape(self, states: States) -> tuple[int, ...]:
        """The shape of one state; () of a kind without one."""
        return tuple(states.shape[1:])

    def type_name(self, states: States) -> str:
        """The type of a state's numbers, as headers and tables have it."""
        return str(states.dtype.name)

    def nbytes(self, states: States) -> int:
        """Bytes that the states take in memory."""
        return int(states.nbytes)

    def size(self, states: States) -> int:
        """Numbers of one state, if all states have as many; else 0."""
        return int(np.prod(self.shape(states), dtype=np.int64))

    def numbers(self, states: States) -> NDArray[np.float64] | None:
        """All numbers of each state in a row, `(T+1, n)`; None of a kind whose states are no numbers."""
        return None

    def identity(self, states: States) -> tuple[object, object]:
        """The beginning of a digest: shape and type."""
        return states.shape, states.dtype.str

    def feed(self, digest: Any, states: States) -> None:
        """Adds all states to a digest of `hashlib`."""
        digest.update(np.ascontiguousarray(states).data)

    # Files and the sandbox

    def layout(self, states: States) -> tuple[PartLayout, ...]:
        """The parts that the states are stored as."""
        return tuple(layout_of(name, array) for name, array in self.parts(states).items())

    def parts(self, states: States) -> Parts:
        """The states as they are stored."""
        return {"": states}

    def whole(self, parts: Parts) -> States:
        """The states of stored parts: the inverse of `parts`, without a copy."""
        return parts[""]

    def recognises_parts(self, parts: Sequence[PartLayout]) -> bool:
        """Whether a file without a header whose states have these parts holds states of this kind."""
        return False

    @abstractmethod
    def stores(self, part: PartLayout) -> bool:
        """Whether a state of this kind may have such a part, judged by its name and type."""

    def require_names(self, names: Sequence[str], where: str) -> None:  # noqa: B027 - most kinds have one part
        """Refuses names of parts that a file has, before anything of them is read.

        Raises:
            InputError: too many, or names that cannot be kept.
        """

    def stored_shape(self, size: int, sides: Sequence[int]) -> tuple[int, ...]:
        """The shape of a state that a file keeps as numbers in a row.

        Args:
            size: numbers of the state.
            sides: as long as `sides` of the kind; what the file says of them.
        """
        return (size,)

    def canonical(self, text: str, where: str) -> str:
        """A text as states have it, in the one spelling for all files.

        Raises:
            InputError: no such text.
        """
        return text

    def handed(self, part: PartLayout) -> np.dtype[Any]:
        """The type in which the numbers of a part reach a program, whatever a file stores.

        A type would say which file a state is from, and files are often all expert or all negative.
        """
        return np.dtype(np.float64) if np.dtype(part.dtype).kind == "f" else np.dtype(np.int64)

    def joined(self, values: Mapping[str, Any]) -> Any:
        """One state as a program is handed it. A kind whose states are one array is not asked.

        Args:
            values: of each part a fresh array, a number or a text.
        """
        return values[""]

    def separated(self, state: Any) -> Mapping[str, Any]:
        """The parts of one state, as an environment gives it, without a copy: arrays, numbers and texts."""
        return {"": state}

    @abstractmethod
    def as_state(self, state: Any) -> Any:
        """One state, as an environment or a file has it, as a program is handed it: a fresh, writable copy."""

    def online(self, states: Sequence[Any]) -> States:
        """Several such states as the states of a trajectory."""
        return np.stack([np.asarray(state) for state in states])

    def copied(self, state: Any) -> Any:
        """A copy of an environment's observation, because simulators reuse their buffers."""
        return np.array(state)

    # Environments

    def recognises_space(self, space: Any) -> bool:
        """Whether observations of a Gymnasium space may be states of this kind."""
        return False

    # Looking at states

    @abstractmethod
    def census(self, states: States) -> Census:
        """An empty census for states like these."""

    @abstractmethod
    def draw_scrambler(self, states: States, seed: int) -> Scrambler:
        """A new way to scramble states like these."""

    @abstractmethod
    def read_scrambler(self, about: Mapping[str, Any], seed: int) -> Scrambler:
        """The scrambler that `Scrambler.to_json` described.

        Raises:
            ValueError, LookupError, TypeError, AttributeError: not such an object.
        """


@dataclass(frozen=True)
class KindChoice:
    """The kind of a set whose form leaves several, with the reason for it.

    Attributes:
        kind: of the states.
        reason: in a few words.
        others: kinds that `--kind` could choose instead; () if a file states the kind.
    """

    kind: StateKind
    reason: str
    others: tuple[StateKind, ...] = ()

    @property
    def line(self) -> str:
        """Kind, reason and how to choose otherwise."""
        named = ", ".join(kind.name for kind in self.others)
        return f"states are {self.kind.plural}: {self.reason}{f' (--kind chooses otherwise: {named})' if named else ''}"


def layout_of(name: str, array: NDArray[Any]) -> PartLayout:
    """The layout of a part of several states."""
    return PartLayout(name, "" if array.dtype.kind == "S" else array.dtype.str, tuple(array.shape[1:]))
