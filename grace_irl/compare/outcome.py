"""What became of one job: a method with one seed, in the environment and wherever its reward was carried to."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from grace_irl.atomic import write_atomically


@dataclass(frozen=True)
class Outcome:
    """A policy as it was evaluated at the end, on the environment's own reward.

    Attributes:
        environment: where it learnt and played.
        transfer: whether its reward was recovered elsewhere.
        episodes: that were played.
        mean, deviation: of their returns.
        success: share that reached the goal; None where there is none.
        length: mean steps of an episode.
        components: mean sums of the components of the reward that the environment names.
        steps: environment steps of training.
        seconds: wall seconds of training, without evaluations and without the search for a reward; None: not known.
        epic: EPIC distance of the recovered reward from the true one; None where there is not both.
    """

    environment: str
    transfer: bool
    episodes: int
    mean: float
    deviation: float
    success: float | None
    length: float
    components: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    seconds: float | None = None
    epic: float | None = None

    @property
    def rate(self) -> float | None:
        """Environment steps a second."""
        return self.steps / self.seconds if self.seconds and self.steps else None


@dataclass(frozen=True)
class Result:
    """A job that has ended.

    Attributes:
        method, seed: which job.
        outcomes: in the environment first, then in those that its reward was carried to.
        notes: what a reader should know of it.
        failure: why it failed, in one line; "" where it did not.
    """

    method: str
    seed: int
    outcomes: tuple[Outcome, ...] = ()
    notes: tuple[str, ...] = ()
    failure: str = ""


def write_result(path: Path, result: Result) -> None:
    """Keeps a result, whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    write_atomically(path, json.dumps(asdict(result), indent=1) + "\n")


def read_result(path: Path) -> Result | None:
    """A result that was kept; None where there is none of this version: the job is then done again."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if set(found) != {each.name for each in fields(Result)}:
            return None
        outcomes = tuple(Outcome(**each) for each in found["outcomes"])
        return Result(found["method"], found["seed"], outcomes, tuple(found["notes"]), found["failure"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
