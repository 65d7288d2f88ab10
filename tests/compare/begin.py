"""Begins, or goes on with, a short comparison; for tests that kill it.

python -m tests.compare.begin DEMOS FOLDER [resume]
"""

from __future__ import annotations

import sys
from pathlib import Path

from grace_irl.compare.comparison import resume, start
from tests.compare.short import HEAVY, settings

if __name__ == "__main__":
    demos, folder = map(Path, sys.argv[1:3])
    if sys.argv[3:]:
        resume(folder, workers=2)
    else:
        start(settings(demos, "grace", "ppo-true", transfer=(HEAVY,)), folder, 2)
