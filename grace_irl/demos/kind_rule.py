"""The choice of the kind of state (vector, grid, …) for a set whose states fit several kinds by shape and dtype.

The criteria are the same for all file formats.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from grace_irl.demos.header import Header
from grace_irl.demos.trajectory import Metadata
from grace_irl.errors import InputError
from grace_irl.states import kind_named
from grace_irl.states.kind import KindChoice, StateKind, States
from grace_irl.states.tally import ValueTally

MOST_NAMED = 2  # maximum number of file names in a message


def choose_kind(
    headers: Sequence[Header],
    names: Sequence[str | Path],
    states: Callable[[int], Iterable[States]],
    asked: str = "",
) -> KindChoice | None:
    """Choose the kind of a set's states if, by shape and dtype, the states fit several kinds.

    The first criterion that applies decides:

    1. a kind that is certain, because a file states it, or because only this kind fits the states of a file;
    2. the user's choice (`--kind`);
    3. the values in all files whose kind is not certain: a grid has few different values per channel.

    The states of files whose kind is not certain are read an extra time. Reading stops when no further value can change
    the result.

    Args:
        headers: headers (metadata) of the files.
        names: names of the files.
        states: function from the index of a file to the states of its trajectories.
        asked: name of the kind that the user chose, or "".

    Returns:
        The choice; None if the states fit one kind only. The result is also None if the kinds of two files are
        certain and differ; `header.merge` refuses such files later.

    Raises:
        InputError: the user's choice is no kind, or is not the kind that is certain for a file. Or the states of a
            file do not fit the user's choice, or the kind that is certain for another file.
    """
    if asked:
        kind_named(asked)
    certain: dict[str, int] = {}
    for place, header in enumerate(headers):
        if not header.kinds:
            certain.setdefault(header.metadata.kind, place)
    silent = [place for place, header in enumerate(headers) if header.kinds]
    _require_asked(asked, {kind: str(names[place]) for kind, place in certain.items()}, headers)
    if len(certain) > 1:
        return None
    if not silent:
        return _stated(headers, names)
    left = [kind for kind in headers[silent[0]].kinds if all(kind in headers[place].kinds for place in silent)]
    every = (each for place in silent for each in states(place))
    if not certain and not asked:
        return of_values(every, left)
    chosen = kind_named(next(iter(certain), asked))
    name = names[silent[0]]
    beside = f"beside {names[next(iter(certain.values()))]} with {chosen.plural}" if certain else f"for --kind {asked}"
    if chosen.name not in left:
        held = " or ".join(kind_named(kind).plural for kind in left)
        raise InputError(f"{name}: {held} {beside}; expected {_expected(certain, left)}")
    if objection := _objection(chosen, every):
        raise InputError(
            f"{name}: {objection} {beside}; expected "
            f"{_expected(certain, [kind for kind in left if kind != chosen.name])}"
        )
    if certain:
        return KindChoice(chosen, f"{Path(names[certain[chosen.name]]).name} states it")
    return KindChoice(chosen, "chosen with --kind", tuple(kind_named(kind) for kind in left if kind != chosen.name))


def _expected(certain: Collection[str], left: Sequence[str]) -> str:
    return "one kind in a set: fit each by itself" if certain else f"--kind {' or '.join(left)}, or none of them"


def of_values(trajectories: Iterable[States], kinds: Sequence[str]) -> KindChoice:
    """Choose among several kinds by the values of the states.

    Reading stops when no further value can change the choice.

    Args:
        trajectories: states of each trajectory.
        kinds: names of the possible kinds, in order of preference. The last kind is chosen if the values fit no other.
    """
    values, rivals = ValueTally(), [kind_named(kind) for kind in kinds]
    for states in trajectories:
        values.add(states)
        if not any(kind.likely(values) for kind in rivals[:-1]):
            break
    chosen = next(kind for kind in rivals if kind.likely(values))
    return KindChoice(chosen, chosen.seen_in(values), tuple(kind for kind in rivals if kind is not chosen))


def choose_observed(
    trajectories: Iterable[States], kinds: Sequence[str], name: str, asked: str = ""
) -> KindChoice | None:
    """Choose the kind of an environment's states. Return None if only one kind is possible and the user chose none.

    Args:
        trajectories: states of each trajectory.
        kinds: names of the kinds that the environment allows.
        name: name of the environment.
        asked: name of the kind that the user chose, or "".

    Raises:
        InputError: the states do not allow the user's choice.
    """
    if not asked:
        return of_values(trajectories, kinds) if len(kinds) > 1 else None
    chosen = kind_named(asked)
    objection = _objection(chosen, trajectories) if asked in kinds else f"its states are of kind {' or '.join(kinds)}"
    if objection:
        raise InputError(f"--kind {asked}: {name}: {objection}; expected another kind: leave --kind out")
    return KindChoice(chosen, "chosen with --kind", tuple(kind_named(kind) for kind in kinds if kind != asked))


def with_kind(header: Header, choice: KindChoice | None) -> Header:
    """A copy of a header with the kind chosen for the set.

    The header is returned unchanged if its kind is certain already, or if `choice` is None.
    """
    if choice is None or not header.kinds:
        return header
    return replace(header, metadata=of_kind(header.metadata, choice.kind), kinds=())


def of_kind(metadata: Metadata, kind: StateKind) -> Metadata:
    """A copy of the metadata with another kind. If the view has the name of the old kind, the view is renamed too."""
    return replace(metadata, kind=kind.name, view=kind.name if metadata.view == metadata.kind else metadata.view)


def _objection(kind: StateKind, trajectories: Iterable[States]) -> str:
    """The reason why the states cannot be of this kind; "" if they can."""
    values = ValueTally()
    for states in trajectories:
        values.add(states)
        if found := kind.objection(values):
            return found
    return ""


def _require_asked(asked: str, certain: dict[str, str], headers: Sequence[Header]) -> None:
    for kind, name in certain.items():
        if asked and kind != asked:
            way = "leave --kind out"
            if any(asked in header.rivals for header in headers):
                way = f"restate it (grace-irl demos convert --kind {asked}), or {way}"
            raise InputError(f"--kind {asked}: {name} holds {kind_named(kind).plural}; expected --kind {kind}: {way}")


def _stated(headers: Sequence[Header], names: Sequence[str | Path]) -> KindChoice | None:
    """The choice of the kind that all files state; None if the states fit no other kind."""
    if not headers or len(headers[0].rivals) < 2:
        return None
    named = ", ".join(Path(name).name for name in names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    reason = f"{named}{more} {'state' if len(names) > 1 else 'states'} it"
    return KindChoice(headers[0].metadata.state_kind, reason)
