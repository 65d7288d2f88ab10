"""Recover a reward function from demonstrations, as one readable Python file.

    import grace_irl

    run = grace_irl.fit("babyai-go-to-obj")  # the folder that `grace-irl example` writes
    print(run.best.source)

Names are imported on first use, so `import grace_irl` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from grace_irl.version import __version__

if TYPE_CHECKING:
    from grace_irl.api import comparison, fit, score
    from grace_irl.errors import GraceError, InputError, SandboxError
    from grace_irl.rewards.file import RewardFile, load_reward
    from grace_irl.runs.run import Best, Run
    from grace_irl.runs.score import Score

_HOMES = {
    "comparison": "grace_irl.api",
    "fit": "grace_irl.api",
    "score": "grace_irl.api",
    "load_reward": "grace_irl.rewards.file",
    "RewardFile": "grace_irl.rewards.file",
    "Run": "grace_irl.runs.run",
    "Best": "grace_irl.runs.run",
    "Score": "grace_irl.runs.score",
    "GraceError": "grace_irl.errors",
    "InputError": "grace_irl.errors",
    "SandboxError": "grace_irl.errors",
}

__all__ = [
    "Best",
    "GraceError",
    "InputError",
    "RewardFile",
    "Run",
    "SandboxError",
    "Score",
    "__version__",
    "comparison",
    "fit",
    "load_reward",
    "score",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'grace_irl' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
