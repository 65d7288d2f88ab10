"""BabyAI's levels of the tests: the 17 public ones of GRACE's table 3, and our own."""

from __future__ import annotations

OTHERS = (
    *("GoToRedBall", "GoToLocalS8N7", "GoToDoor", "OpenDoorColor", "OpenDoorLoc", "Pickup", "PickupLoc", "PickupDist"),
    *("GoToRedBlueBall", "GoToRedBallGrey", "Open", "OpenTwoDoors", "OpenRedBlueDoors"),
)
"""Public levels whose worlds have other tasks of the form of the instruction."""
ALONE = ("GoToRedBallNoDists", "GoToObj", "GoToObjS4", "OpenRedDoor")
"""Public levels with one object or one door."""
OWN = ("PlaceBetween", "OpenMatchingDoor", "SortColors")
LEVELS = (*OTHERS, *ALONE, *OWN)


def id_of(level: str) -> str:
    return f"BabyAI-{level}-v0"
