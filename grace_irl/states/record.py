"""Records: states of named arrays and texts, such as observations of Gymnasium's `Dict` spaces and of robots."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.states.image import IMAGE
from grace_irl.states.kind import Census, PartLayout, Parts, Scrambler, StateKind, States, layout_of, require_one_form
from grace_irl.states.masks import require_unmasked
from grace_irl.states.texts import pack, require_utf8
from grace_irl.states.vector import require_int64

MOST_PARTS = 1_000
LONGEST_NAME = 200


class RecordStates:
    """The states of one trajectory, stored as one array per part.

    An integer index gives one state, which is a dict from names of parts to numbers, arrays and texts. A slice gives
    `RecordStates` again.

    Attributes:
        parts: the array of each part by name, sorted by name. Arrays of numbers are `(T+1, ...)`. Arrays of texts are
            `(T+1,)`, in UTF-8 with dtype `S`.

    Args:
        parts: arrays by name, in any order. Booleans become integers.

    Raises:
        InputError: there are no parts, a part has no first axis, the parts have different numbers of states, or a
            part has masked values.
    """

    def __init__(self, parts: Mapping[str, NDArray[Any]]) -> None:
        self.parts: dict[str, NDArray[Any]] = {}
        for name in sorted(parts):
            require_unmasked(parts[name], f"part {name!r}")
            array = np.asarray(parts[name])
            self.parts[name] = array.astype(np.int64) if array.dtype.kind == "b" else array
        lengths = {len(array) if array.ndim else -1 for array in self.parts.values()}
        if len(lengths) != 1 or -1 in lengths:
            raise InputError(f"a record of {len(self.parts)} parts of lengths {sorted(lengths)}; expected one length")

    def __len__(self) -> int:
        return len(next(iter(self.parts.values())))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int | np.integer):
            found = ((name, array[index]) for name, array in self.parts.items())
            return {name: value.decode() if isinstance(value, bytes) else value for name, value in found}
        return RecordStates({name: array[index] for name, array in self.parts.items()})

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[step] for step in range(len(self)))


class RecordKind(StateKind):
    """Records, stored as `RecordStates`. Programs receive a dict of named arrays, numbers and texts.

    Programs receive uint8 numbers unchanged, other integers as int64, and floats as float64. The part "joints" of a
    nested dict "arm" has the name "arm/joints". A part has one type and one shape in all states of a data set.
    """

    name = "record"
    plural = "records"
    expected = "a record of named arrays and texts"
    has_parts = True
    stored_as = "numbers, a list of numbers, or text"

    def recognises(self, states: States) -> bool:
        """See `StateKind`."""
        return isinstance(states, RecordStates)

    def recognises_state(self, state: Any) -> bool:
        """See `StateKind`."""
        return isinstance(state, Mapping) and len(state) > 0

    def check(self, states: States, where: str) -> None:
        """See `StateKind`."""
        require_names(list(states.parts), where)
        for name, array in states.parts.items():
            if array.dtype.kind == "S":
                for text in set(array.tolist()):
                    require_utf8(text, f"{where}, part {name!r}")
                    self.canonical(text.decode(), f"{where}, part {name!r}")
                continue
            if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
                raise InputError(
                    f"{where}, part {name!r}: {array.dtype}; expected numbers of at most 64 bits, or texts"
                )
            if 0 in array.shape:
                raise InputError(f"{where}, part {name!r}: of shape {array.shape[1:]}; expected at least one number")
            require_int64(array, f"{where}, part {name!r}")
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                step = int(np.argwhere(~np.isfinite(array))[0][0])
                raise InputError(
                    f"{where}, step {step}, part {name!r}: NaN or infinity; expected finite numbers: clean the data"
                )

    def describe(self, states: States) -> str:
        """See `StateKind`."""
        if not isinstance(states, RecordStates):
            return super().describe(states)
        parts = [_described(part) for part in self.layout(states)]
        return f"records of {', '.join(parts[:8])}{', …' if len(parts) > 8 else ''}"

    def signature(self, states: States) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
        """Name, type and shape of every part."""
        return tuple((part.name, _type(part), part.shape) for part in self.layout(states))

    def unlike(self, states: States, others: States, beside: str) -> str:
        """See `StateKind`. The text is about the first part that differs, in the order of names."""
        mine = {part.name: _described(part) for part in self.layout(states)}
        theirs = {part.name: _described(part) for part in self.layout(others)}
        name = next(name for name in sorted({*mine, *theirs}) if mine.get(name) != theirs.get(name))
        found, expected = mine.get(name, f"no part {name!r}"), theirs.get(name, f"no part {name!r}")
        return f"{found} beside {beside} with {expected}; expected the same parts, types and shapes"

    def shape(self, states: States) -> tuple[int, ...]:
        """See `StateKind`. Records have no shape."""
        return ()

    def type_name(self, states: States) -> str:
        """See `StateKind`."""
        return f"{len(states.parts)} parts"

    def nbytes(self, states: States) -> int:
        """See `StateKind`."""
        return sum(int(array.nbytes) for array in states.parts.values())

    def numbers(self, states: States) -> NDArray[np.float64] | None:
        """See `StateKind`. The features are in the order of `places`. Texts are not features."""
        arrays = [array for array in states.parts.values() if array.dtype.kind != "S"]
        flat = [np.asarray(array.reshape(len(array), math.prod(array.shape[1:])), np.float64) for array in arrays]
        return np.concatenate(flat, axis=1) if flat else None

    def identity(self, states: States) -> tuple[object, object]:
        """See `StateKind`. The width of an array of texts has no influence."""
        return len(states), tuple((part.name, part.dtype, part.shape) for part in self.layout(states))

    def feed(self, digest: Any, states: States) -> None:
        """See `StateKind`."""
        for array in states.parts.values():
            if array.dtype.kind != "S":
                digest.update(np.ascontiguousarray(array).data)
                continue
            for text in array.tolist():
                digest.update(b"%d " % len(text))
                digest.update(text)

    def parts(self, states: States) -> Parts:
        """See `StateKind`."""
        parts: dict[str, NDArray[Any]] = states.parts
        return parts

    def whole(self, parts: Parts) -> RecordStates:
        """See `StateKind`."""
        return RecordStates(parts)

    def recognises_parts(self, parts: Sequence[PartLayout]) -> bool:
        """See `StateKind`."""
        return bool(parts) and all(part.name for part in parts)

    def stores(self, part: PartLayout) -> bool:
        """See `StateKind`."""
        return bool(part.name) and (part.is_text or np.dtype(part.dtype).kind in "fiub")

    def require_names(self, names: Sequence[str], where: str) -> None:
        """See `StateKind`."""
        require_names(names, where)

    def canonical(self, text: str, where: str) -> str:
        """See `StateKind`. Return the text unchanged, but refuse a null character."""
        if "\0" in text:
            raise InputError(f"{where}: a text with a null character; expected none: write it without")
        return text

    def handed(self, part: PartLayout) -> np.dtype[Any]:
        """See `StateKind`: uint8, int64 or float64."""
        return np.dtype(_type(part))

    def joined(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """See `StateKind`."""
        return dict(values)

    def separated(self, state: Any) -> dict[str, Any]:
        """See `StateKind`. The part "joints" of a nested dict "arm" gets the name "arm/joints".

        Raises:
            InputError: a part is neither a number, nor an array of numbers, nor a text; or `require_names` refuses the
                names.
        """
        found: dict[str, Any] = {}
        stack: list[tuple[str, Any]] = [("", state)]
        while stack:
            name, value = stack.pop()
            if isinstance(value, Mapping):
                stack += [(f"{name}/{key}" if name else str(key), each) for key, each in value.items()]
            else:
                found[name] = _part(name, value)
            if len(found) > MOST_PARTS:
                raise InputError(f"a record of more than {MOST_PARTS:,} parts; expected fewer")
        require_names(list(found), "a state")
        return dict(sorted(found.items()))

    def as_state(self, state: Any) -> dict[str, Any]:
        """See `StateKind`."""
        fresh: dict[str, Any] = {}
        for name, value in self.separated(state).items():
            if isinstance(value, str):
                fresh[name] = value
                continue
            array = np.array(value, _type(layout_of(name, value[None])), order="C")
            fresh[name] = array if array.ndim else array[()]
        return fresh

    def copied(self, state: Any) -> dict[str, Any]:
        """See `StateKind`."""
        parts = self.separated(state).items()
        return {name: value if isinstance(value, str) else value.copy() for name, value in parts}

    def online(self, states: Sequence[Any]) -> RecordStates:
        """See `StateKind`."""
        rows = [self.separated(state) for state in states]
        require_one_form(rows)
        parts: dict[str, NDArray[Any]] = {}
        for name, first in rows[0].items():
            values = [row[name] for row in rows]
            parts[name] = pack(values) if isinstance(first, str) else np.stack(values)
        return RecordStates(parts)

    def recognises_space(self, space: Any) -> bool:
        """See `StateKind`. True for every `Dict` space."""
        return isinstance(getattr(space, "spaces", None), Mapping)

    def images(self, states: States) -> list[str]:
        """Names of the parts that are images."""
        return [part.name for part in self.layout(states) if IMAGE.recognises_parts([part._replace(name="")])]

    def census(self, states: States) -> Census:
        """See `StateKind`."""
        from grace_irl.states.parts import RecordCensus

        return RecordCensus(self, states)

    def draw_scrambler(self, states: States, seed: int) -> Scrambler:
        """See `StateKind`."""
        from grace_irl.states.parts import RecordScrambler

        return RecordScrambler.draw(self, states, seed)

    def read_scrambler(self, about: Mapping[str, Any], seed: int) -> Scrambler:
        """See `StateKind`."""
        from grace_irl.states.parts import RecordScrambler

        return RecordScrambler.read(self, about)


def rows_of(batch: Mapping[str, Any], count: int) -> NDArray[Any]:
    """Split a batch of `count` observations into one dict per observation.

    Args:
        batch: for each part, its values in all observations, stacked along the first axis. Dicts may be nested.
        count: number of observations.

    Returns:
        An array `(count,)` of the dicts.
    """
    rows = np.empty(count, object)
    for row in range(count):
        rows[row] = {
            name: rows_of(part, count)[row] if isinstance(part, Mapping) else part[row] for name, part in batch.items()
        }
    return rows


def require_names(names: Sequence[str], where: str) -> None:
    """Refuse a part's name if a file cannot store the name, or if the name is a path out of a folder, such as "../x".

    Raises:
        InputError: the number of names is 0 or above `MOST_PARTS`; a name is longer than `LONGEST_NAME`; a name
            contains an unprintable character or a backslash; a piece of a name between slashes is empty, "." or "..";
            or one name is inside another name, as "arm/joints" is inside "arm".
    """
    if not 0 < len(names) <= MOST_PARTS:
        raise InputError(f"{where}: a record of {len(names):,} parts; expected 1 to {MOST_PARTS:,}")
    for name in names:
        pieces = name.split("/")
        if (
            not all(pieces)
            or {".", ".."} & set(pieces)
            or len(name) > LONGEST_NAME
            or not name.isprintable()
            or "\\" in name
        ):
            raise InputError(
                f"{where}: a part named {name[:80]!a}; expected names of 1 to {LONGEST_NAME} printable characters, "
                "nested ones joined by single '/': rename it"
            )
    known = set(names)
    for name in names:
        pieces = name.split("/")
        outer = next((inner for n in range(1, len(pieces)) if (inner := "/".join(pieces[:n])) in known), None)
        if outer is not None:
            raise InputError(
                f"{where}: parts named {outer!r} and {name!r}; expected no name inside another: rename one of them"
            )


def places(states: RecordStates) -> list[tuple[str, tuple[int, ...]]]:
    """The name of the part and the index in the part, for each feature in the result of `RecordKind.numbers`."""
    return [
        (name, index)
        for name, array in states.parts.items()
        if array.dtype.kind != "S"
        for index in np.ndindex(array.shape[1:])
    ]


def spelled(name: str, index: tuple[int, ...]) -> str:
    """The readable name of a feature of a record, such as `achieved_goal[0]`."""
    return f"{name}[{', '.join(map(str, index))}]" if index else name


def _type(part: PartLayout) -> str:
    """The type in which programs receive a part: "text", or NumPy's name of a number type."""
    if part.is_text:
        return "text"
    dtype = np.dtype(part.dtype)
    if dtype.kind == "f":
        return "float64"
    return "uint8" if dtype == np.uint8 else "int64"


def _described(part: PartLayout) -> str:
    shape = f" of shape {part.shape}" if part.shape else ""
    return f"{part.name!r} ({_type(part)}{shape})"


def _part(name: str, value: Any) -> Any:
    """A part of one state as an array or a text.

    Raises:
        InputError: the value is neither a number, nor an array of numbers, nor a text in UTF-8. Or the value holds
            a whole number that int64 cannot hold.
    """
    if isinstance(value, bytes):
        require_utf8(value, f"part {name[:80]!a} of a state")
        return value.decode()
    if isinstance(value, str):
        return str(value)
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise InputError(
            f"part {name[:80]!a} of a state is {type(value).__name__}; expected a number, an array of numbers or a text"
        )
    require_int64(array, f"part {name[:80]!a} of a state")
    return array.astype(np.int64) if array.dtype.kind == "b" else array


RECORD = RecordKind()
