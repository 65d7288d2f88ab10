"""Vectors: states of n numbers. The numbers may have names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.states.kind import Census, PartLayout, Scrambler, StateKind, States

if TYPE_CHECKING:
    from rich.console import RenderableType


EXACT = 1 << 53
"""Largest whole number up to which float64 holds all whole numbers. Programs receive float64."""


class VectorKind(StateKind):
    """Vectors: `(T+1, n)` numbers of at most 64 bits. Programs receive `(n,)` float64."""

    name = "vector"
    plural = "vectors"
    expected = "numbers (T+1, n)"
    named_fields = True

    def misfit(self, shape: tuple[int, ...], fitted: tuple[int, ...]) -> str:
        """See `StateKind`."""
        return "" if shape == fitted else f"{shape[0]} numbers; expected {fitted[0]}"

    def recognises(self, states: States) -> bool:
        """See `StateKind`."""
        return getattr(states, "ndim", 0) == 2

    def recognises_state(self, state: Any) -> bool:
        """See `StateKind`."""
        return np.ndim(state) == 1 and np.asarray(state).dtype.kind in "biuf"

    def check(self, states: States, where: str) -> None:
        """See `StateKind`."""
        require_numbers(states, where)
        if states.dtype.kind not in "fiu" or states.dtype.itemsize > 8:
            raise InputError(f"{where}: vector states are {states.dtype}; expected numbers of at most 64 bits")
        if states.dtype.kind == "f" and not np.isfinite(states).all():
            row = int(np.flatnonzero(~np.isfinite(states).all(axis=1))[0])
            raise InputError(f"{where}: state {row} holds NaN or infinity; expected finite numbers: clean the data")
        require_exact(states, where)

    def check_fields(self, states: States, fields: Sequence[str], where: str) -> None:
        """See `StateKind`. The message about NaN names the field."""
        if fields and len(fields) != states.shape[1]:
            raise InputError(
                f"{where}: {len(fields)} names of fields for states of {states.shape[1]} numbers; expected one each"
            )
        if states.dtype.kind != "f" or np.isfinite(states).all():
            return
        step, column = (int(i) for i in np.argwhere(~np.isfinite(states))[0])
        name = f"{fields[column]!r} (number {column})" if column < len(fields) else f"number {column}"
        raise InputError(
            f"{where}, step {step}, field {name}: found {states[step, column]}; "
            "expected finite numbers: drop the episode or clean the data"
        )

    def signature(self, states: States) -> int:
        """The width n of the vectors."""
        return int(states.shape[1])

    def unlike(self, states: States, others: States, beside: str) -> str:
        """See `StateKind`."""
        return f"states of {states.shape[1]} numbers beside {beside} with {others.shape[1]}; expected one width"

    def numbers(self, states: States) -> NDArray[np.float64]:
        """See `StateKind`."""
        return np.asarray(states.reshape(len(states), self.size(states)), np.float64)

    def recognises_parts(self, parts: Sequence[PartLayout]) -> bool:
        """See `StateKind`."""
        return [(part.name, len(part.shape), part.is_text) for part in parts] == [("", 1, False)]

    def stores(self, part: PartLayout) -> bool:
        """See `StateKind`."""
        return not part.name and bool(part.shape) and np.dtype(part.dtype or "S").kind in "fiu"

    def handed(self, part: PartLayout) -> np.dtype[Any]:
        """See `StateKind`. The type is always float64."""
        return np.dtype(np.float64)

    def as_state(self, state: Any) -> NDArray[np.float64]:
        """See `StateKind`."""
        return np.array(state, np.float64, order="C")

    def recognises_space(self, space: Any) -> bool:
        """See `StateKind`."""
        return len(getattr(space, "shape", None) or ()) == 1 and getattr(space, "dtype", None) is not None

    def census(self, states: States) -> Census:
        """See `StateKind`."""
        return VectorRanges(states.shape[1])

    def draw_scrambler(self, states: States, seed: int) -> Scrambler:
        """See `StateKind`."""
        width = states.shape[1]
        rng = np.random.default_rng([seed, 0])
        order = tuple(int(i) for i in rng.permutation(width))
        # Factors lie between 0.1 and 10. None is near 1, because such a factor leaves a field almost unchanged.
        exponents = rng.uniform(0.1, 1.0, width) * rng.choice([-1.0, 1.0], width)
        return VectorScrambler(order, tuple(float(10.0**e) for e in exponents))

    def read_scrambler(self, about: Mapping[str, Any], seed: int) -> Scrambler:
        """See `StateKind`."""
        order, scale = tuple(int(i) for i in about["order"]), tuple(float(x) for x in about["scale"])
        if len(order) != about["width"] or len(scale) != len(order) or sorted(order) != list(range(len(order))):
            raise ValueError("not a map for vectors")
        return VectorScrambler(order, scale)


def require_exact(states: NDArray[Any], where: str) -> None:
    """Refuse whole numbers that float64 would round.

    Raises:
        InputError: a whole number beyond 2**53.
    """
    if states.dtype.kind not in "iu" or states.dtype.itemsize < 8:
        return
    beyond = (states > EXACT) | (states < -EXACT) if states.dtype.kind == "i" else states > EXACT
    if beyond.any():
        raise InputError(
            f"{where}: {states[beyond][0]}, which float64 rounds; expected whole numbers up to 2**53: subtract the "
            "first one, or leave this column out"
        )


def require_int64(states: NDArray[Any], where: str) -> None:
    """Refuse whole numbers that programs would receive as negative ones, because int64 does not hold them.

    Raises:
        InputError: a whole number from 2**63.
    """
    if states.dtype.kind == "u" and states.dtype.itemsize == 8 and (most := states.max()) > np.iinfo(np.int64).max:
        raise InputError(f"{where}: {most}; expected whole numbers below 2**63: write smaller ones")


def require_numbers(states: NDArray[Any], where: str) -> None:
    """Refuse arrays of empty states.

    Raises:
        InputError: a dimension has length 0.
    """
    if 0 in states.shape:
        raise InputError(f"{where}: states of shape {states.shape[1:]}; expected at least one number in each")


class VectorRanges:
    """Smallest, mean and largest value of each component. Implements `Census`.

    Args:
        width: number n of components.
    """

    def __init__(self, width: int) -> None:
        self.low = np.full(width, np.inf)
        self.high = np.full(width, -np.inf)
        self._sum = np.zeros(width)
        self._count = 0

    def add(self, states: NDArray[Any], where: str = "trajectory") -> None:
        """Add states `(T+1, n)`."""
        if states.shape[1] != len(self.low):
            raise InputError(
                f"{where}: states of {states.shape[1]} numbers in a set of vectors of {len(self.low)} numbers; "
                "expected one kind and width"
            )
        self.low = np.minimum(self.low, states.min(axis=0))
        self.high = np.maximum(self.high, states.max(axis=0))
        self._sum += states.sum(axis=0, dtype=np.float64)
        self._count += len(states)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean of each component."""
        return self._sum / max(self._count, 1)

    def rows(self, fields: Sequence[str]) -> list[tuple[str, float, float, float]]:
        """Name, smallest, mean and largest value of each component.

        Args:
            fields: names of the components. Their number may be wrong, because nothing checks the names in a file
                without trajectories. If so, indices replace the names.
        """
        names = fields if len(fields) == len(self.low) else [f"[{number}]" for number in range(len(self.low))]
        return list(zip(names, self.low.tolist(), self.mean.tolist(), self.high.tolist(), strict=True))

    def to_json(self, fields: Sequence[str], most: int) -> dict[str, Any]:
        """See `Census`."""
        rows = self.rows(fields)
        return {"fields": [{"name": name, "min": low, "mean": mean, "max": high} for name, low, mean, high in rows]}

    def table(self, fields: Sequence[str], most: int) -> RenderableType:
        """See `Census`."""
        from rich.table import Table

        table = Table(title="Fields", title_justify="left")
        table.add_column("number", justify="right")
        table.add_column("name")
        for name in ("min", "mean", "max"):
            table.add_column(name, justify="right")
        for number, (name, *values) in enumerate(self.rows(fields)):
            table.add_row(str(number), name, *(f"{value:.4g}" for value in values))
        return table


@dataclass(frozen=True)
class VectorScrambler(Scrambler):
    """Scrambler that permutes, rescales and renames fields.

    Attributes:
        order: old index of each new field.
        scale: factor of each new field.
    """

    order: tuple[int, ...]
    scale: tuple[float, ...]

    def states(self, states: NDArray[Any], word: Callable[[str], str], where: str) -> NDArray[Any]:
        """See `Scrambler`."""
        if states.shape[1] != len(self.order):
            raise InputError(
                f"{where}: vectors of {states.shape[1]}; expected vectors of {len(self.order)}, for which the map "
                "was made: use another map"
            )
        dtype = states.dtype if states.dtype.kind == "f" else np.dtype(np.float64)
        scaled: NDArray[Any] = states[:, list(self.order)] * np.array(self.scale)
        return scaled.astype(dtype)

    @property
    def fields(self) -> tuple[str, ...]:
        """See `Scrambler`."""
        return tuple(f"x{number}" for number in range(len(self.order)))

    def to_json(self) -> dict[str, Any]:
        """See `Scrambler`."""
        return {"width": len(self.order), "order": self.order, "scale": self.scale}


VECTOR = VectorKind()
