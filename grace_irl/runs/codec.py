"""Evaluations as JSON text, for the store and for `--json`."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from grace_irl.evaluate.evaluation import Evaluation, Failure, Metrics


def to_text(evaluation: Evaluation) -> str:
    """Exact JSON (floats in Python's shortest form, infinities as Python writes them)."""
    return json.dumps(asdict(evaluation), separators=(",", ":"))


def from_text(text: str) -> Evaluation:
    """The evaluation of `to_text`.

    Raises:
        ValueError, TypeError, LookupError, AttributeError, RecursionError: another text.
    """
    tree: dict[str, Any] = json.loads(text)
    tree["train"], tree["held_out"] = _metrics(tree["train"]), _metrics(tree["held_out"])
    tree["tasks"] = {name: (_needed(a), _metrics(b)) for name, (a, b) in tree["tasks"].items()}
    tree["failures"] = tuple(Failure(**failure) for failure in tree["failures"])
    return Evaluation(**tree)


def _needed(tree: dict[str, Any]) -> Metrics:
    wrong = next((name for name, value in tree.items() if not isinstance(value, int | float | None)), None)
    if wrong is not None:
        raise TypeError(f"{wrong} is {type(tree[wrong]).__name__}, not a number")
    return Metrics(**tree)


def _metrics(tree: dict[str, Any] | None) -> Metrics | None:
    return None if tree is None else _needed(tree)


def plain(value: object) -> Any:
    """A value for strict JSON: dataclasses as objects, tuples as lists, what is not finite as null."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
