"""Reading of a file as the tests of formats do it."""

from pathlib import Path
from typing import Any

from grace_irl.demos import load
from grace_irl.demos.trajectory import Demonstrations


def read(path: Path, **more: Any) -> Demonstrations:
    """All episodes of a file as experts'."""
    return load([path], role="expert", **more)


def numbers(found: Demonstrations) -> list[list[list[float]]]:
    """The states of each episode."""
    return [each.trajectory.states.tolist() for each in found]


WHOLE = [[[0.5], [1.5]], [[2.5], [3.5]]]
