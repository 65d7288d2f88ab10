"""Programs that a run begins with: somebody's reward files, or the best programs of another run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grace_irl.errors import InputError
from grace_irl.programs.export import program_of
from grace_irl.propose.given import GivenProgram
from grace_irl.rewards.file import read_reward
from grace_irl.runs.record import candidate
from grace_irl.runs.run import opened
from grace_irl.search.ranks import ranked


def programs_of(paths: Sequence[str], most: int) -> tuple[GivenProgram, ...]:
    """The programs that paths stand for, in order.

    Args:
        paths: reward files; of the folder of a run, its best programs, best first.
        most: programs at most: the size of the population.

    Raises:
        InputError: neither a text file nor the folder of a run, a run without a valid program, or too many files.
    """
    found: list[GivenProgram] = []
    for place, path in enumerate(paths):
        left = most - len(found) - (len(paths) - place - 1)  # the others want a place, too
        if left < 1:
            raise InputError(
                f"--start-from: {len(paths)} paths for a population of {most}; expected at most one for each program: "
                "raise --population"
            )
        if Path(path).is_dir():
            found += _best_of(Path(path), left)
        else:
            found.append(GivenProgram(program_of(read_reward(Path(path))), path))
    return tuple(found)


def _best_of(folder: Path, most: int) -> list[GivenProgram]:
    with opened(folder) as (store, _):
        scores = [candidate(record) for record in store.records().values()]
    order = [each.program for each in ranked(s for s in scores if s.evaluation.valid and s.evaluation.complete)]
    if not order:
        raise InputError(f"{folder}: no valid program; expected a run with at least one for --start-from")
    return [GivenProgram(each.source, f"{folder}: {each.id}", each.prior) for each in order[:most]]
