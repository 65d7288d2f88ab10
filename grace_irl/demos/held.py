"""Trajectories and demonstrations in memory as a `Source`, for a Python call that combines them with other data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from grace_irl.demos.header import HeaderBuilder
from grace_irl.demos.source import build, unicode_text
from grace_irl.demos.spelling import spelled_set
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.errors import InputError
from grace_irl.states import KINDS, kind_of, kinds_of
from grace_irl.states.kind import Allocate

OTHERS = [each.name for each in fields(Trajectory) if each.name not in ("states", "actions", "source", "kind")]


class HeldSource:
    """Demonstrations in memory as an open set (see `Source`). Trajectories keep all their attributes.

    Args:
        name: name of the argument, for messages.
        held: a set with its metadata, or trajectories and demonstrations without common metadata.

    Raises:
        InputError: no demonstrations, or trajectories of different kinds.
    """

    def __init__(self, name: str, held: Demonstrations | Sequence[Demonstration | Trajectory]) -> None:
        self.path = Path(name)
        if not held:
            raise InputError(f"{name}: no episodes; expected at least one")
        bare = any(isinstance(each, Trajectory) for each in held)
        kinds: tuple[str, ...] = ()
        if not isinstance(held, Demonstrations):
            items = tuple(each if isinstance(each, Demonstration) else Demonstration(each, "expert") for each in held)
            kinds = _kinds([each.trajectory for each in items])
            kind = KINDS[kinds[-1]]
            held = Demonstrations(Metadata(kind.name, view=kind.view), items)
        held = spelled_set(held, name)
        self._held = held
        builder = HeaderBuilder(held.metadata)
        for each in held:
            builder.add(each)
        header = builder.header()
        self.header = replace(
            header, role=None if bare else header.role, kinds=kinds if len(kinds) > 1 else (), notes=held.notes
        )

    def demonstrations(self, role: Role | None, allocate: Allocate) -> Iterator[Demonstration]:
        """See `Source.demonstrations`. The arrays are copies, because a set in memory is read-only."""
        metadata = self.header.metadata
        kind = metadata.state_kind
        for number, each in enumerate(self._held):
            trajectory = each.trajectory
            where = trajectory.source or f"{self.path}: episode {number}"
            parts = kind.parts(trajectory.states).items()
            copy = build(
                kind.whole({name: _copied(part, allocate) for name, part in parts}),
                where,
                metadata.fields,
                kind=kind.name,
                actions=None if trajectory.actions is None else _copied(trajectory.actions, allocate),
                **{name: getattr(trajectory, name) for name in OTHERS},
            )
            yield replace(
                each,
                trajectory=copy,
                role=role or each.role,
                task=unicode_text(each.task, where),
            )


def _kinds(trajectories: Sequence[Trajectory]) -> tuple[str, ...]:
    """The kinds that the states of all these trajectories may have. The preferred kind is the last.

    A `Trajectory` that gets no kind chooses one by its own values. The values of a whole set decide better. So the kind
    of a trajectory counts as stated only if the trajectory would not choose this kind by its own values.
    """
    stated = dict.fromkeys(each.kind for each in trajectories if each.kind != kind_of(each.states, each.source).name)
    common = [name for name in KINDS if all(KINDS[name] in kinds_of(each.states) for each in trajectories)]
    return tuple(stated)[:1] or tuple(common) or (trajectories[0].kind,)


def _copied(part: NDArray[Any], allocate: Allocate) -> NDArray[Any]:
    copy = allocate(part.shape, part.dtype)
    copy[...] = part
    return copy
