"""Statistics (the census) and the scrambler of records.

A record is a state of named parts. A part is an array or a text. The census and the scrambler treat each part
separately.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.states.kind import PartLayout, Scrambler, StateKind, States, in_invented_words
from grace_irl.states.texts import pack
from grace_irl.states.vector import VectorRanges

if TYPE_CHECKING:
    from rich.console import RenderableType

CODES = 256


class RecordCensus:
    """Types, shapes and ranges of parts. Implements `Census`.

    Args:
        kind: kind of the records.
        states: records of the first trajectory. The records of all other trajectories must have the same parts.
    """

    def __init__(self, kind: StateKind, states: States) -> None:
        self._kind, self._first, self._source = kind, states, ""
        self._counts: dict[str, VectorRanges | Counter[bytes]] = {
            part.name: Counter() if part.is_text else VectorRanges(math.prod(part.shape))
            for part in kind.layout(states)
        }

    def add(self, states: States, where: str = "trajectory") -> None:
        """See `Census`."""
        if self._kind.signature(states) != self._kind.signature(self._first):
            raise InputError(f"{where}: {self._kind.unlike(states, self._first, self._source or 'another')}")
        self._source = self._source or where
        for name, array in self._kind.parts(states).items():
            counts = self._counts[name]
            if isinstance(counts, Counter):
                counts.update(array.tolist())
            else:
                counts.add(array.reshape(len(array), -1), where)

    def rows(self, most: int) -> list[dict[str, Any]]:
        """A dict for each part: name, type, shape, and either the range of its numbers or its most frequent texts."""
        found: list[dict[str, Any]] = []
        for part in self._kind.layout(self._first):
            counts = self._counts[part.name]
            kept = "text" if part.is_text else self._kind.handed(part).name
            row: dict[str, Any] = {"name": part.name, "type": kept, "shape": list(part.shape)}
            if isinstance(counts, Counter):
                row["texts"] = {text.decode(): count for text, count in counts.most_common(most)}
                row["distinct"] = len(counts)
            else:
                row |= {"min": float(counts.low.min()), "mean": float(counts.mean.mean())}
                row["max"] = float(counts.high.max())
            found.append(row)
        return found

    def to_json(self, fields: Sequence[str], most: int) -> dict[str, Any]:
        """See `Census`."""
        return {"parts": self.rows(most)}

    def table(self, fields: Sequence[str], most: int) -> RenderableType:
        """See `Census`."""
        from rich.table import Table
        from rich.text import Text

        table = Table(title="Parts", title_justify="left")
        table.add_column("name", overflow="fold")
        table.add_column("type")
        for name in ("min", "mean", "max"):
            table.add_column(name, justify="right")
        for row in self.rows(most):
            if "texts" in row:
                said = ", ".join(repr(text[:40]) for text in row["texts"])
                table.add_row(Text(row["name"]), "text", "", Text(f"{row['distinct']}: {said}"), "")
                continue
            shape = "x".join(map(str, row["shape"]))
            numbers = (f"{row[key]:.4g}" for key in ("min", "mean", "max"))
            table.add_row(Text(row["name"]), f"{shape} {row['type']}".strip(), *numbers)
        return table


@dataclass(frozen=True)
class PartMap:
    """Scrambling of one part.

    Attributes:
        name: new name of the part.
        order: old index of each number in the new order; () for texts.
        scale: factor of each number, in the new order; () for bytes and texts.
        codes: new value of each of the 256 values of a byte; () if the part does not hold bytes.
    """

    name: str
    order: tuple[int, ...] = ()
    scale: tuple[float, ...] = ()
    codes: tuple[int, ...] = ()

    @classmethod
    def draw(cls, name: str, part: PartLayout, kept: str, rng: np.random.Generator) -> PartMap:
        """A new random map for a numeric part. Integers stay integers, and bytes stay bytes.

        Args:
            name: new name of the part.
            part: layout of the part.
            kept: type in which programs receive the part: "uint8", "int64" or "float64".
            rng: generator of the random choices.
        """
        size = math.prod(part.shape)
        order = tuple(rng.permutation(size).tolist())
        if kept == "uint8":
            return cls(name, order, codes=tuple(rng.permutation(CODES).tolist()))
        signs = rng.choice([-1.0, 1.0], size)
        factors = (
            rng.integers(2, 10, size) * signs if kept == "int64" else 10.0 ** (rng.uniform(0.1, 1.0, size) * signs)
        )
        return cls(name, order, tuple(float(factor) for factor in factors))

    @classmethod
    def read(cls, about: Mapping[str, Any]) -> PartMap:
        """Make a map from its entry in the result of `RecordScrambler.to_json`.

        Raises:
            ValueError, LookupError, TypeError: an invalid map.
        """
        order, scale = tuple(int(i) for i in about["order"]), tuple(float(x) for x in about["scale"])
        codes = tuple(int(code) for code in about["codes"])
        wrong = sorted(order) != list(range(len(order))) or len(scale) not in (0, len(order))
        if wrong or (codes and sorted(codes) != list(range(CODES))):
            raise ValueError("not a map for records")
        return cls(str(about["name"]), order, scale, codes)

    def apply(self, array: NDArray[Any], where: str) -> NDArray[Any]:
        """The scrambled copy of a numeric part.

        Raises:
            InputError: the part does not fit the map, or int64 does not hold the result.
        """
        flat = array.reshape(len(array), -1)
        if flat.shape[1] != len(self.order) or bool(self.codes) != (array.dtype == np.uint8):
            raise InputError(
                f"{where}; expected {len(self.order)} numbers, for which the map was made: use another map"
            )
        flat = flat[:, list(self.order)]
        if self.codes:
            changed: NDArray[Any] = np.array(self.codes, np.uint8)[flat]
        elif array.dtype.kind == "f":
            changed = (flat * np.array(self.scale)).astype(array.dtype)
        else:
            scale = np.array(self.scale, np.int64)
            changed = flat.astype(np.int64) * scale
            if (changed // scale != flat).any():
                raise InputError(
                    f"{where}: a number times its factor is beyond int64; expected smaller whole numbers: subtract the "
                    "first one, or leave this part out"
                )
        return changed.reshape(array.shape)


@dataclass(frozen=True)
class RecordScrambler(Scrambler):
    """Scrambler that renames parts, permutes and rescales their numbers, and replaces words by invented words.

    Attributes:
        kind: kind of the records.
        parts: map of each part, by its old name.
    """

    kind: StateKind
    parts: Mapping[str, PartMap]

    @classmethod
    def draw(cls, kind: StateKind, states: States, seed: int) -> RecordScrambler:
        """A new random scrambler for records with the same parts as `states`."""
        rng = np.random.default_rng([seed, 0])
        layout = kind.layout(states)
        maps = {}
        for number, part in zip(rng.permutation(len(layout)).tolist(), layout, strict=True):
            name = f"p{number}"
            maps[part.name] = PartMap(name) if part.is_text else PartMap.draw(name, part, kind.handed(part).name, rng)
        return cls(kind, maps)

    @classmethod
    def read(cls, kind: StateKind, about: Mapping[str, Any]) -> RecordScrambler:
        """The inverse of `to_json`; see `StateKind.read_scrambler`."""
        parts = {str(old): PartMap.read(new) for old, new in about["parts"].items()}
        names = [part.name for part in parts.values()]
        kind.require_names(names, "map")
        if len(set(names)) != len(names):
            raise ValueError("not a map for records")
        return cls(kind, parts)

    def states(self, states: States, word: Callable[[str], str], where: str) -> States:
        """See `Scrambler`."""
        parts = self.kind.parts(states)
        if set(parts) != set(self.parts):
            raise InputError(
                f"{where}: {self.kind.describe(states)}; expected the parts for which the map was made: use another map"
            )
        found: dict[str, NDArray[Any]] = {}
        for old, array in parts.items():
            new = self.parts[old]
            if array.dtype.kind == "S":
                known = {text: in_invented_words(text.decode(), word) for text in dict.fromkeys(array.tolist())}
                found[new.name] = pack([known[text] for text in array.tolist()])
            else:
                found[new.name] = new.apply(array, f"{where}, part {old!r}: {array.dtype} of shape {array.shape[1:]}")
        return self.kind.whole(found)

    @property
    def old_parts(self) -> Iterable[str]:
        """See `Scrambler`."""
        return self.parts

    def to_json(self) -> dict[str, Any]:
        """See `Scrambler`."""
        return {"parts": {old: vars(new) for old, new in self.parts.items()}}
