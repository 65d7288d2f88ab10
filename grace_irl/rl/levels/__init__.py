"""Levels of our own beside BabyAI's, for what no model can know by heart (GRACE, section A.3).

Each file is one level: its room, its instruction, and a plan that solves it. Importing this package needs MiniGrid;
`register` makes the levels known to Gymnasium as BabyAI-PlaceBetween-v0, BabyAI-OpenMatchingDoor-v0 and
BabyAI-SortColors-v0.
"""

from __future__ import annotations

from grace_irl.rl.levels.open_matching_door import OpenMatchingDoor
from grace_irl.rl.levels.place_between import PlaceBetween
from grace_irl.rl.levels.sort_colors import SortColors

LEVELS = {f"BabyAI-{level.__name__}-v0": level for level in (PlaceBetween, OpenMatchingDoor, SortColors)}


def register() -> None:
    """Makes the levels known to Gymnasium; once is enough, and more does no harm."""
    import gymnasium

    for name, level in LEVELS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=f"{level.__module__}:{level.__name__}")
