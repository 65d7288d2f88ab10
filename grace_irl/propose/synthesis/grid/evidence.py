"""How well a reading of the instructions fits the demonstrations, as a sum of costs in nats.

Three kinds of evidence count. *Outcomes*: the states marked positive, and no others, are those in which the described
happening completes. *Reference*: an instruction speaks of things that are there at the start, so each description must
match something in the first state, and a reading by which it matches few things explains better why it was said (the
size principle of concept learning). *Parsimony* has a file of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.propose.synthesis.grid.meaning import SEVERAL, STATIC, Filter, Plan
from grace_irl.propose.synthesis.grid.scene import SIDES, Rows, Scene

MISSED = 12.0
"""An expert's goal state in which the described happening does not complete."""
WRONGLY_HIT = 2.0
"""A trajectory with other states in which it does; and a little more for each of them."""
WRONG_STATE = 0.1
ABSENT = 5.0
"""A description that matches nothing in the first state. One that matches n things costs log n."""
NOT_SEVERAL = 2.5
"""A word that says "one of several" where the description matches a single thing."""

Columns = tuple[int, ...]


class Evidence:
    """The demonstrations as tables over every possible filter, and the cost of readings of them."""

    def __init__(self, scenes: Sequence[Scene], positives: Sequence[NDArray[np.bool_]]) -> None:
        self.scenes = tuple(scenes)
        self.positives = tuple(positives)
        self.filters = _filters(self.scenes)
        self.index = {f: i for i, f in enumerate(self.filters)}
        self.static = np.array([f.feature in STATIC for f in self.filters])
        self._happenings = [_table(scene.happenings, self.filters) for scene in self.scenes]
        self._things = [_table(scene.things, self.filters) | ~self.static for scene in self.scenes]
        self._neighbours: dict[int, tuple[NDArray[np.bool_], NDArray[np.bool_]]] = {}
        self._costs: dict[tuple[int, Plan, tuple[Columns, ...]], float] = {}

    def fired(self, scene: int, plan: Plan, steps: tuple[Columns, ...]) -> NDArray[np.bool_]:
        """The states of a scene in which the happening completes; (T+1,). `steps` holds filter indices per step."""
        rows, table = self.scenes[scene].happenings, self._happenings[scene]
        length = self.scenes[scene].length
        if plan.arrangement == "beside" and len(steps) == 2:
            near, there = self._near(scene)
            hit = table[:, list(steps[0])].all(axis=1)
            hit &= np.any(near[:, :, list(steps[1])].all(axis=2) & there, axis=1)
            return _marked(rows.state[hit], length)
        done: list[NDArray[np.bool_]] = [
            _marked(rows.state[np.all(table[:, list(columns)], axis=1)], length) for columns in steps
        ]
        if len(done) == 1:
            return done[0]
        first, second = done
        if plan.arrangement == "both":
            return _ever(first) & _ever(second) & (first | second)
        return _ever(first) & second

    def split_rows(
        self, scene: int, plan: Plan, steps: tuple[Columns, ...], positive: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which filters the happenings meet that complete the last step in positive states, and which all others of
        the same event meet; two (rows, F) tables."""
        rows, table = self.scenes[scene].happenings, self._happenings[scene]
        last = list(steps[-1])
        events = [column for column in last if self.filters[column].feature == "event"]
        now = positive & self.fired(scene, plan, steps)
        goal = np.all(table[:, last], axis=1) & now[rows.state]
        return table[goal], table[np.all(table[:, events], axis=1) & ~goal]

    def cost(self, scene: int, plan: Plan, steps: tuple[Columns, ...]) -> float:
        """The cost of one scene under a reading, in nats."""
        key = (scene, plan, steps)
        if key not in self._costs:
            self._costs[key] = self._cost(scene, plan, steps)
        return self._costs[key]

    def _cost(self, scene: int, plan: Plan, steps: tuple[Columns, ...]) -> float:
        fired, positive = self.fired(scene, plan, steps), self.positives[scene]
        wrong = int((fired & ~positive).sum())
        cost = MISSED * float((positive & ~fired).sum() / max(1, positive.sum()))
        cost += (WRONGLY_HIT + WRONG_STATE * min(wrong, 60)) * (wrong > 0)
        for columns in steps:
            static = [column for column in columns if self.static[column]]
            matches = int(self._things[scene][:, static].all(axis=1).sum())
            if SEVERAL in (self.filters[column] for column in columns):
                cost += float(np.log(matches - 1)) if matches > 1 else NOT_SEVERAL if matches else ABSENT
            else:
                cost += float(np.log(matches)) if matches else ABSENT
        return cost

    def matches(self, scene: int, columns: Columns) -> int:
        """How many things of the first state meet these filters."""
        return int(self._things[scene][:, list(columns)].all(axis=1).sum())

    def _near(self, scene: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The filters that the things in the four neighbouring cells of each row meet, in its state, (N, 4, F), and
        which of these cells hold a thing at all, (N, 4)."""
        if scene not in self._neighbours:
            rows, states, objects = self.scenes[scene].happenings, self.scenes[scene].states, self.scenes[scene].objects
            tables, there = [], []
            # What is beside a thing is known by its look alone.
            silent = np.array([f.feature not in ("channel 0", "channel 1") for f in self.filters])
            for offset in ((1, 0), (0, 1), (-1, 0), (0, -1)):
                cells = rows.cells + offset
                inside = np.asarray(np.all((cells >= 0) & (cells < states.shape[1:3]), axis=1), dtype=np.bool_)
                cells = np.where(inside[:, None], cells, 0)
                at = (rows.state, cells[:, 0], cells[:, 1])
                near = Rows(rows.state, rows.event, states[at], np.zeros_like(rows.sides), cells)
                tables.append(_table(near, self.filters) | silent)
                there.append(objects[at] & inside)
            self._neighbours[scene] = np.stack(tables, axis=1), np.stack(there, axis=1)
        return self._neighbours[scene]


def _filters(scenes: Sequence[Scene]) -> tuple[Filter, ...]:
    """Every filter that something in the data meets."""
    filters: set[Filter] = set()
    for scene in scenes:
        for rows in (scene.happenings, scene.things):
            filters |= {Filter("event", e) for e in np.unique(rows.event).tolist() if e >= 0}
            filters |= {Filter("channel 0", v) for v in np.unique(rows.codes[:, 0]).tolist()}
            filters |= {Filter("channel 1", v) for v in np.unique(rows.codes[:, 1]).tolist()}
            filters |= {Filter("channel 2", v) for v in np.unique(rows.codes[:, 2]).tolist()}
            filters |= {Filter("side", s) for s in range(len(SIDES)) if rows.sides[:, s].any()}
    # A filter that everything meets says nothing.
    empty = [
        f
        for f in filters
        if all(_table(rows, (f,)).all() for scene in scenes for rows in (scene.happenings, scene.things))
        and f.feature != "event"
    ]
    return tuple(sorted({*filters.difference(empty), SEVERAL}))


def _table(rows: Rows, filters: Sequence[Filter]) -> NDArray[np.bool_]:
    """Which row meets which filter; (N, F)."""
    columns: list[NDArray[Any]] = []
    for f in filters:
        if f.feature == "event":
            columns.append(rows.event == f.value)
        elif f == SEVERAL:
            columns.append(np.ones(len(rows), np.bool_))
        elif f.feature == "side":
            columns.append(rows.sides[:, f.value])
        else:
            columns.append(rows.codes[:, int(f.feature[-1])] == f.value)
    return np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0), np.bool_)


def _ever(done: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """True from the first True on."""
    return np.asarray(np.maximum.accumulate(done), dtype=np.bool_)


def _marked(states: NDArray[np.int64], length: int) -> NDArray[np.bool_]:
    marks = np.zeros(length, dtype=np.bool_)
    marks[states] = True
    return marks
