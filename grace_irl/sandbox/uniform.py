"""One form for the trajectories of a set on their way to a program: one type, one precision, one form of action.

Experts and negatives often come from different files, and whatever differs by file tells a program which is
which, without a look at the state: the type, how many bits of it are in use, whether actions were recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_GLANCE = 64  # states that tell a recording in double precision apart from one that was widened later
_BLOCK = 1 << 16  # states looked at in one go: what is compared takes memory too
_PLACES = 1024.0  # numbers with at most 10 binary places, such as counts and flags, have no precision to speak of


def common_dtype(arrays: Sequence[NDArray[Any]]) -> np.dtype[Any]:
    """The type in which all of these are stored, in this machine's byte order.

    The type that they share, if they share one. Otherwise integers take the smallest type that holds them
    all, and floats the coarsest type among them: a program could read the precision of a finer one off the bits.
    Arrays of float64 that hold nothing but float32 numbers count as float32.
    """
    types = {array.dtype.newbyteorder("=") for array in arrays}
    floats = [array for array in arrays if array.dtype.kind == "f"]
    if not floats:
        widest: np.dtype[Any] = np.result_type(*types) if types else np.dtype(np.float64)
        return widest if widest.kind in "biu" or not types else np.dtype(np.int64)
    precisions = {kind for kind in map(_precision, floats) if kind is not None}
    if len(types) == 1 and len(precisions) <= 1:
        return types.pop()
    return min(precisions or {array.dtype.newbyteorder("=") for array in floats}, key=lambda kind: np.finfo(kind).nmant)


def convert(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The array in this type, unchanged if it has it already. Numbers beyond a float type become its largest."""
    if array.dtype == dtype:
        return array
    if dtype.kind == "f" and not np.can_cast(array.dtype, dtype, "safe"):
        limits = np.finfo(dtype)
        array = np.clip(array, float(limits.min), float(limits.max))
    return array.astype(dtype)


def action_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape that one action of each trajectory is given; None if they keep their own.

    The same numbers in another shape (`(T,)` and `(T, 1)`) say nothing but which recorder was used. Actions of
    different sizes are different actions, as grids of different sizes are different states.
    """
    if len(set(shapes)) <= 1:
        return None
    sizes = {int(np.prod(shape, dtype=np.int64)) for shape in shapes}
    if len(sizes) > 1:
        return None
    size = sizes.pop()
    return () if size == 1 else (size,)


def _precision(array: NDArray[Any]) -> np.dtype[Any] | None:
    """The float type that an array's numbers need; None if they say nothing about it."""
    if array.dtype.itemsize <= np.dtype(np.float32).itemsize:
        return array.dtype.newbyteorder("=")
    if not _fits(array[:_GLANCE]):
        return np.dtype(np.float64)
    blocks = [array[start : start + _BLOCK] for start in range(0, len(array), _BLOCK)]
    if not all(map(_fits, blocks)):
        return np.dtype(np.float64)
    return None if all(map(_short, blocks)) else np.dtype(np.float32)


def _fits(block: NDArray[Any]) -> bool:
    """Whether every number is one of float32."""
    with np.errstate(over="ignore"):
        return bool((block.astype(np.float32) == block).all())


def _short(block: NDArray[Any]) -> bool:
    with np.errstate(over="ignore"):
        scaled = block * _PLACES
    return bool((np.rint(scaled) == scaled).all())
