"""The parts of a Minari dataset's observations that form a state, and the kind of the states.

The JSON of the observation space determines the parts and the kind. No Gymnasium space is created from the JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.states import kind_named, kinds_of_parts
from grace_irl.states.kind import PartLayout, StateKind
from grace_irl.states.record import MOST_PARTS, RECORD
from grace_irl.states.vector import VECTOR

TEXT_KEYS = ("mission", "instruction", "goal_text")
"""Possible names of the part with the instruction. The reader uses the first of these names that a dataset has."""

PICTURE = "image"
"""Name of the part of MiniGrid's observations that holds the state, as codes of cells or as pixels."""

_EXPECTED = "expected a Box of one dimension, a Box (h, w, 3) of integers, or a Dict of them"


@dataclass(frozen=True)
class Box:
    """A `Box` space (an array of numbers) in the observations of a dataset.

    Attributes:
        shape: shape of one observation.
        dtype: dtype of the numbers, from the space. The stored dtype may be wider.
        image: whether Minari may store the observations as JPEG.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    image: bool = False

    @property
    def size(self) -> int:
        """Number of values in one observation."""
        return math.prod(self.shape)


class Layout:
    """The layout of states in the observations of a dataset.

    Args:
        serialised: the observation space in Minari's JSON.
        where: name of the dataset, for messages.
        kind: name of the kind of states in a `Dict` space, such as "grid"; "" to choose the kind by the parts of the
            `Dict`. This argument is ignored for a `Box`.

    Raises:
        InputError: no observation space, or a space whose observations cannot be states.

    Attributes:
        kind: kind of the states.
        fields: names of the vector's components, if several boxes are joined to one vector; else ().
        boxes: numeric parts of a state, by name. The name "" means the whole observation.
        texts: names of the text parts that belong to a state.
        text: name of the text part with the instruction, or None.
        kinds: names of the possible kinds, if shape and dtype fit several kinds; else ().
    """

    def __init__(self, serialised: object, where: str, kind: str = "") -> None:
        space = described(serialised, "observation_space", where)
        self.text: str | None = None
        self.boxes: dict[str, Box] = {}
        self.fields: tuple[str, ...] = ()
        self.texts: tuple[str, ...] = ()
        self.kinds: tuple[str, ...] = ()
        if space.get("type") == "Dict":
            leaves = dict(_leaves(space, where))
            self.text = next((key for key in TEXT_KEYS if leaves.get(key, {}).get("type") == "Text"), None)
            boxes = {name: box_of(part, where) for name, part in leaves.items() if part.get("type") == "Box"}
            vectors = {name: boxes[name] for name in sorted(boxes) if len(boxes[name].shape) == 1}
            others = set(leaves) - {self.text}
            alone = set(boxes) == {PICTURE} or (set(vectors) == others and len(vectors) == 1)
            self.kind = RECORD if not kind and not alone else kind_named(kind or VECTOR.name)
            if self.kind.has_parts:
                others = others or set(leaves)
                self.text = self.text if self.text not in others else None
                self.kind.require_names(sorted(others), where)
                self.texts = tuple(sorted(name for name in others if leaves[name].get("type") == "Text"))
                numbers = sorted(others - {*self.texts})
                self.boxes = {name: numbers_of_space(name, leaves[name], where) for name in numbers}
                return
            fitting = {name: boxes[name] for name in sorted(boxes) if _fits(self.kind, boxes[name])}
            self.boxes = {PICTURE: boxes[PICTURE]} if PICTURE in boxes and not kind else fitting
            if PICTURE in fitting:
                self.boxes = {PICTURE: fitting[PICTURE]}
            if len(self.boxes) > 1 and self.boxes != vectors:
                raise InputError(
                    f"{where}: {len(self.boxes)} parts of the observations are {self.kind.plural}; expected one: read "
                    f"them as {RECORD.plural} (--kind {RECORD.name})"
                )
        elif space.get("type") == "Box":
            self.boxes = {"": box_of(space, where)}
        shapes = [box.shape for box in self.boxes.values()]
        if not shapes:
            raise InputError(f"{where}: observations of type {str(space.get('type'))[:40]!r}; {_EXPECTED}")
        if len(shapes) == 1 and len(shapes[0]) not in (1, 3):
            raise InputError(f"{where}: observations of shape {shapes[0]}; expected (n,) or (h, w, 3)")
        first = next(iter(self.boxes.values()))
        found = kinds_of_parts([PartLayout("", first.dtype.str, first.shape)])
        self.kind = found[-1]  # `found` is not empty: each shape of one or three dimensions fits at least one kind
        self.kinds = tuple(each.name for each in found) if len(found) > 1 else ()
        if len(self.boxes) > 1:
            self.fields = tuple(f"{name}_{i}" for name, box in self.boxes.items() for i in range(box.size))

    def whole(self, parts: Mapping[str, NDArray[Any]]) -> Any:
        """Join the stored parts of states, and return the states in the array layout of their kind."""
        if self.kind.has_parts:
            return self.kind.whole(parts)
        arrays = list(parts.values())
        return self.kind.whole({"": arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)})


def _fits(kind: StateKind, box: Box) -> bool:
    """Whether a single box can be a state of a kind."""
    return kind.recognises_parts([PartLayout("", box.dtype.str, box.shape)])


def _leaves(space: Mapping[str, Any], where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name and space of each part of a `Dict`. Parts of a nested `Dict` have names such as "arm/joints"."""
    stack: list[tuple[str, object]] = [("", space)]
    count = 0
    while stack:
        name, part = stack.pop()
        if not isinstance(part, Mapping):
            raise InputError(f"{where}: part {name[:80]!a} of the observations is no space; {_EXPECTED}")
        if part.get("type") != "Dict":
            yield name, part
            continue
        inner = part.get("subspaces")
        named = inner.items() if isinstance(inner, Mapping) else ()
        stack += [(f"{name}/{key}" if name else str(key), each) for key, each in named]
        count += len(named)
        if count > MOST_PARTS:
            raise InputError(f"{where}: observations of over {MOST_PARTS:,} parts; expected fewer")


