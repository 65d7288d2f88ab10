"""Recovering a reward needs no simulator, no torch and no Stable-Baselines3."""

from __future__ import annotations

import subprocess
import sys


def test_the_core_imports_none_of_what_training_needs() -> None:
    script = (
        "import sys, grace_irl, grace_irl.cli\n"
        "from grace_irl.rewards import file, scorer, trusted, sandboxed, imitation, scale\n"
        "from grace_irl.rl import environments, hyperparameters, matching, observers\n"
        "print(sorted({'torch', 'stable_baselines3', 'gymnasium', 'minigrid', 'mujoco'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
