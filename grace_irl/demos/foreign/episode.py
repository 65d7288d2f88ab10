"""Episodes from other programs and libraries, and a `Source` that checks and returns such episodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.header import Header
from grace_irl.demos.source import build, unicode_text
from grace_irl.demos.spelling import Spelling
from grace_irl.demos.trajectory import Demonstration, Metadata, Role, stated_role, stated_split
from grace_irl.errors import InputError
from grace_irl.states import KINDS, kinds_of
from grace_irl.states.kind import Allocate, StateKind, States
from grace_irl.states.masks import require_unmasked
from grace_irl.states.record import RECORD, RecordStates
from grace_irl.states.texts import pack
from grace_irl.states.vector import VECTOR, require_exact


@dataclass(frozen=True)
class Episode:
    """One episode as another program stores it.

    Attributes:
        states: T+1 states in order, as an array or as a mapping from the names of parts to arrays.
        where: file (or argument) and episode, for messages.
        actions: T actions, or None.
        rewards: T rewards of the environment, or None.
        terminated: whether the environment ended the episode.
        truncated: whether a time limit ended the episode.
        instruction: the instruction; "" if there is none.
        task: name of the task.
        role: role from the data, such as "expert"; None if the data state no role.
        split: split from the data, such as "train"; "" if the data state no split.
        goals: indices of the goal states; None if the data do not mark goal states.
        action_texts, step_instructions: as the attributes of `Trajectory` with these names.
    """

    states: NDArray[Any] | Mapping[str, NDArray[Any]]
    where: str
    actions: NDArray[Any] | None = None
    rewards: NDArray[Any] | None = None
    terminated: bool = False
    truncated: bool = False
    instruction: str = ""
    task: str = "default"
    role: str | None = None
    split: str = ""
    goals: tuple[int, ...] | None = None
    action_texts: tuple[str, ...] = ()
    step_instructions: tuple[str, ...] = ()

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        states = self.states.values() if isinstance(self.states, Mapping) else (self.states,)
        return sum(each.nbytes for each in (*states, self.actions, self.rewards) if each is not None)


class EpisodesSource:
    """Episodes in memory as an open set of demonstrations (see `Source`).

    Args:
        path: file, folder or name of an argument, for messages.
        episodes: the episodes.
        fields: names of a vector's components. () uses the names of the parts, if the states have named parts.
        notes: lines for the user about how the data were read.
        role: role of all episodes; None if the episodes have no common role.

    Raises:
        InputError: no episodes, states that fit no kind, or states with named parts in only some episodes.
    """

    def __init__(
        self,
        path: str | Path,
        episodes: Sequence[Episode],
        fields: Sequence[str] = (),
        notes: Sequence[str] = (),
        role: Role | None = None,
    ) -> None:
        self.path = Path(path)
        if not episodes:
            raise InputError(f"{path}: no episodes; expected at least one")
        # The states of an episode may be a mapping (`Episode.states`). If every part of every mapping is one number per
        # state, the states are vectors. Otherwise, the states are records.
        named = [each.states for each in episodes if isinstance(each.states, Mapping)]
        if named and len(named) < len(episodes):
            raise InputError(
                f"{path}: some episodes name their parts, others do not; expected names in all, or in none"
            )
        vectors = bool(named) and all(_is_number(part) for states in named for part in states.values())
        self._fields = tuple(fields)
        self._episodes = [_whole(each, self._fields_of(each) if vectors else None) for each in episodes]
        kinds = self._kinds()
        if kinds[-1].annotated:  # the states are screens: an invalid one is reported here, when the set is opened
            spelling = Spelling(kinds[-1])
            self._episodes = [replace(each, states=spelling.states(each.states, each.where)) for each in self._episodes]
        roles = {each.role for each in episodes} - {None}
        self.header = Header(
            Metadata(kinds[-1].name, fields=self._fields, view=kinds[-1].view),
            role=role or ("mixed" if roles else None),
            kinds=tuple(kind.name for kind in kinds) if len(kinds) > 1 else (),
            dtype=kinds[-1].type_name(self._episodes[0].states),
            shape=kinds[-1].shape(self._episodes[0].states),
            notes=tuple(notes),
        )

    def demonstrations(self, role: Role | None, allocate: Allocate) -> Iterator[Demonstration]:
        """See `Source.demonstrations`."""
        metadata = self.header.metadata
        stated = self.header.role if self.header.role != "mixed" else None
        for each in self._episodes:
            states = metadata.state_kind.whole(
                {name: _copied(part, allocate) for name, part in metadata.state_kind.parts(each.states).items()}
            )
            trajectory = build(
                states,
                each.where,
                metadata.fields,
                kind=metadata.kind,
                actions=None if each.actions is None else _copied(each.actions, allocate),
                extra_info=each.instruction,
                rewards=None if each.rewards is None else np.asarray(each.rewards, np.float64),
                terminated=each.terminated,
                truncated=each.truncated,
                action_texts=each.action_texts if metadata.state_kind.annotated else (),
                step_instructions=each.step_instructions if metadata.state_kind.annotated else (),
            )
            yield Demonstration(
                trajectory,
                stated_role(role or each.role or stated, each.where),
                unicode_text(each.task, each.where),
                stated_split(each.split, each.where),
                each.goals,
            )

    def _fields_of(self, episode: Episode) -> tuple[str, ...]:
        """Names of a vector's components. All episodes must have the same names, in any order."""
        assert isinstance(episode.states, Mapping)
        names = tuple(map(str, episode.states))
        self._fields = self._fields or names
        if sorted(names) != sorted(self._fields):
            raise InputError(
                f"{episode.where}: parts {_listed(names)}; expected {_listed(self._fields)}, as in the first episode"
            )
        return self._fields

    def _kinds(self) -> list[StateKind]:
        """The kinds of state that fit the type and dimensions of all states. The preferred kind is the last."""
        found = [kinds_of(each.states) for each in self._episodes]
        for each, kinds in zip(self._episodes, found, strict=True):
            if not kinds:
                about = f"states are {each.states.dtype} of shape {each.states.shape}"  # type: ignore[union-attr]
                raise InputError(
                    f"{each.where}: {about}; expected numbers (T, n) for vectors, (T, h, w, 3) integers for grids, or "
                    "(T, h, w, c) bytes for images"
                )
        common = [kind for kind in KINDS.values() if all(kind in kinds for kinds in found)]
        if not common:
            first, other = found[0][0], next(kinds[0] for kinds in found if found[0][0] not in kinds)
            raise InputError(
                f"{self.path}: {first.plural} and {other.plural}; expected one kind of state in all episodes"
            )
        return common


