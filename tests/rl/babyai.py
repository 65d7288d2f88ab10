"""BabyAI's levels of the tests: the 17 public ones of GRACE's table 3, and our own."""

from __future__ import annotations

OTHERS = (
    *(
        "GoToObj",
        "GoToObjS4",
        "GoToRedBall",
        "GoToLocalS8N7",
        "GoToDoor",
        "OpenDoorColor",
        "OpenDoorLoc",
        "Pickup",
        "PickupLoc",
        "PickupDist",
    ),
    *("GoToRedBlueBall", "GoToRedBallGrey", "Open", "OpenTwoDoors", "OpenRedBlueDoors"),
)
"""Public levels with near misses. In GoToObj and GoToObjS4 there is one object, so that the instruction is that of
another world."""
ALONE = ("GoToRedBallNoDists", "OpenRedDoor")
"""Public levels with one object or one door, and one instruction."""
OWN = ("PlaceBetween", "OpenMatchingDoor", "SortColors")
LEVELS = (*OTHERS, *ALONE, *OWN)


def id_of(level: str) -> str:
    return f"BabyAI-{level}-v0"
