"""The backdrop of grids of one size: which of the two commonest codes lies where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Code = tuple[int, int, int]
Place = tuple[int, int]

_BITS = 20


def codes_in(cells: NDArray[Any]) -> Counter[Code]:
    """How often each code occurs in cells `(..., 3)`."""
    flat = cells.reshape(-1, 3)
    if flat.size and (flat.min() < 0 or flat.max() >= 1 << _BITS):
        found, numbers = np.unique(flat, axis=0, return_counts=True)
        triples = found.tolist()
    else:  # one number for three is sorted a hundred times as fast
        packed, numbers = np.unique(_packed(flat), return_counts=True)
        mask = (1 << _BITS) - 1
        triples = [(code >> 2 * _BITS, code >> _BITS & mask, code & mask) for code in packed.tolist()]
    return Counter(
        {(int(a), int(b), int(c)): number for (a, b, c), number in zip(triples, numbers.tolist(), strict=True)}
    )


def commonest(grids: Iterable[NDArray[Any]], count: int = 2) -> tuple[Code, ...]:
    """The codes that most cells have, most frequent first; smaller codes first among equals.

    Args:
        grids: arrays `(..., 3)`.
        count: how many.
    """
    counts: Counter[Code] = Counter()
    for grid in grids:
        counts.update(codes_in(grid))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(code for code, _ in ranked[:count])


def backdrop(states: Sequence[NDArray[Any]], codes: Sequence[Code]) -> NDArray[np.int64]:
    """For each cell the one of `codes` that it has most often; shape `(h, w, 3)`.

    Args:
        states: arrays `(n, h, w, 3)` of one size.
        codes: the background, most frequent first; a cell that has none of them gets the first.
    """
    votes = sum(np.stack([(each == np.array(code)).all(axis=3).sum(axis=0) for code in codes]) for each in states)
    best: NDArray[np.int64] = np.array(codes, dtype=np.int64)[np.asarray(votes).argmax(axis=0)]
    return best


def runs(mask: NDArray[np.bool_]) -> str:
    """The true cells of `(h, w)` as straight runs: `[0,0..7] [1..6,0] [3,4]`.

    Longest runs first, each cell in one run only, so that a frame of walls takes four entries.
    """
    left = mask.copy()
    written = []
    while left.any():
        first, last = max(_lines(left), key=_length)
        left[first[0] : last[0] + 1, first[1] : last[1] + 1] = False
        written.append(f"[{_range(first[0], last[0])},{_range(first[1], last[1])}]")
    return " ".join(written)


def _lines(mask: NDArray[np.bool_]) -> list[tuple[Place, Place]]:
    """First and last cell of every maximal horizontal and vertical run, horizontal ones first."""
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
    """Three codes of up to 20 bits each as one number."""
    wide = flat.astype(np.int64)
    packed: NDArray[np.int64] = (wide[:, 0] << 2 * _BITS) | (wide[:, 1] << _BITS) | wide[:, 2]
    return packed
