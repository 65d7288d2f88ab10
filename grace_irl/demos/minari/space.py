"""The spaces of a Minari dataset, as its metadata describe them: read as JSON, never made into spaces.

Minari makes spaces of them, and where they are missing the environment that the metadata name: an environment is code,
and the bounds of a space may take any amount of memory. A reader needs neither.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from grace_irl.errors import InputError

TEXT_KEYS = ("mission", "instruction", "goal_text")

_EXPECTED = "expected a Box of one dimension, a Box (h, w, 3) of integers, or a Dict of them"


@dataclass(frozen=True)
class Box:
    """A Box of a dataset.

    Attributes:
        shape: of one observation.
        dtype: of its numbers, as stated; those that are stored may be wider.
        image: Minari may store it as JPEG.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    image: bool = False

    @property
    def size(self) -> int:
        """Numbers of one observation."""
        return math.prod(self.shape)


class Layout:
    """How states lie in the observations of a dataset.

    Args:
        serialised: the observation space, as Minari writes it.
        where: the dataset.

    Raises:
        InputError: no such space, or one whose observations are no states.

    Attributes:
        kind: of the states.
        fields: their names, where several boxes are joined.
        boxes: by the names of the parts that are joined; "" is the observation itself.
        text: the name of the part that is the instruction, or None.
    """

    def __init__(self, serialised: object, where: str) -> None:
        space = described(serialised, "observation_space", where)
        self.text: str | None = None
        self.boxes: dict[str, Box] = {}
        self.fields: tuple[str, ...] = ()
        if space.get("type") == "Dict":
            stated = space.get("subspaces")
            named = stated.items() if isinstance(stated, Mapping) else ()
            parts = {name: part for name, part in named if isinstance(part, Mapping)}
            self.text = next((key for key in TEXT_KEYS if parts.get(key, {}).get("type") == "Text"), None)
            boxes = {name: box_of(part, where) for name, part in parts.items() if part.get("type") == "Box"}
            if "image" in boxes:
                self.boxes = {"image": boxes["image"]}
            else:
                self.boxes = {name: boxes[name] for name in sorted(boxes) if len(boxes[name].shape) == 1}
        elif space.get("type") == "Box":
            self.boxes = {"": box_of(space, where)}
        shapes = [box.shape for box in self.boxes.values()]
        if not shapes:
            raise InputError(f"{where}: observations of type {str(space.get('type'))[:40]!r}; {_EXPECTED}")
        if len(shapes) == 1 and len(shapes[0]) not in (1, 3):
            raise InputError(f"{where}: observations of shape {shapes[0]}; expected (n,) or (h, w, 3)")
        self.kind: Literal["vector", "grid"] = "grid" if len(shapes[0]) == 3 else "vector"
        if len(self.boxes) > 1:
            self.fields = tuple(f"{name}_{i}" for name, box in self.boxes.items() for i in range(box.size))

    @property
    def size(self) -> int:
        """Numbers of one state."""
        return sum(box.size for box in self.boxes.values())


def described(serialised: object, name: str, where: str) -> Mapping[str, Any]:
    """The JSON object of a space.

    Raises:
        InputError: it is missing, or none.
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
    """The Box that an object describes.

    Raises:
        InputError: sides that are no counts, or a dtype that is no number's.
    """
    sides, name = space.get("shape"), str(space.get("dtype"))[:40]
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError):
        dtype = np.dtype(object)
    counts = isinstance(sides, list) and len(sides) <= 32 and all(type(side) is int and side >= 0 for side in sides)
    if not counts or dtype.kind not in "biuf":
        raise InputError(f"{where}: a Box of {name} and shape {str(sides)[:80]}; expected numbers and their counts")
    shape = tuple(sides or ())
    # As Minari tells images: at least 32 by 32 bytes from 0 to 255.
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
