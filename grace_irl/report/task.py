"""Facts about the task of a run, for its report: they come from the run's folder, and may be somebody else's words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grace_irl.config import Config
from grace_irl.methods.trained import TASK_FILE, PolicyConfig
from grace_irl.rl.environments import without_folder
from grace_irl.toml import MAX_BYTES

LONGEST = 2_000
"""Maximum number of characters of a fact."""


def task_facts(folder: Path, config: Config) -> list[tuple[str, str]]:
    """Facts about a run's task as pairs of name and text: environment, score, description and training.

    The result is empty if the folder has no readable task.

    Args:
        folder: folder of the run.
        config: configuration of the run, with the settings of its trainings.
    """
    try:
        with (folder / TASK_FILE).open("rb") as file:
            content = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return []
    if not isinstance(content, dict):
        return []
    scored = f" ({content['scored']})" if content.get("scored") else ""
    facts = [
        ("environment", without_folder(str(content.get("env", "")))),
        ("score", f"{without_folder(str(content.get('score', '')))}{scored}"),
        ("task", " ".join(str(content.get("text", "")).split())),
        ("training", _training(content, config.own(PolicyConfig))),
    ]
    return [(name, value[:LONGEST]) for name, value in facts]


def _training(content: Mapping[str, Any], own: PolicyConfig) -> str:
    """The trainings of each program, in words."""
    steps = own.train_steps or content.get("steps")
    said = [
        f"{own.train_seeds} of {steps} steps for each program",
        f"at most {content.get('evaluations')} evaluations of {content.get('episodes')} episodes",
        f"the {own.checkpoint} one counts",
    ]
    if content.get("max_steps"):
        said.append(f"episodes of at most {content['max_steps']} steps")
    if content.get("short_steps"):
        said.append(f"first {content['short_steps']} steps, whose score must reach {content.get('floor')}")
    ppo = content.get("ppo")
    if isinstance(ppo, dict) and ppo:
        said.append(f"PPO with {', '.join(f'{key} {value}' for key, value in sorted(ppo.items()))}")
    return "; ".join(said)
