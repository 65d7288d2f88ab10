"""The view of grids, which writes states for prompts as lists of the cells that differ from a background."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Metadata
from grace_irl.propose.tokens import cut, estimate
from grace_irl.propose.views.actor import Code, Place, find_actor
from grace_irl.propose.views.words import Without, table

_BITS = 20  # maximum bits of each of a code's three numbers, so that all three fit into one integer


def codes_in(cells: NDArray[Any]) -> Counter[Code]:
    """Count the cells `(..., 3)` with each code."""
    flat = cells.reshape(-1, 3)
    if flat.size and (flat.min() < 0 or flat.max() >= 1 << _BITS):
        found, numbers = np.unique(flat, axis=0, return_counts=True)
        triples = found.tolist()
    else:  # sorting one packed number for each cell is a hundred times as fast as sorting three
        packed, numbers = np.unique(_packed(flat), return_counts=True)
        mask = (1 << _BITS) - 1
        triples = [(code >> 2 * _BITS, code >> _BITS & mask, code & mask) for code in packed.tolist()]
    return Counter(
        {(int(a), int(b), int(c)): number for (a, b, c), number in zip(triples, numbers.tolist(), strict=True)}
    )


def commonest(grids: Iterable[NDArray[Any]]) -> tuple[Code, ...]:
    """Find the two most frequent codes in grids `(..., 3)`, most frequent first. Equally frequent codes are sorted."""
    counts: Counter[Code] = Counter()
    for grid in grids:
        counts.update(codes_in(grid))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(code for code, _ in ranked[:2])


def backdrop(states: Sequence[NDArray[Any]], codes: Sequence[Code]) -> NDArray[np.int64]:
    """Make the background `(h, w, 3)` of grids of one size. Each cell gets the code in `codes` that it has most often.

    Args:
        states: arrays `(n, h, w, 3)` of one size.
        codes: codes of the background, most frequent first. A cell that never has any of them gets the first.
    """
    votes = sum(np.stack([(each == np.array(code)).all(axis=3).sum(axis=0) for code in codes]) for each in states)
    best: NDArray[np.int64] = np.array(codes, dtype=np.int64)[np.asarray(votes).argmax(axis=0)]
    return best


def runs(mask: NDArray[np.bool_]) -> str:
    """Write the true cells of a mask `(h, w)` as straight runs, such as `[0,0..7] [1..6,0] [3,4]`.

    The longest runs come first, and each cell is in one run only, so that a frame of walls takes four entries.
    """
    left = mask.copy()
    written = []
    while left.any():
        found = _lines(left)  # a run that lost a cell to a crossing run is shorter now, so it may come later
        longest = max(map(_length, found))
        for first, last in found:
            cells = left[first[0] : last[0] + 1, first[1] : last[1] + 1]
            if _length((first, last)) == longest and cells.all():
                cells[:] = False
                written.append(f"[{_range(first[0], last[0])},{_range(first[1], last[1])}]")
    return " ".join(written)


def _lines(mask: NDArray[np.bool_]) -> list[tuple[Place, Place]]:
    """Find all runs that cannot be extended. Return the first and last cell of each, horizontal runs first."""
    found: list[tuple[Place, Place]] = []
    for array, transposed in ((mask, False), (mask.T, True)):
        for row, line in enumerate(array):
            edges = np.flatnonzero(np.diff(np.concatenate(([0], line.astype(np.int8), [0]))))
            for start, stop in edges.reshape(-1, 2).tolist():
                ends: tuple[Place, Place] = ((row, start), (row, stop - 1))
                found.append(((start, row), (stop - 1, row)) if transposed else ends)
    return found


def _length(ends: tuple[Place, Place]) -> int:
    return ends[1][0] - ends[0][0] + ends[1][1] - ends[0][1]


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"


def _packed(flat: NDArray[Any]) -> NDArray[np.int64]:
    """Pack the three numbers of each cell into one number. Each of the three has at most `_BITS` bits."""
    wide = flat.astype(np.int64)
    packed: NDArray[np.int64] = (wide[:, 0] << 2 * _BITS) | (wide[:, 1] << _BITS) | wide[:, 2]
    return packed


Size = tuple[int, int]

CHANNELS = "abc"
"""Names of the three numbers of a code."""

HIDING = ("minigrid-full",)
"""Values of `Metadata.view` for states that hide the things that the actor (see `find_actor`) stands on or carries."""

MAX_CODES = 20_000_000
"""Maximum number of array elements from which the background and the other codes are found. If there are more, only
every n-th state of each trajectory is used."""


class GridView:
    """View of grids `(h, w, 3)`. It lists the cells of a state that differ from the background.

    Grids of each size have their own background, made of the two most frequent codes of the training data. The meaning
    of the codes is unknown.
    """

    modules, tokens_of, helps = "numpy", "codes", False
    recalls = 1
    coarser = None  # states have no shorter form

    def __init__(self, items: Sequence[Labelled], metadata: Metadata) -> None:
        self._hides = metadata.view in HIDING
        self._items = items
        self._actor = find_actor([item.trajectory.states for item in items])
        stacks = _sampled([item.trajectory.states for item in items])
        self._background = commonest(stacks)
        sizes: dict[Size, list[NDArray[Any]]] = {}
        for stack in stacks:
            sizes.setdefault((stack.shape[1], stack.shape[2]), []).append(stack)
        self._backdrops = {size: backdrop(group, self._background) for size, group in sorted(sizes.items())}
        self._codes = {code for stack in stacks for code in codes_in(stack)} - set(self._background)

    @property
    def about(self) -> str:
        """See `View`."""
        sizes = ", ".join(f"{h} x {w}" for h, w in self._backdrops)
        return (
            "A state is a numpy array of int64 with shape (h, w, 3). state[i, j] holds the three codes (a, b, c) of "
            "the cell with first index i and second index j, both counted from 0. "
            f"Sizes (h, w) seen so far: {sizes}; others may come."
        )

    def legend(self, tokens: int) -> str:
        """See `View`."""
        lines = [
            "What the codes stand for is not given: the data tell. "
            f"A cell is written [i,j], its codes (a,b,c); [2,0..7] is a run of cells. {self._ground} "
            "A state lists only the cells that differ from this background:"
        ]
        for (h, w), grid in self._backdrops.items():
            lines.append(f"- {h} x {w}: {self._layout(grid)}")
        lines.append(
            "Later states are written as changes since the state shown before: `[i,j] X -> Y` for a cell that had X "
            "and has Y now, `X: [i,j] => [k,l]` where X changed places with the background at [k,l], `as 3` if equal "
            "to state 3."
        )
        if self._actor is not None:
            lines.append(
                f"{self._acting} `… 9 moves left out`: nothing changes in them but the actor's cell. "
                "`actor at [i,j] (a,b,c)`: it moved there in states left out, and background is where it was."
            )
        if self._hides:
            lines.append(
                "The actor hides what lies on its cell. What it carries may be hidden, too, so that two different "
                "actions can leave equal states."
            )
        return cut("\n".join([*lines, self._seen]), tokens)

    @property
    def _ground(self) -> str:
        return f"Background, the commonest codes: {' and '.join(_code(code) for code in self._background)}."

    @property
    def _seen(self) -> str:
        seen = [", ".join(map(str, sorted({code[channel] for code in self._codes}))) for channel in range(3)]
        return f"Codes beside the background: a {seen[0]}; b {seen[1]}; c {seen[2]}."

    def figures(self, tokens: int) -> str:
        """See `View`."""
        return cut("\n".join(filter(None, (self._ground, self._acting, self._seen))), tokens)

    @property
    def _acting(self) -> str:
        """The number of the actor, and the move that follows each of its codes; "" if there is no actor."""
        actor = self._actor
        if actor is None:
            return ""
        moves = ", ".join(f"{_code(code)} {_by(move)}" for code, move in actor.moves.items())
        told = f"One cell of every state has {CHANNELS[actor.channel]}={actor.number}: the actor."
        return f"{told} Its codes tell its next step: {moves}." if moves else told

    def words(self, tokens: int) -> str:
        """See `View`."""
        return table(self._items, tokens, Without(self._actor, self._background))

    def _layout(self, grid: NDArray[np.int64]) -> str:
        """List the cells of each background code. "elsewhere" replaces the longest of these lists."""
        places = {code: runs((grid == np.array(code)).all(axis=2)) for code in self._background}
        places = {code: listed for code, listed in places.items() if listed}
        rest = max(places, key=lambda code: len(places[code]))
        parts = [f"{_code(code)} at {listed}" for code, listed in places.items() if code != rest]
        return "; ".join([*parts, f"{_code(rest)} {'elsewhere' if parts else 'everywhere'}"])

    def _base(self, state: NDArray[Any]) -> NDArray[np.int64]:
        """The background for the size of a state. For new sizes, all cells have the most frequent code."""
        size = (state.shape[0], state.shape[1])
        if size not in self._backdrops:
            return np.broadcast_to(np.array(self._background[0], dtype=np.int64), state.shape)
        return self._backdrops[size]

    def state(self, state: NDArray[Any]) -> str:
        """See `View`. An example is `(5,3,0) at [1,6] [6,5]; (10,0,3) at [4,5]`.

        If the data have grids of several sizes, the text begins with the size.
        """
        differs = (state != self._base(state)).any(axis=2)
        places: dict[Code, list[Place]] = {}
        for i, j in np.argwhere(differs).tolist():
            places.setdefault(_at(state, (i, j)), []).append((i, j))
        listed = [f"{_code(code)} at {' '.join(map(_cell, cells))}" for code, cells in sorted(places.items())]
        text = "; ".join(listed) or "background only"
        return f"{state.shape[0]} x {state.shape[1]}: {text}" if len(self._backdrops) > 1 else text

    def events(self, states: NDArray[Any]) -> Set[int] | None:
        """See `View`."""
        return None if self._actor is None else self._actor.events(states)

    def change(self, before: NDArray[Any], after: NDArray[Any], *, apart: bool = False) -> str:
        """See `View`. With `apart`, only the actor is written as moved, because the prompt omits the steps between."""
        if before.shape != after.shape:
            return f"in full: {self.state(after)}"
        cells = [(i, j) for i, j in np.argwhere((before != after).any(axis=2)).tolist()]
        if not cells:
            return "no change"
        parts: list[str] = []
        if apart:
            moved: list[tuple[Place, Place]] = []
            place, rest = self._actor_at(before, after, cells)
            parts += [f"actor at {_cell(place)} {_code(_at(after, place))}"] if place else []
        else:
            moved, rest = self._moves(before, after, cells)
        parts += [f"{_code(_at(before, one))}: {_cell(one)} => {_cell(two)}" for one, two in moved]
        parts += [f"{_cell(cell)} {_code(_at(before, cell))} -> {_code(_at(after, cell))}" for cell in rest]
        text = "; ".join(parts)
        # One or two changes are always written, since they show the effect of the step. Three or more changes are
        # replaced by the whole state if the whole state is shorter.
        if len(parts) <= 2 or estimate(text) <= estimate(full := self.state(after)):
            return text
        return f"in full: {full}"

    def _actor_at(
        self, before: NDArray[Any], after: NDArray[Any], cells: Sequence[Place]
    ) -> tuple[Place | None, list[Place]]:
        """Find a move of the actor to a cell that was background, if its old cell is background now.

        Return the actor's new cell, and the changed cells except its old and new cell. Without such a move, return
        None, and all changed cells.
        """
        if self._actor is not None:
            old, new = (_places(self._actor.cells(state)) for state in (before, after))
            if len(old) == len(new) == 1 and old != new:
                base, left, found = self._base(after), old[0], new[0]
                if _at(before, found) == _at(base, found) and _at(after, left) == _at(base, left):
                    return found, [cell for cell in cells if cell not in (left, found)]
        return None, list(cells)

    def _moves(
        self, before: NDArray[Any], after: NDArray[Any], cells: Sequence[Place]
    ) -> tuple[list[tuple[Place, Place]], list[Place]]:
        """Find pairs of cells that swapped contents. One of the two cells must have had a code of the background.

        Return the pairs, and the changed cells without a partner.
        """
        moved: list[tuple[Place, Place]] = []
        left = list(cells)
        for one in cells:
            code, ground = _at(before, one), _at(after, one)
            if one not in left or code in self._background or ground not in self._background:
                continue
            ends = [two for two in left if _at(before, two) == ground and _at(after, two) == code]
            if len(ends) == 1:
                moved.append((one, ends[0]))
                left = [cell for cell in left if cell not in (one, ends[0])]
        return moved, left


def _sampled(stacks: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Take every n-th state of each trajectory, so that the arrays have at most about `MAX_CODES` numbers."""
    every = -(-sum(stack.size for stack in stacks) // MAX_CODES)
    return [stack[::every] for stack in stacks]


def _places(mask: NDArray[np.bool_]) -> list[Place]:
    return [(i, j) for i, j in np.argwhere(mask).tolist()]


def _at(state: NDArray[Any], place: Place) -> Code:
    a, b, c = state[place].tolist()
    return int(a), int(b), int(c)


def _code(code: Code) -> str:
    return f"({code[0]},{code[1]},{code[2]})"


def _by(step: Place) -> str:
    """A step such as `[+1,0]`."""
    return f"[{','.join(f'{each:+d}' if each else '0' for each in step)}]"


def _cell(place: Place) -> str:
    return f"[{place[0]},{place[1]}]"
