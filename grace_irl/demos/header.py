"""The header of a demo file: a JSON object with facts about the data. All formats that have headers use this object."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from grace_irl.demos.trajectory import Demonstration, Metadata, Role, Trajectory
from grace_irl.errors import InputError
from grace_irl.pages import page
from grace_irl.states import KINDS, kinds_of_parts
from grace_irl.states.kind import PartLayout, StateKind
from grace_irl.toml import from_json

KEY = "grace_irl"
"""Name of the header in Parquet's key-value metadata, in an npz archive and in Minari's metadata."""

FORMAT_VERSION = 1

MOST_NAMED = 3
"""Maximum number of file names in a line of `read_notes`."""


NOTHING = Metadata("")
"""Metadata of a set without any stated facts."""

TYPES = frozenset(np.dtype(code).name for code in np.typecodes["AllInteger"] + np.typecodes["AllFloat"])
"""NumPy names of the integer and float dtypes."""

StatedRole = Literal["expert", "negative", "mixed"] | None


@dataclass(frozen=True)
class Span:
    """The first and the last episode of a table that another tool wrote.

    Attributes:
        first: number or name of the first episode, from the table.
        last: number or name of the last episode, from the table. It is "" if a column such as `terminated` marks the
            end of this episode, because the episode cannot go on in another file.
        episodes: number of episodes in the file.
        begins, ends: step numbers of the first and the last row; None if no column numbers the steps.
    """

    first: str
    last: str
    episodes: int
    begins: float | None = None
    ends: float | None = None

    def goes_on_in(self, other: Span) -> bool:
        """Whether the first episode of `other` is the rest of the last episode of this file.

        Both episodes must have the same number or name. If both files number the steps, the first step of `other` must
        be above the last step of this file. If one of them does not number the steps, the result is False for a file
        with one episode: all files with one episode may use the same number, so an equal number shows nothing.
        """
        if not self.last or self.last != other.first:
            return False
        if self.ends is None or other.begins is None:
            return self.episodes > 1
        return other.begins > self.ends


@dataclass(frozen=True)
class Header:
    """The header of one file.

    Attributes:
        metadata: kind, fields, environment, view and label of the data.
        role: role of every episode, "mixed" if each episode states its own role, or None if the file states no role.
        tasks: task names in order of first appearance.
        shape: shape of one state, with None for a dimension whose size varies between trajectories.
        dtype: NumPy name of the states' dtype; "str" for screens, which have shape ().
        action_shape: shape of one action, () for a number, or None without actions.
        parts: layout of each named part of a state, sorted by name; () if states have no named parts.
        kinds: names of the possible kinds, if the file states no kind and the states fit several kinds; else ().
            `metadata.kind` is provisional until `grace_irl.demos.kind_rule` has chosen a kind.
        notes: lines for the user about how the file was read. They are not stored in files.
        span: the first and the last episode of a table; None if unknown. It is not stored in files.
        format: version of the JSON object's format.
    """

    metadata: Metadata = NOTHING
    role: StatedRole = None
    tasks: tuple[str, ...] = ()
    shape: tuple[int | None, ...] = ()
    dtype: str = ""
    action_shape: tuple[int, ...] | None = None
    parts: tuple[PartLayout, ...] = ()
    kinds: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    span: Span | None = None
    format: int = FORMAT_VERSION

    @property
    def rivals(self) -> tuple[str, ...]:
        """Names of the kinds that the dtype and shape of the states allow.

        The result is `kinds` if there are any. Else it is () for texts, named parts and an unknown dtype.
        """
        if self.kinds or self.parts or self.dtype not in TYPES:
            return self.kinds
        shape = tuple(1 if side is None else side for side in self.shape)
        return tuple(kind.name for kind in kinds_of_parts([PartLayout("", np.dtype(self.dtype).str, shape)]))

    def to_json(self) -> str:
        """The header as a JSON text with sorted keys, so equal headers give equal texts."""
        about = {**asdict(self), **asdict(self.metadata)}
        del about["metadata"], about["kinds"], about["notes"], about["span"]
        if not self.parts:
            del about["parts"]
        return json.dumps(about, sort_keys=True, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes, where: str) -> Header:
        """Parse a text from `to_json`. Unknown keys are ignored, so other programs may add keys.

        Raises:
            InputError: not a header, or a header from a newer version.
        """
        try:
            header = replace(from_json(cls, text), metadata=from_json(Metadata, text), kinds=(), notes=(), span=None)
            sides = (side for part in header.parts for side in part.shape)
            if any(n is not None and n < 0 for n in (*header.shape, *(header.action_shape or ()), *sides)):
                raise ValueError("a shape with a side below 0")
            for part in header.parts:
                if part.dtype and np.dtype(part.dtype).kind not in "biuf":
                    raise ValueError(f"a part with dtype {part.dtype[:40]!r}")
        except (ValueError, TypeError) as error:
            raise InputError(
                f"{where}: metadata {KEY!r} is not usable ({str(error)[:200]}); expected the JSON object of "
                f"{page('demonstrations')}"
            ) from None
        if header.format > FORMAT_VERSION:
            found = f"{where}: format {header.format}; this version reads up to {FORMAT_VERSION}"
            raise InputError(f"{found}: upgrade grace-irl")
        kind = header.metadata.kind
        if kind not in KINDS:
            found = f"{where}: kind {reprlib.repr(kind)} in the metadata"
            raise InputError(f"{found}; expected one of {', '.join(map(repr, KINDS))}")
        KINDS[kind].require_names([part.name for part in header.parts] or ["-"], where)
        return header


def require_numbers(kind: StateKind, where: str, format: str) -> None:
    """Check that the states of a kind are not texts, for a format that cannot store such states.

    Raises:
        InputError: the states are texts.
    """
    if kind.parsed:
        raise InputError(
            f"{where}: states of kind {kind.name!r} are texts of any length, which {format} cannot hold; "
            "expected a .parquet file: convert the data to Parquet"
        )


class HeaderBuilder:
    """A header under construction. A writer adds one demonstration at a time."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._roles: set[Role] = set()
        self._tasks: dict[str, None] = {}
        self._shape: tuple[int | None, ...] = ()
        self._dtype = ""
        self._action_shape: tuple[int, ...] | None = None
        self._parts: tuple[PartLayout, ...] = ()
        self._first: Trajectory | None = None

    def add(self, demonstration: Demonstration) -> None:
        """Update the header from one demonstration.

        Raises:
            InputError: the states are not of the set's kind. Or their named parts differ in name, type or shape from
                those of the first demonstration.
        """
        trajectory = demonstration.trajectory
        self._roles.add(demonstration.role)
        self._tasks[demonstration.task] = None
        kind = trajectory.state_kind
        if not self._metadata.state_kind.recognises(trajectory.states):
            raise InputError(
                f"{trajectory.source or 'trajectory'}: {kind.name} states in a set of {self._metadata.kind} states; "
                "expected one kind: write them to files of their own"
            )
        shape = kind.shape(trajectory.states)
        parts = tuple(part for part in kind.layout(trajectory.states) if part.name)
        if parts:
            self._first = self._first or trajectory
            if kind.signature(trajectory.states) != kind.signature(self._first.states):
                said = kind.unlike(trajectory.states, self._first.states, self._first.source or "the first")
                raise InputError(f"{trajectory.source or 'trajectory'}: {said}: write them to files of their own")
            self._parts = self._parts or parts
        self._shape = _common(self._shape, shape) if self._shape else shape
        self._dtype = self._dtype or kind.type_name(trajectory.states)
        if trajectory.actions is not None:
            self._action_shape = trajectory.actions.shape[1:]

    def header(self) -> Header:
        """The header of all demonstrations so far."""
        role: StatedRole = "mixed" if self._roles else None
        if len(self._roles) == 1:
            (role,) = self._roles
        return Header(
            self._metadata, role, tuple(self._tasks), self._shape, self._dtype, self._action_shape, self._parts
        )


