"""Reader for npz archives, in a plain layout with episode lengths or in the layout of the library `imitation`.

N is the number of rows (steps), and n the number of episodes.

The plain layout has `observations (N, ...)` and `episode_lengths (n,)`. Optional arrays are `actions (N, ...)`,
`rewards (N,)`, `log_probs (N,)`, `terminals (N,)` (flags of terminal steps), and the arrays in `EPISODE_ARRAYS`. The
state after the last action comes from `next_observations (N, ...)` or `final_observations (n, ...)`. If the file has
neither array, the last action is left out: an episode of L rows then has L states and L-1 actions.

The layout of `imitation` has `obs (N+n, ...)`, `acts (N, ...)` and `indices (n-1,)`, and may have `terminal (n,)` and
`rews (N,)`. In `obs`, each episode has one row more than in `acts`, for its last state. `indices` holds the row in
`acts` at which each episode after the first begins. `infos` is a pickle and is not read. The reader refuses a file if
an array that it needs is a pickle.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.foreign.arrays import is_foreign, open_foreign
from grace_irl.demos.header import KEY, Header, require_numbers
from grace_irl.demos.memory import Memory
from grace_irl.demos.npz.member import DAMAGED, Member
from grace_irl.demos.source import Source, build, unicode_text
from grace_irl.demos.trajectory import Demonstration, Metadata, Role, stated_role, stated_split, step_rewards
from grace_irl.errors import InputError
from grace_irl.states import kinds_of_parts
from grace_irl.states.kind import Allocate, PartLayout
from grace_irl.states.texts import pack

INTEGER_BYTES = 40
"""Size in bytes of a Python integer in a list, including the list's pointer to the integer."""

IMITATION = {"obs": "observations", "acts": "actions", "rews": "rewards"}
"""Map from array names in the layout of `imitation` to array names in the plain layout."""


