"""The states of a run's trajectories, from where its demonstrations lie now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from grace_irl.demos import load
from grace_irl.demos.trajectory import Demonstrations, Metadata, Trajectory
from grace_irl.errors import GraceError
from grace_irl.runs.config import Config
from grace_irl.runs.trajectory_row import TrajectoryRow

NOT_OWN = (
    "this user did not make the run on this machine, and files that somebody else's run names are not opened: "
    "name them with grace-irl report RUN --demos PATH…"
)


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


def read(
    config: Config, rows: Sequence[TrajectoryRow], *, own: bool = True, given: Demonstrations | None = None
) -> Data:
    """The demonstrations that a configuration names, as far as they are still the run's; data never make it raise.

    Args:
        config: of the run.
        rows: what the run is about.
        own: this user made the run on this machine; of anybody else's run no file is opened that it names.
        given: demonstrations in place of those that it names.
    """
    if given is None and not own:
        return Data(trouble=NOT_OWN)
    if given is None and not config.data.demos:
        return Data(trouble="the run was given its demonstrations by a program, and names no file of them")
    try:
        demonstrations = given or load(config.data.demos, config.data.negatives)
    except (GraceError, OSError) as error:
        return Data(trouble=f"the demonstrations cannot be read any more ({error})")
    wanted = {row.digest for row in rows}
    found = {each.trajectory.digest: each.trajectory for each in demonstrations if each.trajectory.digest in wanted}
    missing = len(wanted) - len(found)
    trouble = (
        f"{missing} of {len(wanted)} different trajectories are no longer in the demonstrations" if missing else ""
    )
    return Data(demonstrations.metadata, found, trouble)
