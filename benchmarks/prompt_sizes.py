"""How long prompts are: `initialise` for BabyAI levels with 8 expert and 8 negative trajectories, by scale.

Prints the table of docs/prompts.md, in tokens as `grace_irl.propose.tokens.estimate` counts them.

    python benchmarks/prompt_sizes.py                        # six levels, plain and scrambled, about a minute
    python benchmarks/prompt_sizes.py --levels GoToObj,Unlock --episodes 4
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from grace_irl.demos import load, save
from grace_irl.demos.convert import scramble
from grace_irl.demos.labels import label
from grace_irl.demos.trajectory import Demonstrations, Role
from grace_irl.propose.briefing import Budget, brief
from grace_irl.propose.material import Material
from grace_irl.propose.operators import initialise
from grace_irl.propose.tokens import estimate
from grace_irl.rl.collect import collect

LEVELS = ("GoToObj", "OpenDoorLoc", "PickupLoc", "PutNextLocal", "GoTo", "BossLevel")
ROLES: dict[Role, str] = {"expert": "bot", "negative": "random"}
SCALES = (1.0, 0.5, 0.25)


def sizes(demonstrations: Demonstrations) -> list[int]:
    """Tokens of one prompt at each scale."""
    problem = label(demonstrations, "last")
    return [estimate(initialise(brief(problem, budget=Budget(scale=scale)), Material(seed=1)).text) for scale in SCALES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", default=",".join(LEVELS), help="BabyAI levels, without BabyAI- and -v0")
    parser.add_argument("--episodes", type=int, default=8, help="trajectories of either role")
    given = parser.parse_args()
    print("| level | codes | " + " | ".join(f"scale {scale:g}" for scale in SCALES) + " |")
    print("|---|---|" + "---|" * len(SCALES))
    with tempfile.TemporaryDirectory() as folder:
        for level in given.levels.split(","):
            plain, copy = Path(folder) / level, Path(folder) / f"{level}-scrambled"
            plain.mkdir()
            for role, policy in ROLES.items():
                save(collect(f"BabyAI-{level}-v0", policy, given.episodes, role), plain / f"{role}.parquet")
            scramble([plain], copy, seed=0)
            for name, where in (("plain", plain), ("scrambled", copy)):
                counted = " | ".join(f"{size:,}" for size in sizes(load([where])))
                print(f"| {level} | {name} | {counted} |", flush=True)


if __name__ == "__main__":
    main()
