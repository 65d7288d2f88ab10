"""The order of vector components. A table may hold the components in another order than the reward reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError


def in_order(demonstrations: Demonstrations, fields: Sequence[str], name: str) -> Demonstrations:
    """The demonstrations, with the components of their vectors in the order in which a reward reads them.

    Args:
        demonstrations: the demonstrations, returned unchanged if they name no components.
        fields: names of the components in the order of the reward; () accepts any order.
        name: name of the demonstrations, for messages.

    Raises:
        InputError: the demonstrations name other components than `fields`.
    """
    known = demonstrations.metadata.fields
    if not fields or not known or known == tuple(fields):
        return demonstrations
    if sorted(known) != sorted(fields):
        raise InputError(f"{name}: components {_listed(known)}; expected {_listed(fields)}, as the reward reads them")
    places = [known.index(each) for each in fields]
    items = tuple(
        replace(item, trajectory=replace(item.trajectory, states=item.trajectory.states[:, places]))
        for item in demonstrations.items
    )
    return replace(demonstrations, metadata=replace(demonstrations.metadata, fields=tuple(fields)), items=items)


def _listed(fields: Sequence[str]) -> str:
    return ", ".join(fields[:8]) + (", …" if len(fields) > 8 else "")
