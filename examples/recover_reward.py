"""Recover a reward from the demonstrations that ship, look at it, and use it on a trajectory.

    python examples/recover_reward.py [RUN]

RUN is the folder of the run, new; `runs/<name of the set>-<time>` if it is not given.
"""

from __future__ import annotations

import sys
from pathlib import Path

import grace_irl
from grace_irl.demos import load

DEMOS = Path(__file__).resolve().parent.parent / "datasets" / "babyai-go-to-obj"


def main() -> None:
    """Recovers, prints and applies a reward."""
    run = grace_irl.fit(DEMOS, out=sys.argv[1] if len(sys.argv) > 1 else None)
    print(run.best.source)
    if run.best.held_out is not None:
        print(f"held-out accuracy {run.best.held_out.accuracy:.4f}, AUC {run.best.held_out.auc:.4f}")

    reward = grace_irl.load_reward(run.reward_path)  # runs in the sandbox, like every program of the search
    first = next(each.trajectory for each in load([DEMOS]) if each.role == "expert")
    values = reward.rewards([first])[0]
    print(f"{first.extra_info!r}: {' '.join(f'{value:g}' for value in values)}")


if __name__ == "__main__":
    main()
