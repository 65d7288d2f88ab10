"""The states of a run's trajectories, from where its demonstrations lie now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from grace_irl.demos import load
from grace_irl.demos.trajectory import Metadata, Trajectory
from grace_irl.errors import GraceError
from grace_irl.runs.config import Config
from grace_irl.runs.trajectory_row import TrajectoryRow


@dataclass(frozen=True, eq=False)
class Data:
    """What could be read again.

    Attributes:
        metadata: of the set; None where nothing could be read.
        trajectories: by digest; those of the run that were found.
        trouble: why some or all are missing, in one line; "" where none is.
    """

    metadata: Metadata | None = None
    trajectories: dict[str, Trajectory] = field(default_factory=dict)
    trouble: str = ""


def read(config: Config, rows: Sequence[TrajectoryRow]) -> Data:
    """The demonstrations that a configuration names, as far as they are still the run's; data never make it raise."""
    if not config.data.demos:
        return Data(trouble="the run was given its demonstrations by a program, and names no file of them")
    try:
        demonstrations = load(config.data.demos, config.data.negatives)
    except (GraceError, OSError) as error:
        return Data(trouble=f"the demonstrations cannot be read any more ({error})")
    wanted = {row.digest for row in rows}
    found = {each.trajectory.digest: each.trajectory for each in demonstrations if each.trajectory.digest in wanted}
    missing = len(wanted) - len(found)
    trouble = (
        f"{missing} of {len(wanted)} different trajectories are no longer in the demonstrations" if missing else ""
    )
    return Data(demonstrations.metadata, found, trouble)