class NpzSource:
    """An open npz archive of either layout (see `Source`).

    Args:
        path: the file.
        memory: memory limit for all files of the set.

    Raises:
        InputError: no npz archive, an archive with another layout, a damaged or pickled array, or more data than
            `memory` allows.
    """

    def __init__(self, path: Path, memory: Memory) -> None:
        self.path = path
        self._memory = memory
        try:
            self._archive = zipfile.ZipFile(path)
        except DAMAGED as error:
            raise InputError(
                f"{path}: not readable as npz ({error}); expected a whole file: write or copy it again"
            ) from None
        self._names = {name.removesuffix(".npy") for name in self._archive.namelist()}
        self._imitation = "obs" in self._names and "observations" not in self._names
        self._parts = part_names(self._names, "observations")
        arrays = [_array("observations", name) for name in self._parts]
        needed = ["obs", "acts", "indices"] if self._imitation else [*arrays, "episode_lengths"]
        missing = [name for name in needed if name not in self._names]
        if missing:
            raise InputError(
                f"{path}: no array {missing[0]!r} among {', '.join(sorted(self._names))[:200] or 'none'}; expected "
                "observations and episode_lengths, or imitation's obs, acts and indices"
            )
        self._lengths = self._episode_lengths()
        states = {name: self._open(_array("observations", name)) for name in self._parts}
        self.header = self._header(states)
        self._rows = int(self._lengths.sum())

    def demonstrations(self, role: Role | None, allocate: Allocate) -> Iterator[Demonstration]:
        """See `Source.demonstrations`."""
        rows = {name: self._open(name) for name in ("actions", "rewards", "log_probs", "terminals") if self._has(name)}
        parts = {name: self._part(name) for name in self._parts}
        for name, member in rows.items():
            if len(member) != self._rows:
                raise InputError(f"{self.path}: {len(member)} {name} for {self._rows} rows; expected one each")
            if member.dtype.kind not in "biuf":
                raise InputError(f"{self.path}: {name} are {member.dtype} of shape {member.shape}; expected numbers")
        members = {name: self._open(name) for name in EPISODE_ARRAYS if self._has(name)}
        nbytes = sum(member.nbytes for member in members.values()) + INTEGER_BYTES * len(self._lengths)
        self._memory.require(nbytes, f"{self.path}: {len(self._lengths):,} episodes")
        per_episode = {name: member.whole() for name, member in members.items()}
        for name, values in per_episode.items():
            if values.shape != self._lengths.shape or values.dtype.kind not in ("U" if name in TEXTS else "biuf"):
                raise InputError(
                    f"{self.path}: {len(np.atleast_1d(values))} entries in {name!r} for {len(self._lengths)} episodes, "
                    f"{values.dtype} of shape {values.shape}; expected one {'text' if name in TEXTS else 'bool'} each"
                )
        for index, length in enumerate(self._lengths.tolist()):
            about = {name: values[index] for name, values in per_episode.items()}
            yield self._episode(index, length, rows, parts, about, role, allocate)

    def _episode(
        self,
        index: int,
        length: int,
        rows: Mapping[str, Member],
        parts: Mapping[str, _Part],
        about: Mapping[str, Any],
        role: Role | None,
        allocate: Allocate,
    ) -> Demonstration:
        where = f"{self.path}: episode {index}"
        kind = self.header.metadata.state_kind
        found = {name: part.states(length, where, allocate) for name, part in parts.items()}
        states = kind.whole(found)
        final = self._imitation or any(part.goes_on for part in parts.values())
        # Without a final state, the result of the last action is unknown, so the last action is dropped.
        steps = len(states) - 1
        rewards = step_rewards(rows["rewards"].floats(length), steps) if "rewards" in rows else None
        actions = None
        if "actions" in rows:
            member = rows["actions"]
            actions = member.take(allocate((length, *member.shape[1:]), member.dtype))[:steps]
        ended = bool(about.get("terminated", about.get("terminal", False)))
        if "terminals" in rows:
            ended = bool(rows["terminals"].rows(length)[-1:].any()) and final
        trajectory = build(
            states,
            where,
            self.header.metadata.fields,
            kind=self.header.metadata.kind,
            actions=actions,
            extra_info=str(about.get("instructions", "")),
            rewards=rewards,
            log_probs=rows["log_probs"].floats(length)[:steps] if "log_probs" in rows else None,
            terminated=ended,
            truncated=bool(about.get("truncated", False)),
        )
        return Demonstration(
            trajectory,
            stated_role(role or str(about.get("roles", self.header.role)), where),
            unicode_text(str(about.get("tasks", "default")), where),
            stated_split(str(about.get("splits", "")), where),
        )

    def _episode_lengths(self) -> NDArray[np.int64]:
        if not self._imitation:
            lengths = self._open("episode_lengths").whole()
            rows = len(self._open(_array("observations", self._parts[0])))
            least = 0 if "final_observations" in self._names else 1
            if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or (lengths < least).any():
                raise InputError(
                    f"{self.path}: episode_lengths are {lengths.dtype} of shape {lengths.shape}"
                    f"{f', the least {lengths.min()}' if lengths.size and lengths.dtype.kind in 'iu' else ''}; "
                    f"expected one count of at least {least} for each episode"
                )
            if (lengths > rows).any() or lengths.sum() != rows:
                raise InputError(
                    f"{self.path}: episode_lengths of shape {lengths.shape} sum to {lengths.sum()} for {rows} "
                    "observations; expected one count for each episode, with this number as their sum"
                )
        else:
            indices, rows = self._open("indices").whole(), len(self._open("actions"))
            if indices.ndim != 1 or indices.dtype.kind not in "iu":
                raise InputError(
                    f"{self.path}: indices are {indices.dtype} of shape {indices.shape}; expected the row at which "
                    "each trajectory but the first begins"
                )
            lengths = np.diff(np.concatenate([[0], indices.astype(np.int64), [rows]]))
            if (lengths < 0).any() or len(self._open(_array("observations", self._parts[0]))) != rows + len(lengths):
                raise InputError(
                    f"{self.path}: {len(self._open('observations'))} obs for {rows} acts in {len(lengths)} "
                    "trajectories; expected one more obs than acts in each"
                )
        if not len(lengths):
            raise InputError(f"{self.path}: no episodes; expected at least one trajectory")
        return lengths.astype(np.int64)

    def _header(self, states: Mapping[str, Member]) -> Header:
        layout = [PartLayout(name, _stored(member), member.shape[1:]) for name, member in states.items()]
        if KEY in self._names:
            header = Header.from_json(str(self._open(KEY).whole()), str(self.path))
            require_numbers(header.metadata.state_kind, str(self.path), "npz")
            header = replace(header, role="mixed") if header.role is None and "roles" in self._names else header
        else:
            kinds = kinds_of_parts(layout)
            if not kinds:
                raise InputError(
                    f"{self.path}: observations of shape {next(iter(states.values())).shape}; expected (N, n) for "
                    "vectors, (N, h, w, 3) for grids, or (N, h, w, c) bytes for images"
                )
            header = Header(
                Metadata(kinds[-1].name),
                role="mixed" if "roles" in self._names else None,
                kinds=tuple(kind.name for kind in kinds) if len(kinds) > 1 else (),
            )
        kind = header.metadata.state_kind
        kind.require_names([part.name for part in layout], str(self.path))
        for part in layout:
            if (part.name or part.is_text) and not kind.stores(part):
                member = states[part.name]
                raise InputError(
                    f"{self.path}: {_array('observations', part.name)} are {member.dtype} of shape {member.shape}; "
                    f"expected numbers{' or texts' if part.name else ''}"
                )
        return header

    def _part(self, name: str) -> _Part:
        """A reader for one part of the states, such as the array `observations/camera`.

        Raises:
            InputError: arrays whose lengths do not match.
        """
        states = self._open(_array("observations", name))
        following = {kind: _array(kind, name) for kind in ("final_observations", "next_observations")}
        kind = next((kind for kind, array in following.items() if self._has(array)), "")
        part = _Part(self.path, states, self._open(following[kind]) if kind else None, kind, self._imitation)
        expected = len(self._lengths) if kind == "final_observations" else self._rows
        if part.following is not None and len(part.following) != expected:
            raise InputError(
                f"{self.path}: {len(part.following)} {following[kind]} for {expected} "
                f"{'episodes' if kind == 'final_observations' else 'rows'}; expected one each"
            )
        if len(states) != self._rows + (len(self._lengths) if self._imitation else 0):
            raise InputError(f"{self.path}: {len(states)} observations of {name!r}; expected {self._rows}")
        return part

    def _has(self, name: str) -> bool:
        return self._name(name) in self._names

    def _open(self, name: str) -> Member:
        return Member(self._archive, self._name(name), self.path, self._memory)

    def _name(self, name: str) -> str:
        if self._imitation:
            return {plain: theirs for theirs, plain in IMITATION.items()}.get(name, name)
        return name


