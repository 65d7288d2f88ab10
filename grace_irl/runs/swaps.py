"""Swaps: expert episodes with the instruction of another expert, as negative demonstrations (`--swaps`).

Swaps show that a state is a goal only under the episode's own instruction. A swap is used if the simulator of BabyAI
decides that the episode does not fulfil the other instruction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

from grace_irl.demos.trajectory import SWAPPED, Demonstration, Demonstrations, LabelRule, Trajectory
from grace_irl.errors import InputError
from grace_irl.rl.fulfilled import fulfilments

MOST = 4
"""Maximum number of swaps per expert. More than one is useful, because a single swap tests few words."""


def with_swaps(demonstrations: Demonstrations, rule: LabelRule) -> Demonstrations:
    """Add the swaps of each expert, with the expert's task and side of the split.

    The instruction of a swap comes from another expert of the same task and side, so held-out instructions stay held
    out.

    Args:
        demonstrations: the set, with a side of the split for each trajectory.
        rule: the label rule.

    Raises:
        InputError: the rule is "all", or no expert has a swap.
    """
    if rule == "all":
        raise InputError(
            "--swaps: the label rule is 'all', which has no goals; expected 'last' or 'goal', or no --swaps"
        )
    made = [swap for group in _groups(demonstrations) for swap in _swaps(group)]
    if not made:
        if find_spec("minigrid") is None:
            raise InputError(
                "--swaps: minigrid is not installed; expected it as the simulator: pip install 'grace-irl[rl]', or "
                "leave --swaps out"
            )
        raise InputError(
            "--swaps: no expert episode has a swap; expected experts of BabyAI with different instructions, stored as "
            "whole grids (view minigrid-full) with their actions: leave --swaps out"
        )
    return replace(demonstrations, items=(*demonstrations, *made))


def swaps_line(demonstrations: Demonstrations) -> str:
    """A line for the user about the swaps of a set; "" without swaps."""
    experts = len(demonstrations.select(role="expert"))
    swaps = sum(item.swapped for item in demonstrations)
    return (
        f"swaps: {swaps} copies of {experts} experts, with another expert's instruction, are negatives" if swaps else ""
    )


def swaps_among(demonstrations: Demonstrations, digests: Collection[str]) -> dict[str, Trajectory]:
    """The swaps of an earlier `with_swaps` that have these digests, by digest. No simulator is needed."""
    experts = demonstrations.select(role="expert")
    texts = sorted({item.trajectory.extra_info for item in experts})
    every = (_told(item.trajectory, text) for item in experts for text in texts)
    return {swap.digest: swap for swap in every if swap.digest in digests} if digests else {}


def _groups(demonstrations: Demonstrations) -> list[list[Demonstration]]:
    """The experts of each task and side of the split."""
    found: dict[tuple[str, str], list[Demonstration]] = {}
    for item in demonstrations.select(role="expert"):
        found.setdefault((item.task, item.side), []).append(item)
    return list(found.values())


def _swaps(experts: Sequence[Demonstration]) -> list[Demonstration]:
    """At most `MOST` swaps of each expert, each with an instruction that the episode does not fulfil.

    The instructions that differ least from the expert's own are preferred, because such swaps test single words. For
    example, an episode of "go to the grey box" becomes a negative of "go to the grey key".
    """
    texts = sorted({item.trajectory.extra_info for item in experts})
    made = []
    for item in experts:
        own = texts.index(item.trajectory.extra_info)
        # Equally similar texts keep the order of `others`. This order starts after the expert's own text, so that
        # experts get different swaps.
        others = texts[own + 1 :] + texts[:own]
        judged = fulfilments(item.trajectory, others)
        counting = [text for text, one in zip(others, judged, strict=True) if one is not None and one.at is None]
        nearest = sorted(counting, key=partial(_differing, item.trajectory.extra_info))
        for text in nearest[:MOST]:
            trajectory = _told(item.trajectory, text)
            made.append(replace(item, trajectory=trajectory, role="negative", goals=None, swapped=True))
    return made


def _told(trajectory: Trajectory, text: str) -> Trajectory:
    return replace(trajectory, extra_info=text, rewards=None, source=f"{trajectory.source}{SWAPPED}")


def _differing(one: str, other: str) -> int:
    """Number of words that only one of two instructions has."""
    words, others = Counter(one.lower().split()), Counter(other.lower().split())
    return ((words - others) + (others - words)).total()
