"""Reads npz archives: plain arrays with episode lengths, and the layout of the `imitation` library.

Plain: `observations (N, ...)`, `actions (N, ...)`, `episode_lengths (n,)`, and if the source has them
`rewards (N,)`, `log_probs (N,)`, `terminals (N,)`, and the state that follows each episode, as
`next_observations (N, ...)` or `final_observations (n, ...)`. If neither holds the state after the last action,
that action is left out: an episode of L rows is then L states and L-1 actions.

`imitation`: `obs (N+n, ...)`, `acts (N, ...)`, `indices (n-1,)`, `terminal (n,)`, `rews (N,)`; its `infos` is
a pickle and stays unread. Whatever else is pickled is refused.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.header import KEY, Header, require_numbers
from grace_irl.demos.memory import Memory
from grace_irl.demos.npz.member import DAMAGED, Member
from grace_irl.demos.source import build, stated_role, stated_split, total_bytes, unicode_text
from grace_irl.demos.trajectory import Demonstration, Metadata, Role
from grace_irl.errors import InputError
from grace_irl.states import kind_of_parts
from grace_irl.states.kind import Allocate, PartLayout

INTEGER_BYTES = 40
"""Of a Python integer in a list."""

IMITATION = {"obs": "observations", "acts": "actions", "rews": "rewards"}


class NpzSource:
    """An npz archive of either layout, opened (see `Source`).

    Args:
        path: of it.
        memory: of the set.

    Raises:
        InputError: not an npz, truncated, pickled, of another layout, or larger than the memory.
    """

    exact = True

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
        needed = ["obs", "acts", "indices"] if self._imitation else ["observations", "episode_lengths"]
        missing = [name for name in needed if name not in self._names]
        if missing:
            raise InputError(
                f"{path}: no array {missing[0]!r} among {', '.join(sorted(self._names))[:200] or 'none'}; "
                "expected observations, "
                "actions and episode_lengths, or imitation's obs, acts and indices"
            )
        self._lengths = self._episode_lengths()
        states = self._open("observations")
        self.header = self._header(states)
        actions = self._open("actions") if self._has("actions") else None
        self._rows = int(self._lengths.sum())
        rows = self._rows + len(self._lengths)
        sizes = [member.row_bytes for member in (states, actions) if member is not None]
        self.capacity = total_bytes(2 * len(self._lengths), rows * sum(sizes))

    def demonstrations(self, role: Role | None, allocate: Allocate) -> Iterator[Demonstration]:
        """See `Source.demonstrations`."""
        names = ("observations", "actions", "rewards", "log_probs", "terminals", "next_observations")
        rows = {name: self._open(name) for name in names if self._has(name)}
        if self._has("final_observations"):
            rows["final_observations"] = self._open("final_observations")
        for name, member in rows.items():
            expected = len(self._lengths) if name == "final_observations" else self._rows
            if name not in ("observations", "next_observations") and len(member) != expected:
                raise InputError(f"{self.path}: {len(member)} {name} for {expected} rows; expected one each")
            like = rows["observations"] if name.endswith("_observations") else member
            if member.dtype.kind not in "biuf" or (member.shape[1:], member.dtype) != (like.shape[1:], like.dtype):
                raise InputError(
                    f"{self.path}: {name} are {member.dtype} of shape {member.shape}; expected numbers, and states "
                    "of one shape and type"
                )
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
            yield self._episode(index, length, rows, about, role, allocate)

    def _episode(
        self,
        index: int,
        length: int,
        rows: Mapping[str, Member],
        about: Mapping[str, Any],
        role: Role | None,
        allocate: Allocate,
    ) -> Demonstration:
        where = f"{self.path}: episode {index}"
        observations = rows["observations"]
        final = self._imitation or "next_observations" in rows or "final_observations" in rows
        states = allocate((length + final, *observations.shape[1:]), observations.dtype)
        observations.take(states if self._imitation else states[:length])
        if "final_observations" in rows:
            rows["final_observations"].take(states[length:])
        elif "next_observations" in rows:
            following = rows["next_observations"].rows(length)
            if not np.array_equal(following[:-1], states[1:length], equal_nan=following.dtype.kind == "f"):
                raise InputError(
                    f"{where}: next_observations are not the observations one row later; "
                    "expected rows in order, and episode_lengths that cut them where episodes end"
                )
            states[length:] = following[-1:]
        # Without a final state, what the last action led to is not recorded.
        steps = len(states) - 1
        parts = {name: rows[name].floats(length)[:steps] for name in ("rewards", "log_probs") if name in rows}
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
            rewards=parts.get("rewards"),
            log_probs=parts.get("log_probs"),
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
            rows = len(self._open("observations"))
            least = 0 if "final_observations" in self._names else 1
            if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or (lengths < least).any():
                raise InputError(
                    f"{self.path}: episode_lengths are {lengths.dtype} of shape {lengths.shape}"
                    f"{f', the least {lengths.min()}' if lengths.size and lengths.dtype.kind in 'iu' else ''}; "
                    f"expected one count of at least {least} for each episode"
                )
            if (lengths > rows).any() or lengths.sum() != rows:
                raise InputError(
                    f"{self.path}: episode_lengths of shape {lengths.shape} sum to {lengths.sum()} for "
                    f"{rows} observations; "
                    "expected one count for each episode that sum to all of them"
                )
        else:
            indices, rows = self._open("indices").whole(), len(self._open("actions"))
            if indices.ndim != 1 or indices.dtype.kind not in "iu":
                raise InputError(
                    f"{self.path}: indices are {indices.dtype} of shape {indices.shape}; expected the row at which "
                    "each trajectory but the first begins"
                )
            lengths = np.diff(np.concatenate([[0], indices.astype(np.int64), [rows]]))
            if (lengths < 0).any() or len(self._open("observations")) != rows + len(lengths):
                raise InputError(
                    f"{self.path}: {len(self._open('observations'))} obs for {rows} acts in {len(lengths)} "
                    "trajectories; "
                    "expected one more obs than acts in each"
                )
        if not len(lengths):
            raise InputError(f"{self.path}: no episodes; expected at least one trajectory")
        return lengths.astype(np.int64)

    def _header(self, states: Member) -> Header:
        if KEY in self._names:
            header = Header.from_json(str(self._open(KEY).whole()), str(self.path))
            require_numbers(header.metadata.state_kind, str(self.path), "npz")
            return replace(header, role="mixed") if header.role is None and "roles" in self._names else header
        kind = kind_of_parts([PartLayout("", states.dtype.str, states.shape[1:])])
        if kind is None:
            raise InputError(
                f"{self.path}: observations of shape {states.shape}; expected (N, n) for vectors or (N, h, "
                "w, 3) for grids"
            )
        return Header(Metadata(kind.name), role="mixed" if "roles" in self._names else None)

    def _has(self, name: str) -> bool:
        return self._name(name) in self._names

    def _open(self, name: str) -> Member:
        return Member(self._archive, self._name(name), self.path, self._memory)

    def _name(self, name: str) -> str:
        if self._imitation:
            return {plain: theirs for theirs, plain in IMITATION.items()}.get(name, name)
        return name


TEXTS = ("instructions", "tasks", "roles", "splits")
EPISODE_ARRAYS = (*TEXTS, "terminated", "truncated", "terminal")
"""Arrays with one entry for each episode, all optional."""
