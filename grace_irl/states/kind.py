"""The base class of kinds of state, and the types in its methods: layouts of stored arrays, statistics, scramblers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grace_irl.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from grace_irl.states.tally import ValueTally

WORD = re.compile(r"\w+")

States = Any
"""The states of one trajectory, in order. Most kinds use an array, others another sequence type. A slice of such a
sequence has the same type."""

Parts = Mapping[str, NDArray[Any]]
"""States in stored form: arrays by name, with one row per state. An array holds numbers, or texts in UTF-8 (dtype `S`).
If the states of a kind are one array, the name of this array is ""."""

Allocate = Callable[[Sequence[int], DTypeLike], NDArray[Any]]
"""A function that returns an uninitialised array of a shape and dtype: `numpy.empty`, or the method `allocate` of a
memory region (`grace_irl.demos.memory.Region`)."""


class PartLayout(NamedTuple):
    """One part of a state.

    Attributes:
        name: name of the part; "" for the only part of a state without named parts.
        dtype: NumPy's code of the stored number type, such as `<f8`; "" for a text.
        shape: shape of the part in one state; () for a single number or a text.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def is_text(self) -> bool:
        """Whether the part is a text."""
        return not self.dtype


class Census(Protocol):
    """Statistics of the states of a data set, collected in one pass for `grace-irl demos inspect`."""

    def add(self, states: States, where: str) -> None:
        """Count the states of one trajectory.

        Raises:
            InputError: the states do not fit the earlier states, or a state cannot be read.
        """
        ...

    def to_json(self, fields: Sequence[str], most: int) -> dict[str, Any]:
        """The statistics as a dict for JSON. Each kind of state has its own keys.

        Args:
            fields: names of the features of a state; () if the features have no names.
            most: maximum length of each list that grows with the data.
        """
        ...

    def table(self, fields: Sequence[str], most: int) -> RenderableType:
        """The statistics as a table for a terminal.

        Args:
            fields: names of the features of a state; () if the features have no names.
            most: maximum length of each list that grows with the data.
        """
        ...


