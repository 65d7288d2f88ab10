"""Lengths of prompts: `initialise` for BabyAI levels with 8 expert and 8 negative trajectories, by scale; what the
screens of a recorded episode take as XML, as outlines and as changes; and `initialise` and `mutate` of three sets.

Prints the tables of docs/prompts.md, in tokens as `grace_irl.propose.tokens.estimate` counts them.

    python benchmarks/prompt_sizes.py                        # six levels, plain and scrambled, about a minute
    python benchmarks/prompt_sizes.py --levels GoToObj,Unlock --episodes 4
    python benchmarks/prompt_sizes.py --levels "" --screens EPISODE    # a folder of uiautomator dumps alone
    python benchmarks/prompt_sizes.py --levels "" --write FOLDER   # three sets, and their prompts as files
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import pairwise
from pathlib import Path

from grace_irl.demos import load, save
from grace_irl.demos.convert import scramble
from grace_irl.demos.labels import Problem, label
from grace_irl.demos.split import split
from grace_irl.demos.trajectory import Demonstrations, Role
from grace_irl.evaluate.evaluator import DiscriminatorEvaluator
from grace_irl.methods.grace_operators import OPERATORS, initialise
from grace_irl.propose.briefing import PromptBudget, brief
from grace_irl.propose.material import Material, Workbench
from grace_irl.propose.prompter import Prompter, PromptSettings
from grace_irl.propose.protocol import Parent
from grace_irl.propose.tokens import estimate
from grace_irl.propose.views import view_of
from grace_irl.rl.collect import collect
from grace_irl.sandbox import open_sandbox
from grace_irl.search.protocol import Request
from grace_irl.states.texts import text

LEVELS = ("GoToObj", "OpenDoorLoc", "PickupLoc", "PutNextLocal", "GoTo", "BossLevel")
ROLES: dict[Role, str] = {"expert": "bot", "negative": "random"}
SCALES = (1.0, 0.5, 0.25)
SHIPPED = Path(__file__).parents[1] / "datasets" / "babyai-go-to-obj"
MUJOCO = Path(__file__).parents[2] / "shared" / "data" / "mujoco"
HOPPER = MUJOCO / "cs285_2023_Hopper-v4.npz", MUJOCO / "drex_Hopper.npz"
CHANGED_CELLS = """\
class Reward:
    def __init__(self, extra_info=None):
        self.first = None

    def reward_fn(self, state):
        self.first = state.copy() if self.first is None else self.first
        return float(self.changed(state) > 2)

    def changed(self, state):
        return int((state != self.first).any(axis=2).sum())

    def debug_fn(self, state):
        return f"{self.changed(state)} cells changed"
"""
HEIGHT = """\
class Reward:
    def __init__(self, extra_info=None):
        pass

    def reward_fn(self, state):
        return float(state[0] > 1.2)

    def debug_fn(self, state):
        return f"first number {state[0]:.3f}"
"""
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


def mutations(folder: Path | None) -> None:
    """The table of three sets: tokens of the first prompt, and of prompts that mutate a weak program.

    Args:
        folder: where to write the prompts; None to write none.
    """
    print("\n| set | initialise | mutate | mutate, incorrect states only |\n|---|---|---|---|")
    with open_sandbox(workers=1) as sandbox:
        for name, (problem, source) in _sets().items():
            bench = Workbench(problem, sandbox)
            program = sandbox.inspect(source).program(source)
            evaluator = DiscriminatorEvaluator(problem, sandbox, cache=bench.rewards)
            parent = Parent(program, evaluator.evaluate([program])[0])
            evaluator.close()
            prompter = Prompter(bench, PromptSettings(operators=OPERATORS), "code")
            only = (("incorrect_only", True),)
            prompts = {
                "initialise": prompter.write(Request(0, "initialise", seed=1), []),
                "mutate": prompter.write(Request(1, "mutate", (program.id,), seed=1), [parent]),
                "mutate-only": prompter.write(Request(2, "mutate", (program.id,), seed=2, context=only), [parent]),
            }
            print(
                f"| {name} | " + " | ".join(f"{estimate(each.text):,}" for each in prompts.values()) + " |", flush=True
            )
            for each, prompt in prompts.items() if folder else ():
                assert folder is not None
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{name}-{each}.txt").write_text(f"{prompt.text}\n")


def _sets() -> dict[str, tuple[Problem, str]]:
    """Labelled sets by name, each with a weak program. Without the files of Hopper, there are two."""
    sets = {"GoToObj": (label(split(load([SHIPPED]), 0.5, 0), "last"), CHANGED_CELLS)}
    with tempfile.TemporaryDirectory() as folder:
        for role, policy in ROLES.items():
            save(collect("BabyAI-PutNextLocal-v0", policy, 8, role), Path(folder) / f"{role}.parquet")
        sets["PutNextLocal"] = label(load([folder]), "last"), CHANGED_CELLS
    if all(file.is_file() for file in HOPPER):
        expert, negative = (load([file], role=role) for file, role in zip(HOPPER, ROLES, strict=True))
        both = Demonstrations(expert.metadata, (*expert.items, *negative.items))
        sets["Hopper"] = label(both, "all"), HEIGHT
    return sets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", default=",".join(LEVELS), help="BabyAI levels, without BabyAI- and -v0")
    parser.add_argument("--episodes", type=int, default=8, help="trajectories of either role")
    parser.add_argument("--screens", type=Path, default=EPISODE, help="an episode of dumps; left out where it is not")
    parser.add_argument("--write", type=Path, help="a folder for the prompts of the last table")
    given = parser.parse_args()
    if given.levels:
        levels(given.levels.split(","), given.episodes)
    if given.screens.is_dir():
        screens(given.screens)
    else:
        print(f"\n{given.screens} is not there: no table of screens")
    mutations(given.write)


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
