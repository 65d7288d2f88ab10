"""Lengths of prompts: `initialise` for BabyAI levels with 8 expert and 8 negative trajectories, by scale; and what
the screens of a recorded episode take as XML, as outlines and as changes.

Prints the tables of docs/prompts.md, in tokens as `grace_irl.propose.tokens.estimate` counts them.

    python benchmarks/prompt_sizes.py                        # six levels, plain and scrambled, about a minute
    python benchmarks/prompt_sizes.py --levels GoToObj,Unlock --episodes 4
    python benchmarks/prompt_sizes.py --levels "" --screens EPISODE    # a folder of uiautomator dumps alone
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import pairwise
from pathlib import Path

from grace_irl.demos import load, save
from grace_irl.demos.convert import scramble
from grace_irl.demos.labels import label
from grace_irl.demos.trajectory import Demonstrations, Role
from grace_irl.methods.grace_operators import initialise
from grace_irl.propose.briefing import PromptBudget, brief
from grace_irl.propose.material import Material
from grace_irl.propose.tokens import estimate
from grace_irl.propose.views import view_of
from grace_irl.rl.collect import collect
from grace_irl.states.texts import text

LEVELS = ("GoToObj", "OpenDoorLoc", "PickupLoc", "PutNextLocal", "GoTo", "BossLevel")
ROLES: dict[Role, str] = {"expert": "bot", "negative": "random"}
SCALES = (1.0, 0.5, 0.25)
EPISODE = Path(__file__).parents[2] / "shared" / "data" / "android" / "alarm_episode"


def sizes(demonstrations: Demonstrations) -> list[int]:
    """Tokens of one prompt at each scale."""
    problem = label(demonstrations, "last")
    return [
        estimate(initialise(brief(problem, budget=PromptBudget(scale=scale)), Material(seed=1)).text)
        for scale in SCALES
    ]


def screens(folder: Path) -> None:
    """The table of an episode: its screens as prompts show them, and whole prompts."""
    demonstrations = load([folder], role="expert")
    states = demonstrations[0].trajectory.states
    view = view_of(label(demonstrations, "last").train, demonstrations.metadata)
    outlines = [estimate(view.state(state)) for state in states]
    changes = [estimate(view.change(*pair)) for pair in pairwise(states)]
    rows = {
        "XML": [estimate(text(state)) for state in states],
        "outlines": outlines,
        "the first outline, then changes": [outlines[0], *changes],
    }
    whole = sum(rows["XML"])
    print(f"\n| {len(states)} screens as | tokens | of the XML | largest |\n|---|---|---|---|")
    for name, counted in rows.items():
        print(f"| {name} | {sum(counted):,} | {sum(counted) / whole:.1%} | {max(counted):,} |")
    counted = " | ".join(f"{size:,}" for size in sizes(demonstrations))
    print("\n| episode | " + " | ".join(f"scale {scale:g}" for scale in SCALES) + " |")
    print("|---|" + "---|" * len(SCALES))
    print(f"| {len(states)} screens | {counted} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", default=",".join(LEVELS), help="BabyAI levels, without BabyAI- and -v0")
    parser.add_argument("--episodes", type=int, default=8, help="trajectories of either role")
    parser.add_argument("--screens", type=Path, default=EPISODE, help="an episode of dumps; left out where it is not")
    given = parser.parse_args()
    if given.levels:
        levels(given.levels.split(","), given.episodes)
    if given.screens.is_dir():
        screens(given.screens)
    else:
        print(f"\n{given.screens} is not there: no table of screens")


def levels(names: list[str], episodes: int) -> None:
    """The table of BabyAI levels."""
    print("| level | codes | " + " | ".join(f"scale {scale:g}" for scale in SCALES) + " |")
    print("|---|---|" + "---|" * len(SCALES))
    with tempfile.TemporaryDirectory() as folder:
        for level in names:
            plain, copy = Path(folder) / level, Path(folder) / f"{level}-scrambled"
            plain.mkdir()
            for role, policy in ROLES.items():
                save(collect(f"BabyAI-{level}-v0", policy, episodes, role), plain / f"{role}.parquet")
            scramble([plain], copy, seed=0)
            for name, where in (("plain", plain), ("scrambled", copy)):
                counted = " | ".join(f"{size:,}" for size in sizes(load([where])))
                print(f"| {level} | {name} | {counted} |", flush=True)


if __name__ == "__main__":
    main()