class Scrambler(ABC):
    """A map that changes states so that nobody can recognise their meaning. Equal states stay equal.

    `grace_irl.demos.scramble` uses it to test what a method learns from the data alone.
    """

    @abstractmethod
    def states(self, states: States, word: Callable[[str], str], where: str) -> States:
        """The scrambled copy of one trajectory's states.

        Args:
            states: states of one trajectory, of the scrambler's kind.
            word: function from a lower-case word to its invented word.
            where: file and episode, for messages.

        Raises:
            InputError: the map does not fit these states.
        """

    def text(self, text: str, word: Callable[[str], str]) -> str:
        """The scrambled instruction: invented words in lower case replace its words."""
        return in_invented_words(text, word)

    @property
    def fields(self) -> tuple[str, ...]:
        """Meaningless names of the features of a scrambled state; () if the features have no names."""
        return ()

    @property
    def old_parts(self) -> Iterable[str]:
        """Names of the parts of a state before scrambling; () if the parts have no names."""
        return ()

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The map as a dict for JSON."""


def in_invented_words(text: str, word: Callable[[str], str]) -> str:
    """The text with each word replaced by its invented word, in lower case."""
    return WORD.sub(lambda match: word(match[0].lower()), text)


class StateKind(ABC):
    """A kind of state, for example vectors or grids. Each subclass is a kind and has one object.

    Attributes:
        name: name in files, headers and messages.
        plural: plural of the name, for messages.
        expected: type and shape of a trajectory's states, for messages.
        shows_actions: whether programs may receive the actions of a trajectory.
        prompts_actions: whether prompts explain the actions. False if two consecutive states already show the action.
        sides: names of the dimensions of a state whose lengths may differ between trajectories; () if there are none.
        heavy: whether a single state takes kilobytes or more. Files of such states are read in small batches.
        parsed: whether programs must parse states, such as XML. A program's CPU time then grows with a state's size.
        annotated: whether episodes may carry screenshots and descriptions of actions.
        has_parts: whether states are dicts of named parts. Programs need these names.
        named_fields: whether the features of a state may have names (`Metadata.fields`).
        label: default rule for the positive states of experts, "all" or "last". Kinds whose tasks end at the goal have
            "last".
        view: `Metadata.view` (the conversion from observation to state) for data that name no view; "" if unknown.
        stored_as: description of the column that holds a state in a file, for messages.
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
        """Whether the states of a trajectory may be of this kind, judged by their type and dimensions alone.

        If several kinds recognise the states, the first of them in `grace_irl.states.KINDS` with a true `likely` wins.
        """

    @abstractmethod
    def recognises_state(self, state: Any) -> bool:
        """Whether one state of an environment may be of this kind, judged by its type and dimensions alone."""

    def likely(self, values: ValueTally) -> bool:
        """Whether byte states with these values fit this kind better than the other kinds that recognise them."""
        return True

    def seen_in(self, values: ValueTally) -> str:
        """A short reason why byte states with these values are of this kind, for messages."""
        return f"{values.most} different values in a channel"

    def objection(self, values: ValueTally) -> str:
        """A short reason why byte states with these values cannot be of this kind at all; "" if they can."""
        return ""

    def denies(self, values: ValueTally) -> bool:
        """Whether byte states with these values are of another kind that looks alike, such as pictures."""
        return False

    def misfit(self, shape: tuple[int, ...], fitted: tuple[int, ...]) -> str:
        """The reason why a program that was fitted to states of one shape cannot read states of another; "" if it can.

        Args:
            shape: shape of a state.
            fitted: shape of the states that the program was fitted to.
        """
        return ""

    @abstractmethod
    def check(self, states: States, where: str) -> None:
        """Refuse states that cannot be used.

        Raises:
            InputError: invalid states. The message names the fault, the expected states and the remedy.
        """

    def check_fields(  # noqa: B027 - most kinds have none
        self, states: States, fields: Sequence[str], where: str
    ) -> None:
        """Refuse field names that do not fit the states, and values that are not finite.

        Raises:
            InputError: the names do not fit, or a value is not finite. The message about such a value names its
                feature, if the feature has a name.
        """

    def describe(self, states: States) -> str:
        """Type and shape of a trajectory's states, for messages."""
        return f"{states.dtype} of shape {states.shape}"

    def signature(self, states: States) -> Hashable:
        """Properties that all trajectories of a set must share, such as a vector's width; None if there are none."""
        return None

    def unlike(self, states: States, others: States, beside: str) -> str:
        """Describe the difference between the states of two trajectories, for messages.

        An example is "states of 3 numbers beside FILE with 4; expected one width", for vectors.

        Args:
            states: states of one trajectory.
            others: states of the other trajectory.
            beside: file of the other trajectory.
        """
        return f"{self.describe(states)} beside {beside} with {self.describe(others)}"

    # Sizes and identity

    def shape(self, states: States) -> tuple[int, ...]:
        """The shape of one state; () for kinds without a shape."""
        return tuple(states.shape[1:])

    def type_name(self, states: States) -> str:
        """The type of a state's numbers, for headers and tables."""
        return str(states.dtype.name)

    def nbytes(self, states: States) -> int:
        """Size of the states in memory, in bytes."""
        return int(states.nbytes)

    def size(self, states: States) -> int:
        """Number of features of a state. A feature is a single number of the state."""
        return int(np.prod(self.shape(states), dtype=np.int64))

    def numbers(self, states: States) -> NDArray[np.float64] | None:
        """The n features of each state, `(T+1, n)`; None if the states hold no numbers."""
        return None

    def with_status_of(self, states: States, others: States) -> States | None:
        """The states with the device information of other states, such as the status bar of a phone.

        Each state gets the information that the other state with the same index shows.

        Args:
            states: the n states to change.
            others: n other states, of the same kind.

        Returns:
            The changed copies; None if no state shows such information.
        """
        return None

    def identity(self, states: States) -> tuple[object, object]:
        """Shape and type of the states. A digest of the states begins with them."""
        return states.shape, states.dtype.str

    def feed(self, digest: Any, states: States) -> None:
        """Add all states to a digest of `hashlib`."""
        digest.update(np.ascontiguousarray(states).data)

    # Files and the sandbox

    def layout(self, states: States) -> tuple[PartLayout, ...]:
        """The layout of each part of the states in stored form (`StateKind.parts`)."""
        return tuple(layout_of(name, array) for name, array in self.parts(states).items())

    def parts(self, states: States) -> Parts:
        """The states in stored form."""
        return {"": states}

    def whole(self, parts: Parts) -> States:
        """The states that these parts store, without a copy. This is the inverse of `StateKind.parts`."""
        return parts[""]

    def recognises_parts(self, parts: Sequence[PartLayout]) -> bool:
        """Whether states with these parts may be of this kind, for files without a header."""
        return False

    @abstractmethod
    def stores(self, part: PartLayout) -> bool:
        """Whether a state of this kind may have this part, judged by the part's name and type."""

    def require_names(self, names: Sequence[str], where: str) -> None:  # noqa: B027 - most kinds have one part
        """Refuse invalid names of a file's parts, before the parts are read.

        Raises:
            InputError: too many names, or a name that cannot be stored.
        """

    def stored_shape(self, size: int, sides: Sequence[int]) -> tuple[int, ...]:
        """The shape of a state that a file stores as a flat list of numbers.

        Args:
            size: length of the list.
            sides: lengths of the dimensions in `StateKind.sides`, from the file.
        """
        return (size,)

    def canonical(self, text: str, where: str) -> str:
        """A state's text in its canonical spelling, which is the same for all file formats.

        Raises:
            InputError: an invalid text for this kind.
        """
        return text

    def handed(self, part: PartLayout) -> np.dtype[Any]:
        """The type in which programs receive the numbers of a part.

        The type does not depend on the precision of the numbers in a file. Otherwise, programs could distinguish
        experts from negatives by the type, because many files hold only experts or only negatives.
        """
        return np.dtype(np.float64) if np.dtype(part.dtype).kind == "f" else np.dtype(np.int64)

    def joined(self, values: Mapping[str, Any]) -> Any:
        """Build one state, in the form that programs receive, from its parts. This default is for kinds with one part.

        Args:
            values: value of each part: a fresh array, a number or a text.
        """
        return values[""]

    def separated(self, state: Any) -> Mapping[str, Any]:
        """The parts of one state of an environment, without a copy: arrays, numbers and texts."""
        return {"": state}

    @abstractmethod
    def as_state(self, state: Any) -> Any:
        """One state of an environment or a file in the form that programs receive: a fresh, writable copy."""

    def online(self, states: Sequence[Any]) -> States:
        """The states of a trajectory, from single states of an environment.

        Raises:
            InputError: the states have different shapes or different parts.
        """
        require_one_form([self.separated(state) for state in states])
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
        """A new, empty census for states with the same `signature` as `states`."""

    @abstractmethod
    def draw_scrambler(self, states: States, seed: int) -> Scrambler:
        """A new random scrambler for states with the same `signature` as `states`."""

    @abstractmethod
    def read_scrambler(self, about: Mapping[str, Any], seed: int) -> Scrambler:
        """Make a scrambler from its description, the result of `Scrambler.to_json`.

        Raises:
            ValueError, LookupError, TypeError, AttributeError: an invalid description.
        """


