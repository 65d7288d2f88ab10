"""Numbers of rows of the episodes in a Parquet file.

Only the columns with the numbers of episodes and steps are read, so memory can be checked before any states are read.
"""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from grace_irl.demos.memory import Memory
from grace_irl.demos.parquet.schema import first_line, numbers_of
from grace_irl.errors import InputError

EPISODE_ROWS = 1 << 18
"""Number of rows per batch."""

NUMBER_BYTES = 128
"""Memory in bytes for one episode's number and length, while the file is read."""


def episode_lengths(
    path: Path, file: pq.ParquetFile, episode: str, step: str | None, memory: Memory
) -> tuple[list[int], str, str]:
    """Row counts of all episodes, and the numbers of the first and the last, as texts.

    Args:
        path: path of the file, for messages.
        file: the open file.
        episode: the column with each row's number of its episode.
        step: a column with each row's step in its episode; None if there is none.
        memory: memory limit of the demonstration set.

    Raises:
        InputError: an episode in two places, or rows that are not in the order of the column `step`.
    """
    lengths: list[int] = []
    seen: dict[int, None] = {}
    last: int | None = None
    before = -math.inf
    try:
        for batch in file.iter_batches(EPISODE_ROWS, columns=[episode, *filter(None, [step])], use_threads=False):
            memory.require(NUMBER_BYTES * len(lengths), f"{path}: {len(lengths):,} episodes")
            ids = numbers_of(batch.column(episode))
            if step is not None:
                before = _last_step(path, ids, batch.column(step), last, before)
            bounds = [0, *(np.flatnonzero(np.diff(ids)) + 1).tolist(), len(ids)]
            for start, stop in pairwise(bounds):
                number = int(ids[start])
                if number == last:
                    lengths[-1] += stop - start
                    continue
                if number in seen:
                    raise InputError(
                        f"{path}: episode {number} comes back after another one; "
                        "expected the rows of an episode together: sort by episode and step"
                    )
                seen[number] = None
                lengths.append(stop - start)
                last = number
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{path}: column 'episode' cannot be read ({first_line(error)}); expected integers without nulls"
        ) from None
    if not lengths:
        raise InputError(f"{path}: no rows; expected at least one trajectory")
    return lengths, str(next(iter(seen))), str(last)


def _last_step(path: Path, ids: NDArray[Any], column: pa.Array, last: int | None, before: float) -> float:
    """Check that the rows of each episode are in the order of their steps, and return the step of the last row.

    Args:
        path: path of the file, for messages.
        ids: number of each row's episode.
        column: steps of the rows. A null step is not compared with other steps.
        last, before: episode and step of the row before these rows.

    Raises:
        InputError: a step after a larger one.
    """
    if not len(column):
        return before
    steps = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    back = (steps[1:] < steps[:-1]) & (ids[1:] == ids[:-1])
    if back.any() or (int(ids[0]) == last and steps[0] < before):
        number = int(ids[0] if not back.any() else ids[1:][back][0])
        raise InputError(
            f"{path}: rows of episode {number} are not in the order of their steps; expected the first step "
            "first: sort by episode and step"
        )
    return float(steps[-1])
