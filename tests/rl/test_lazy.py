"""Recovering a reward needs no simulator, no torch and no Stable-Baselines3."""

from __future__ import annotations

import subprocess
import sys


def test_the_core_imports_none_of_what_training_needs() -> None:
    script = (
        "import sys, grace_irl, grace_irl.cli, grace_irl.rewards.file, grace_irl.rl.matching\n"
        "from grace_irl.rewards import runner, view, imitation, scale\n"
        "from grace_irl.rl import hyperparameters, observers, environments\n"
        "print(sorted({'torch', 'stable_baselines3', 'gymnasium', 'minigrid', 'mujoco'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
