"""One trajectory on its way out of a Parquet file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.parquet.columns import SCREENSHOT, STATE_COLUMNS, STEP_COLUMNS, TEXT_COLUMNS, WORD_COLUMNS
from grace_irl.demos.parquet.rows import Column, Rows, Words
from grace_irl.demos.parquet.screenshots import SetScreenshot
from grace_irl.demos.source import Allocate, build, stated_role, stated_split
from grace_irl.demos.trajectory import Demonstration, Role
from grace_irl.demos.ui.annotated import AnnotatedTrajectory
from grace_irl.errors import InputError

if TYPE_CHECKING:
    from grace_irl.demos.parquet.source import ParquetSource


class ParquetEpisode:
    """A trajectory that is being filled from batches."""

    def __init__(
        self, source: ParquetSource, rows: Rows, row: int, index: int, length: int, allocate: Allocate
    ) -> None:
        self._source = source
        self._where = f"{source.path}: episode {index}"
        self._length = length
        self._filled = 0
        source.require(length * (8 * len(STEP_COLUMNS) + len(STATE_COLUMNS)), self._where)
        self._text = {name: text and source.shared(text) for name in TEXT_COLUMNS for text in [rows.text(name, row)]}
        self._states = source.states(self._where, rows, row, length, allocate)
        self._columns = {name: Column(length, np.empty) for name in STATE_COLUMNS}
        self._columns |= {name: Column(length - 1, np.empty) for name in STEP_COLUMNS}
        self._columns["action"] = Column(length - 1, allocate)
        self._words = [Words(name, length - 1) for name in WORD_COLUMNS]
        self._screenshots: list[SetScreenshot | None] = []

    @property
    def full(self) -> bool:
        return self._filled == self._length

    def fill(self, rows: Rows, start: int, before: int) -> int:
        """Takes this episode's rows from `start` on, `before` being those of the file that come before the batch.

        Returns:
            The row after them.
        """
        stop = min(len(rows), start + self._length - self._filled)
        self._states.take(rows, start, stop)
        for name, text in self._text.items():
            others = sorted(other for other in rows.texts(name, start, stop) if other not in (text, None))
            if others:
                found = f"{self._where}: {name} {repr(text)[:80]} and then {repr(others[0])[:80]}"
                raise InputError(
                    f"{found}; expected one through the episode: give each trajectory an episode of its own"
                )
        last_step = start + self._length - 1 - self._filled
        for name, column in self._columns.items():
            end = min(stop, last_step) if name in STEP_COLUMNS else stop
            column.fill(rows, name, start, end, self._filled)
        for words in self._words:
            words.fill(rows, start, min(stop, last_step))
        places = rows.column(SCREENSHOT, start, stop)
        if places is not None:
            self._screenshots += self._source.pictures.screenshots(places, before + start)
        self._filled += stop - start
        return stop

    def demonstration(self, role: Role | None) -> Demonstration:
        """The whole trajectory with what it stands for."""
        source, column = self._source, {name: column.array for name, column in self._columns.items()}
        actions, action_shape = column["action"], source.header.action_shape
        if actions is not None and action_shape is not None:
            if math.prod(action_shape) != math.prod(actions.shape[1:]):
                found = f"{self._where}: actions of shape {actions.shape[1:]}, and {action_shape} in the metadata"
                raise InputError(f"{found}; expected one shape: write the file again")
            actions = actions.reshape(len(actions), *action_shape)
        trajectory = build(
            self._states.array(),
            self._where,
            source.header.metadata.fields,
            actions=actions,
            extra_info=self._text["instruction"] or "",
            rewards=_floats(column["reward"]),
            log_probs=_floats(column["log_prob"]),
            terminated=_any(column["terminated"]),
            truncated=_any(column["truncated"]),
            screenshots=tuple(self._screenshots) if any(self._screenshots) else (),
        )
        words = [tuple(map(source.shared, column.texts(self._where))) for column in self._words]
        if any(words):
            trajectory = AnnotatedTrajectory.of(trajectory, *words)
        goal = column["goal"]
        return Demonstration(
            trajectory,
            stated_role(role or self._text["role"] or source.header.role, self._where),
            self._text["task"] or "default",
            stated_split(self._text["split"], self._where),
            None if goal is None else tuple(int(step) for step in np.flatnonzero(goal)),
        )


def _floats(array: NDArray[Any] | None) -> NDArray[np.float64] | None:
    return None if array is None else array.astype(np.float64, copy=False)


def _any(array: NDArray[Any] | None) -> bool:
    return array is not None and bool(array.any())