def numbers_of_space(name: str, space: Mapping[str, Any], where: str) -> Box:
    """Shape and dtype of a numeric part of a record (a state of several named parts).

    `Discrete`, `MultiDiscrete` and `MultiBinary` are read as int64.

    Raises:
        InputError: a space that is neither a `Box` nor of one of these three types. A record needs all its parts, so
            the part cannot be skipped.
    """
    kind = space.get("type")
    if kind == "Box":
        return box_of(space, where)
    if kind == "Discrete":
        return Box((), np.dtype(np.int64))
    if kind in ("MultiDiscrete", "MultiBinary"):
        counts: Any = space.get("nvec") if kind == "MultiDiscrete" else space.get("n")
        shape = counts if isinstance(counts, list) else [counts]
        if kind == "MultiDiscrete":
            shape = [len(shape)] if isinstance(counts, list) else [None]
        if all(type(side) is int and 0 <= side < 1 << 31 for side in shape):
            return Box(tuple(shape), np.dtype(np.int64))
    raise InputError(
        f"{where}: part {name[:80]!a} of the observations is a {str(kind)[:40]}; expected Box, Discrete, "
        "MultiDiscrete, MultiBinary or Text: create the dataset without it"
    )


def described(serialised: object, name: str, where: str) -> Mapping[str, Any]:
    """Parse the JSON object of a space.

    Args:
        serialised: JSON text of the space, from the metadata.
        name: key of the space in the metadata, for messages.
        where: name of the dataset, for messages.

    Raises:
        InputError: the space is missing or invalid.
    """
    if serialised is None:
        raise InputError(
            f"{where}: no {name} in metadata.json; expected one: Minari would make the environment that the file "
            "names, which runs its code"
        )
    try:
        space = json.loads(serialised) if isinstance(serialised, str) else None
    except (ValueError, RecursionError):
        space = None
    if not isinstance(space, dict) or not isinstance(space.get("subspaces", {}), dict | list):
        raise InputError(f"{where}: {name} in metadata.json is no space; expected what Minari writes: write it again")
    return space


def box_of(space: Mapping[str, Any], where: str) -> Box:
    """The Box that a JSON object describes.

    Raises:
        InputError: an invalid shape, or a dtype that is not numeric.
    """
    sides, name = space.get("shape"), str(space.get("dtype"))[:40]
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError):
        dtype = np.dtype(object)
    counts = isinstance(sides, list) and len(sides) <= 32 and all(type(side) is int and side >= 0 for side in sides)
    if not counts or dtype.kind not in "biuf":
        raise InputError(
            f"{where}: a Box of {name} and shape {str(sides)[:80]}; expected a numeric dtype and a list of side lengths"
        )
    shape = tuple(sides or ())
    # Minari's criterion for an image: uint8 with bounds 0 and 255, and at least 32 by 32 pixels.
    image = len(shape) in (2, 3) and min(shape[:2]) >= 32 and dtype == np.uint8
    image = image and set(_numbers(space.get("low"))) == {0} and set(_numbers(space.get("high"))) == {255}
    return Box(shape, dtype, image)


def _numbers(nested: object) -> Iterator[object]:
    stack = [nested]
    while stack:
        part = stack.pop()
        if isinstance(part, list):
            stack.extend(part)
        else:
            yield part if isinstance(part, int | float) else None
