"""Evaluations as JSON text, for the store and for `--json`."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.typed import from_json


def to_text(evaluation: Evaluation) -> str:
    """Exact JSON (floats in Python's shortest form, infinities as Python writes them)."""
    return json.dumps(asdict(evaluation), separators=(",", ":"))


def from_text(text: str) -> Evaluation:
    """The evaluation of `to_text`.

    Raises:
        ValueError: another text, or a valid program whose fitness is not finite.
    """
    found = from_json(Evaluation, text)
    if found.valid and not math.isfinite(found.fitness):
        raise ValueError("fitness: expected a finite number of a valid program")
    return found


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