@dataclass(frozen=True)
class KindChoice:
    """The kind chosen for a data set whose states fit several kinds, with the reason.

    Attributes:
        kind: the chosen kind.
        reason: a few words, for messages.
        others: kinds that the user could choose instead by `--kind`; () if a file states the kind.
    """

    kind: StateKind
    reason: str
    others: tuple[StateKind, ...] = ()

    @property
    def line(self) -> str:
        """One line for the user: the kind, the reason and how to choose another kind."""
        named = ", ".join(kind.name for kind in self.others)
        return f"states are {self.kind.plural}: {self.reason}{f' (--kind chooses otherwise: {named})' if named else ''}"


def require_one_form(states: Sequence[Mapping[str, Any]]) -> None:
    """Refuse an episode whose states change their parts or the shape of a part.

    Args:
        states: the parts of each state (`StateKind.separated`), in order.

    Raises:
        InputError: a state differs from the first one.
    """
    first, *later = (
        {name: "a text" if isinstance(value, str) else f"shape {np.shape(value)}" for name, value in parts.items()}
        for parts in states
    )
    for step, form in enumerate(later, 1):
        changed = next((name for name in {**first, **form} if form.get(name) != first.get(name)), None)
        if changed is not None:
            raise InputError(
                f"{f'part {changed!r} of ' if changed else ''}the state after step {step}: "
                f"{form.get(changed, 'missing')}; expected {first.get(changed, 'no such part')}, as in the first "
                "state: correct the environment"
            )


def layout_of(name: str, array: NDArray[Any]) -> PartLayout:
    """The layout of a part, from the array `(T+1, ...)` of its values in all states."""
    return PartLayout(name, "" if array.dtype.kind == "S" else array.dtype.str, tuple(array.shape[1:]))
