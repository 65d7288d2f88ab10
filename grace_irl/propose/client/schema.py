"""The JSON form of an answer."""

from __future__ import annotations

from typing import Any

REASONING = "reasoning"
CODE = "reward_class_code"

ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {REASONING: {"type": "string"}, CODE: {"type": "string"}},
    "required": [REASONING, CODE],
    "additionalProperties": False,
}
"""Reasoning first: what a model writes before the code can help the code."""
