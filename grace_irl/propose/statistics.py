"""Statistics of vectors by label: the table in a prompt, and the same function for programs to copy."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np


def field_statistics(expert_states: Any, negative_states: Any) -> list[dict[str, Any]]:
    """Mean, deviation and percentiles of every field on both sides; largest effect (Cohen's d) first."""
    expert, negative = np.asarray(expert_states, float), np.asarray(negative_states, float)
    table: list[dict[str, Any]] = []
    for i in range(expert.shape[1]):
        row: dict[str, Any] = {"field": i}
        for side, values in (("expert", expert[:, i]), ("negative", negative[:, i])):
            p5, p50, p95 = np.percentile(values, (5, 50, 95))
            row[side] = {"mean": values.mean(), "std": values.std(), "p5": p5, "p50": p50, "p95": p95}
        pooled = np.sqrt((expert[:, i].var() + negative[:, i].var()) / 2)
        row["d"] = (expert[:, i].mean() - negative[:, i].mean()) / pooled if pooled > 0 else 0.0
        table.append(row)
    return sorted(table, key=lambda row: -abs(row["d"]))


HELPER = f"from typing import Any\n\nimport numpy as np\n\n\n{inspect.getsource(field_statistics)}"
"""Its text for prompts. A program that wants it copies it, so that an exported file needs nothing of ours."""