def rows_of(value: Any, where: str) -> NDArray[Any]:
    """Convert an array or a nested sequence to an array with one row per state or step.

    Raises:
        InputError: masked values, a row without a value, rows of different lengths, or values that are neither numbers
            nor texts.
    """
    require_unmasked(value, where)
    missing = next((row for row, each in enumerate(value) if each is None), None) if isinstance(value, list) else None
    if missing is not None:
        raise InputError(
            f"{where}: null in row {missing}; expected a value in each row: fill it in, or drop the episode"
        )
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.empty((), object)
    if array.dtype.kind == "O" and array.ndim and all(isinstance(each, str) for each in array.flat):
        array = array.astype(np.str_)
    if array.dtype.kind not in "biufUS" or array.ndim == 0:
        found = "one value" if array.ndim == 0 and array.dtype.kind != "O" else "rows of different lengths or types"
        raise InputError(f"{where}: {found}; expected numbers, one row of the same length for each state")
    return array


def column_of(value: Any, where: str) -> NDArray[Any]:
    """Convert an array or a sequence with one number per row to an array of one dimension.

    Raises:
        InputError: values that are not numbers, or rows with several numbers.
    """
    array = rows_of(value, where)
    if array.dtype.kind not in "biuf" or array.size != len(array):
        found = f"{array.dtype} of shape {array.shape}"
        raise InputError(f"{where}: {found}; expected one number for each row")
    return array.reshape(-1)


def joined(rows: NDArray[Any], last: NDArray[Any], where: str) -> NDArray[Any]:
    """Append `last`, an array of one row, to an array of rows.

    Raises:
        InputError: the rows differ in shape, or only one of the arrays is numeric.
    """
    if rows.shape[1:] != last.shape[1:] or (rows.dtype.kind in "biuf") != (last.dtype.kind in "biuf"):
        found = f"states of shape {rows.shape[1:]} and next ones of shape {last.shape[1:]}"
        raise InputError(f"{where}: {found}; expected one shape and type")
    return np.concatenate([rows, last])


def parts_of(value: Mapping[Any, Any], where: str, prefix: str = "") -> dict[str, NDArray[Any]]:
    """Flatten a nested mapping to a map from names to arrays. The part "joints" of "arm" gets the name "arm/joints".

    Raises:
        InputError: values that are neither numbers nor texts, or an empty mapping.
    """
    if not value:
        inside = f" in part {prefix[:-1]!r}" if prefix else ""
        raise InputError(f"{where}: a dict without parts{inside}; expected at least one")
    found: dict[str, NDArray[Any]] = {}
    for key, part in value.items():
        name = f"{prefix}{key}"
        found |= (
            parts_of(part, where, f"{name}/")
            if isinstance(part, Mapping)
            else {name: rows_of(part, f"{where}, part {name!r}")}
        )
    return found


def _whole(episode: Episode, fields: Sequence[str] | None) -> Episode:
    """Return the episode with its states in the array layout of their kind.

    Args:
        episode: the episode.
        fields: names of the components, if the states are vectors with named components; else None.

    Raises:
        InputError: parts that cannot form states, or actions that are texts.
    """
    states: States = episode.states
    where = episode.where
    if isinstance(states, Mapping) and fields is not None:
        columns = [np.asarray(states[name]).reshape(-1) for name in fields]
        lengths = {len(column) for column in columns}
        if len(lengths) > 1:
            raise InputError(f"{where}: parts of {sorted(lengths)} numbers; expected one number for each state")
        states = np.column_stack(columns)
        for name, column in zip(fields, columns, strict=True):
            require_exact(column, f"{where}, column {name!r}")
    elif isinstance(states, Mapping):
        RECORD.require_names(list(states), where)
        try:
            states = RecordStates({name: _stored(part) for name, part in states.items()})
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    else:
        states = _stored(states)
    if isinstance(states, np.ndarray) and VECTOR.recognises(states) and states.dtype.kind == "b":
        states = states.astype(np.uint8)
    actions = episode.actions
    if actions is not None and actions.dtype.kind in "US":
        raise InputError(f"{where}: actions are texts; expected numbers: write them as numbers, or leave them out")
    return replace(episode, states=states)


def _stored(part: NDArray[Any]) -> NDArray[Any]:
    return pack(part.tolist(), np.empty) if part.dtype.kind == "U" and part.ndim == 1 else part


def _copied(part: NDArray[Any], allocate: Allocate) -> NDArray[Any]:
    copy = allocate(part.shape, part.dtype)
    copy[...] = part
    return copy


def _is_number(part: NDArray[Any]) -> bool:
    return part.dtype.kind in "biuf" and (part.ndim == 1 or (part.ndim == 2 and part.shape[1] == 1))


def _listed(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(map(repr, names[:most])) + (", …" if len(names) > most else "")