def merge(headers: Sequence[Header], names: Sequence[str]) -> Metadata:
    """The common metadata of several files that are read as one set.

    All files must have the same kind. Files that state field names must state the same ones. An environment or view
    that differs between files is dropped, because a set may hold several tasks. The label rule comes from the first
    file that states a rule; files with only negative trajectories are considered last.

    Args:
        headers: one header per file.
        names: names of the files, for messages.

    Raises:
        InputError: different kinds or different field names, or an episode that lies in two files.
    """
    require_whole(headers, names)
    first = headers[0].metadata
    for header, name in zip(headers, names, strict=True):
        other = header.metadata
        if other.kind != first.kind:
            raise InputError(
                f"{name}: {other.kind} states beside {names[0]} with {first.kind} states; "
                "expected one kind in a set: fit each by itself"
            )
        if first.fields and other.fields and other.fields != first.fields:
            raise InputError(
                f"{name}: fields {_names(other.fields)} beside {names[0]} with {_names(first.fields)}; "
                "expected the same fields: convert one of them"
            )
        if other.fields and not first.fields:
            first = replace(first, fields=other.fields)
    environments = {header.metadata.environment for header in headers} - {""}
    views = {header.metadata.view for header in headers} - {""}
    experts_first = sorted(headers, key=lambda header: header.role == "negative")
    labels = [header.metadata.label for header in experts_first if header.metadata.label]
    return Metadata(
        kind=first.kind,
        fields=first.fields,
        environment=environments.pop() if len(environments) == 1 else "",
        view=views.pop() if len(views) == 1 else "",
        label=labels[0] if labels else "",
    )


