"""Functions that bring the components of vectors into the order in which a reward reads them.

A table may hold the components in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from grace_irl.demos.source import Source
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Role, Trajectory
from grace_irl.errors import InputError
from grace_irl.states.kind import Allocate


def in_order(demonstrations: Demonstrations, fields: Sequence[str], name: str) -> Demonstrations:
    """The demonstrations, with the components of their vectors in the order in which a reward reads them.

    Args:
        demonstrations: the demonstrations. If they name no components, they are returned unchanged.
        fields: names of the components in the order of the reward; () accepts any order.
        name: name of the demonstrations, for messages.

    Raises:
        InputError: the demonstrations name other components than `fields`. Or they name none, and their states are not
            vectors of `len(fields)` numbers.
    """
    known = demonstrations.metadata.fields
    if fields and not known:
        for item in demonstrations.items:
            require_width(item.trajectory, fields, name)
    if not fields or not known or known == tuple(fields):
        return demonstrations
    if sorted(known) != sorted(fields):
        raise InputError(f"{name}: components {listed(known)}; expected {listed(fields)}, as the reward reads them")
    places = [known.index(each) for each in fields]
    items = tuple(
        replace(item, trajectory=replace(item.trajectory, states=item.trajectory.states[:, places]))
        for item in demonstrations.items
    )
    return replace(demonstrations, metadata=replace(demonstrations.metadata, fields=tuple(fields)), items=items)


class SourceInOrder:
    """A source with the components of its vectors in another order (see `Source`).

    Args:
        source: the source.
        fields: names of the components in the new order.
    """

    def __init__(self, source: Source, fields: Sequence[str]) -> None:
        known = source.header.metadata.fields
        self.path, self._source = source.path, source
        self._places = [known.index(each) for each in fields]
        self.header = replace(source.header, metadata=replace(source.header.metadata, fields=tuple(fields)))
        self.nbytes = int(getattr(source, "nbytes", 0))

    def demonstrations(self, role: Role | None, allocate: Allocate) -> Iterator[Demonstration]:
        """See `Source.demonstrations`."""
        for item in self._source.demonstrations(role, allocate):
            rows = np.asarray(item.trajectory.states)  # no copy: these states are arrays of vectors
            rows[...] = rows[:, self._places]
            yield replace(item, trajectory=replace(item.trajectory, states=rows))


def source_in_order(source: Source, fields: Sequence[str]) -> Source:
    """The source, with the components of its vectors in the order of `fields`.

    A source that names other components, or none, is returned unchanged.
    """
    known = source.header.metadata.fields
    if known == tuple(fields) or sorted(known) != sorted(fields):
        return source
    return SourceInOrder(source, fields)


def require_width(trajectory: Trajectory, fields: Sequence[str], name: str) -> None:
    """Check that the states of a trajectory are vectors with one number for each component that a reward reads.

    Raises:
        InputError: states of another kind or width. `name` names the demonstrations.
    """
    kind = trajectory.state_kind
    try:
        if kind.named_fields:
            kind.check_fields(trajectory.states, fields, name)
            return
    except InputError:
        pass
    found = kind.describe(trajectory.states)
    raise InputError(f"{name}: {found}; expected {len(fields)} numbers, as the reward reads them: {listed(fields)}")


def require_same(
    known: Sequence[str], fields: Sequence[str], name: str, reward: str, order: str = "choose it with --state-columns"
) -> None:
    """Check that demonstrations name the components of a reward in the order in which the reward reads them.

    Args:
        known: names of the components in the demonstrations; () if they name none, which is accepted.
        fields: names of the components in the reward; () accepts any order.
        name, reward: name of the demonstrations and of the reward, for messages.
        order: what to do if the order is another, for messages.

    Raises:
        InputError: other names, or another order.
    """
    if fields and known and tuple(fields) != tuple(known):
        how = f"in this order: {order}" if sorted(fields) == sorted(known) else "of these names"
        raise InputError(f"{reward} reads {listed(fields)}, and {name} have {listed(known)}; expected components {how}")


def listed(fields: Sequence[str]) -> str:
    """The first names of components, for messages."""
    return ", ".join(fields[:8]) + (", …" if len(fields) > 8 else "")