PART = "/"
"""Separator between `observations` and the name of a part, as in `observations/camera`. A state with named parts is a
record of several arrays or texts."""


def part_names(names: Iterable[str], array: str) -> list[str]:
    """The sorted names of the states' parts in an archive; [""] if the states have no named parts.

    Args:
        names: names of all arrays in the archive.
        array: name of the array with the states, such as `observations`.
    """
    named = sorted(name.removeprefix(f"{array}{PART}") for name in names if name.startswith(f"{array}{PART}"))
    return named if named and array not in names else [""]


def _array(array: str, part: str) -> str:
    return f"{array}{PART}{part}" if part else array


def _stored(member: Member) -> str:
    """NumPy's code for the type of a part's numbers, such as `<f8`; "" for texts."""
    return "" if member.dtype.kind in "SU" else member.dtype.str


class _Part:
    """A reader for one part of the states in an archive.

    Args:
        path: path of the archive.
        observations: array with the rows of the part.
        following: array with further rows of the part (see `kind`); None if the archive has no such array.
        kind: "final_observations" if `following` has a row for the final state of each episode; "next_observations" if
            it has a row for the next state after each row of `observations`; "" without `following`.
        whole: whether the rows of `observations` include the last state of each episode.
    """

    def __init__(self, path: Path, observations: Member, following: Member | None, kind: str, whole: bool) -> None:
        self.following, self.goes_on = following, following is not None
        self._path, self._observations, self._kind, self._whole = path, observations, kind, whole
        found = observations.dtype, observations.shape[1:]
        if following is not None and not self._text and (following.dtype, following.shape[1:]) != found:
            raise InputError(
                f"{path}: {kind} are {following.dtype} of shape {following.shape}; expected numbers, and states "
                "of one shape and type"
            )

    @property
    def _text(self) -> bool:
        return not _stored(self._observations)

    def states(self, length: int, where: str, allocate: Allocate) -> NDArray[Any]:
        """The part's values in all states of the next episode.

        Args:
            length: number of rows of the episode.
            where: file and episode, for messages.
            allocate: function that returns the array.

        Raises:
            InputError: numbers in `next_observations` that differ from the observations one row later, or invalid
                texts.
        """
        observations, following = self._observations, self.following
        final = self._whole or self.goes_on
        if self._text:
            return self._texts(length, where, allocate)
        states = allocate((length + final, *observations.shape[1:]), observations.dtype)
        observations.take(states if self._whole else states[:length])
        if following is not None and self._kind == "final_observations":
            following.take(states[length:])
        elif following is not None:
            after = following.rows(length)
            if not np.array_equal(after[:-1], states[1:length], equal_nan=after.dtype.kind == "f"):
                raise InputError(
                    f"{where}: next_observations are not the observations one row later; "
                    "expected rows in order, and episode_lengths that cut them where episodes end"
                )
            states[length:] = after[-1:]
        return states

    def _texts(self, length: int, where: str, allocate: Allocate) -> NDArray[Any]:
        count = 1 if self._kind == "final_observations" else length
        rows = self._observations.rows(length + self._whole)
        if self.following is not None:
            rows = np.concatenate([rows, self.following.rows(count)[-1:]])
        found = rows.tolist()
        try:
            texts = [text.decode() if isinstance(text, bytes) else text for text in found]
            return pack(texts, allocate)
        except (UnicodeDecodeError, UnicodeEncodeError):
            raise InputError(f"{where}: a text that is not Unicode; expected Unicode: write the file again") from None


def open_npz(file: Path, memory: Memory) -> Source:
    """Open an npz archive: in a layout of this module, or in another layout that `foreign.arrays` reads."""
    return open_foreign(file, memory) if is_foreign(file) else NpzSource(file, memory)


TEXTS = ("instructions", "tasks", "roles", "splits")
EPISODE_ARRAYS = (*TEXTS, "terminated", "truncated", "terminal")
"""Optional arrays with one entry per episode."""