def require_whole(headers: Sequence[Header], names: Sequence[str]) -> None:
    """Check that no episode lies in two parts of one table, such as `part-0.csv` and `part-1.csv`.

    Args:
        headers: one header per file.
        names: paths of the files. Files whose paths differ only in digits are parts of one table.

    Raises:
        InputError: the last episode of a file goes on in another one.
    """
    parts: dict[str, list[tuple[list[int], str, Span]]] = {}
    for header, name in zip(headers, names, strict=True):
        if header.span is not None:
            numbers = [int(each) for each in re.findall(r"\d+", name)]
            parts.setdefault(re.sub(r"\d+", "#", name), []).append((numbers, name, header.span))
    for table in parts.values():
        for (_, before, one), (_, name, other) in pairwise(sorted(table, key=lambda part: part[0])):
            if name != before and one.goes_on_in(other):
                raise InputError(
                    f"{name}: episode {other.first} begins in {before}; expected each episode in one file: join the "
                    "files, or give the episodes of different files different numbers"
                )


def _common(one: Sequence[int | None], other: Sequence[int]) -> tuple[int | None, ...]:
    return tuple(a if a == b else None for a, b in zip(one, other, strict=True))


def _names(fields: Sequence[str], limit: int = 4) -> str:
    return ", ".join(fields[:limit]) + (", …" if len(fields) > limit else "")


def role_of(header: Header, path: str | Path, remedy: str = "pass it with --experts or --negatives") -> Role | None:
    """The role of a file's episodes, from the metadata or else from the file name.

    The result is None if each episode states its own role.

    Args:
        header: header of the file.
        path: path of the file.
        remedy: words for the error message that tell the user how to give the role on the command line.

    Raises:
        InputError: neither the metadata nor the name gives a role.
    """
    stated = header.role
    if stated == "mixed":
        return None
    if stated is not None:
        return stated
    roles: tuple[Role, ...] = get_args(Role)
    for role in roles:
        if Path(path).stem.startswith(role):
            return role
    raise InputError(
        f"{path}: no role in the file, and its name starts with neither 'expert' nor 'negative'; expected a role: "
        f"rename the file, {remedy}, or write the role into it (grace-irl demos convert --role; in a table a column "
        "'label')"
    )


def read_notes(headers: Sequence[Header], by_name: Sequence[str]) -> tuple[str, ...]:
    """Lines for the user about how files were read.

    Args:
        headers: headers of the files.
        by_name: names of the files whose role comes from the file name.
    """
    found = list(dict.fromkeys(note for header in headers for note in header.notes))
    for role in get_args(Role):
        own = [name for name in by_name if Path(name).stem.startswith(role)]
        if own:
            more = f" and {len(own) - MOST_NAMED} more" if len(own) > MOST_NAMED else ""
            named = ", ".join(Path(name).name for name in own[:MOST_NAMED])
            found.append(f"{named}{more}: {role} trajectories, by the name of the file")
    return tuple(found)
