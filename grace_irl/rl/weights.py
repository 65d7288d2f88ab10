"""Weights out of files that nobody trusts: tensors and plain values, and no more of them than the file holds.

A file says how large a network is in several places, and any of them may lie. So the tensors are read first, by torch's
weights-only loader, and a network is made only once the tensors are known to be those of its layers.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch

from grace_irl.demos.memory import Memory


def read_weights(data: bytes, device: str = "cpu") -> Any:
    """What `torch.save` wrote: a dict of tensors, mostly.

    Args:
        data: the whole file.
        device: where tensors go.

    Raises:
        ValueError: another kind of file, or one whose parts are larger than itself; or what torch raises.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
    except zipfile.BadZipFile as error:
        raise ValueError(f"not what torch.save writes: {error}") from None
    if any(part.compress_type != zipfile.ZIP_STORED for part in parts) or sum(p.file_size for p in parts) > len(data):
        raise ValueError("weights that are compressed, which torch.save does not do")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of storages as older versions wrote them
        return torch.load(io.BytesIO(data), map_location=device, weights_only=True)


def require_tensors(found: object) -> dict[str, torch.Tensor]:
    """The tensors of a network by their names, each of which has all of its numbers in the file.

    Raises:
        ValueError: something else.
    """
    if not isinstance(found, Mapping) or not found:
        raise ValueError("no tensors by their names")
    for name, tensor in found.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
            raise ValueError(f"weight {str(name)[:80]!r} is no plain tensor")
        if tensor.device.type == "meta" or tensor.untyped_storage().nbytes() < tensor.numel() * tensor.element_size():
            raise ValueError(f"weight {name[:80]!r} of shape {tuple(tensor.shape)} has fewer numbers than its shape")
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"weight {name[:80]!r} holds NaN or infinity")
    return dict(found)


def require_layers(weights: Mapping[str, torch.Tensor], described: object, inputs: int, critics: int = 1) -> None:
    """Refuses layers of more numbers than the weights have: a network is as large as its description says.

    Args:
        weights: of `require_tensors`.
        described: a `net_arch`: the widths of layers, or a dict of them.
        inputs: numbers that the first layer reads.
        critics: how many networks have the layers, or those of the dict's last entry.

    Raises:
        ValueError: no such description, or more numbers.
        InputError: it does not fit the memory.
    """
    numbers = sum(tensor.numel() for tensor in weights.values())
    parts: list[Any] = list(described.values()) if isinstance(described, Mapping) else [described]
    if not all(isinstance(part, list | tuple) and all(type(w) is int and w > 0 for w in part) for part in parts):
        raise ValueError(f"layers {str(described)[:80]}")
    layers = sum(len(part) for part in parts)
    needed = [sum(one * other + other for one, other in pairwise([inputs, *part])) for part in parts]
    if type(critics) is not int or not 0 < critics <= len(weights) or layers > len(weights):
        raise ValueError(f"{layers} layers and {str(critics)[:20]} critics of {len(weights)} weights")
    if max(sum(needed), critics * (needed[-1] if needed else 0)) > numbers:
        raise ValueError(f"layers {str(described)[:80]} of more numbers than its {numbers:,} weights")
    Memory().require(COPIES * 4 * numbers, "a network")


COPIES = 4
"""Of each weight: in the file, as read, in the network, and while its layer is initialised."""
