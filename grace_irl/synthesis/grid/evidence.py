"""Costs of readings in nats.

A reading is an interpretation of the instructions. Its cost is low if it fits the demonstrations well and makes few
assumptions. A reading turns an instruction into filters. A filter is a condition on one feature of a thing, such as its
colour code. A thing is a grid cell that is neither background nor the agent. There are three kinds of evidence:

* Outcomes: the event that the instruction describes should complete in the positive states and in no others.
* Reference: an instruction describes things that are present at the start, so each description must match something in
  the first state. A reading whose descriptions match few things explains the instruction better (the size principle of
  concept learning). Swaps (expert episodes with another episode's instruction) give no such evidence.
* Parsimony: a reading has a price for each of its assumptions (`reading.ReadingPrices`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.synthesis.grid.meaning import CHANNELS, ENCLOSED, SEVERAL, SHARED, STATIC, Filter
from grace_irl.synthesis.grid.scene import EVENTS, HALVES, OFFSETS, SIDES, Scene, ThingRows

MISSED = 30.0
"""Cost in nats if the event of the instruction completes in none of a trajectory's goal states. Each missed goal state
has an equal share of this cost."""
WRONGLY_HIT = 5.0
"""Cost in nats if the event of the instruction completes in any negative state of a trajectory. `WRONG_STATE` is added
for each of these states, up to 60 states."""
WRONG_STATE = 0.1
ABSENT = 5.0
"""Cost in nats of a description that matches nothing in the first state. If n things match, the cost is log n. The cost
is 0 if the world has one thing, and the described event happens to it in an episode without goal states: then the
instruction is about another thing."""
NOT_SEVERAL = 2.5
"""Cost in nats of a description that has a word for "one of several" and matches only one thing in the first state."""

Columns = tuple[int, ...]
"""Indices of filters that one thing must pass."""
Stages = tuple[tuple[tuple[Columns, ...], ...], ...]
"""The stages of an instruction, in order. A stage is a tuple of steps, which may happen in any order. A step is a tuple
of `Columns`. The first entry of a step describes an event and the thing to which it happens. A second entry describes
another thing in a cell next to that thing. The step "put the ball next to the box" has two entries: one for the event
"placed" and the ball, one for the box. If there are three entries, the last two describe things on opposite sides of
the event's thing. They may be far away, but all three things lie in one row or column, as in "put the ball between the
box and the key"."""
MOVED = tuple(EVENTS.index(event) for event in ("taken", "changed", "placed"))
"""Indices of the events that change the world. `_of_experts` uses them to find the half of the grid in which tasks are
done. The other events happen wherever the agent walks, so they say little about this half."""


class GridEvidence:
    """Tables of the filters that each event and each thing in the demonstrations passes.

    From these tables, the method `cost` computes the cost of a reading's outcomes and references in one scene.

    A scene is a trajectory with two tables. A row of the first table is one event of one thing in one state. A row of
    the second table is one thing in the first state. A set of rows or states is stored as an integer with one bit for
    each element. The search for the best reading (`walk.Walk`) combines such sets millions of times, and operations on
    integers are fast. With N states, the k-th event in state t (from k = 0) has bit t + k N. So a few shifts turn a set
    of events into the set of the states in which these events happen.

    Attributes:
        filters: the filters; a reading names them by index.
        index: the index of each filter.
        turns: indices of filters on codes. In every trajectory with positive states, a thing changes in a positive
            state: it passes the filter in this state, and did not pass it before. In a world of closed doors that
            experts open, this is the code of an open door.

    Args:
        scenes: the trajectories.
        positives: for each scene, whether each state is positive, (T+1,).
        swapped: for each scene, whether its instruction comes from another episode; () if all are False.
    """

    def __init__(
        self, scenes: Sequence[Scene], positives: Sequence[NDArray[np.bool_]], swapped: Sequence[bool] = ()
    ) -> None:
        self.scenes = tuple(scenes)
        self.swapped = tuple(swapped) or (False,) * len(self.scenes)
        self.positives = tuple(positives)
        self.filters = _filters(self.scenes, self.positives)
        self.index = {f: i for i, f in enumerate(self.filters)}
        self.turns = _turns(self.scenes, self.positives, self.filters)
        static = np.array([f.feature in STATIC for f in self.filters])
        self._tables = [_table(scene.happenings, self.filters) for scene in self.scenes]
        self._bits = [_bits(scene) for scene in self.scenes]
        self._rows = [_mask(np.ones(len(bits), np.bool_), bits) for bits in self._bits]
        self._happenings = [_masks(table, bits) for table, bits in zip(self._tables, self._bits, strict=True)]
        self._things = [_masks(_table(scene.things, self.filters) | ~static) for scene in self.scenes]
        self._positive = [_mask(positive) for positive in self.positives]
        self._kinds = _masks(_kinds(self.scenes, self.filters))
        self._spent = [self._wrongly(scene, mask) for scene, mask in zip(self.scenes, self.positives, strict=True)]
        self._near: dict[tuple[int, int], list[tuple[int, list[int]]]] = {}
        self._seen: list[dict[Columns, list[int]]] = [{} for _ in self.scenes]
        self._hits: list[dict[tuple[Columns, ...], int]] = [{} for _ in self.scenes]
        self._references: list[dict[Columns, float]] = [{} for _ in self.scenes]

    def fired(self, scene: int, stages: Stages) -> NDArray[np.bool_]:
        """An array (T+1,) that marks the states of a scene in which the last stage completes.

        All earlier stages must be complete by then, in their order.
        """
        fired = self._fired(scene, stages)
        return np.array([fired >> state & 1 for state in range(self.scenes[scene].length)], dtype=np.bool_)

    def outcomes(self, scene: int, stages: Stages) -> tuple[int, int]:
        """Numbers of positive states and of other states in which the last stage completes (see `fired`)."""
        fired, positive = self._fired(scene, stages), self._positive[scene]
        return (fired & positive).bit_count(), (fired & ~positive).bit_count()

    def split_rows(
        self, scene: int, stages: Stages, positive: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Find two groups of events in a scene, to compare their things.

        The last stage describes one or more events. The first group has the events that fit such a description and
        happen in a positive state in which the last stage completes. The second group has all other events of the same
        kind, such as "taken".

        Returns:
            For each group, a table (rows, F): whether each event passes each of the F filters.
        """
        rows, table = self.scenes[scene].happenings, self._tables[scene]
        now = (positive & self.fired(scene, stages))[rows.state]
        goal, alike = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
        for thing, *_ in stages[-1]:
            events = [column for column in thing if self.filters[column].feature == "event"]
            goal |= table[:, list(thing)].all(axis=1) & now
            alike |= table[:, events].all(axis=1)
        return table[goal], table[alike & ~goal]

    def cost(self, scene: int, stages: Stages) -> float:
        """Cost in nats of the outcomes and references in one scene, if its instruction has these stages."""
        fired, positive = self._fired(scene, stages), self._positive[scene]
        cost = 0.0
        if missed := positive & ~fired:
            # The cost depends on the missed share of the goal states, so that all trajectories have the same weight.
            cost += MISSED * missed.bit_count() / positive.bit_count()
        if wrong := fired & ~positive:
            cost += WRONGLY_HIT + WRONG_STATE * min(wrong.bit_count(), 60)
        if self.swapped[scene]:
            return cost
        known = self._references[scene]
        for stage in stages:
            for step in stage:
                for columns in step:
                    reference = known.get(columns)
                    if reference is None:
                        reference = known[columns] = self._reference(scene, columns)
                    cost += reference
        return cost

    def matches(self, scene: int, columns: Columns) -> int:
        """Number of things in the first state that pass these filters. Only filters on `STATIC` features are tested."""
        return _all(self._things[scene], (1 << len(self.scenes[scene].things)) - 1, columns).bit_count()

    def _reference(self, scene: int, columns: Columns) -> float:
        """Cost of a description: log n if n things match, because each of them is meant with probability 1/n.

        With a word for "one of several" the cost is log(n - 1), which favours this meaning if n is above 1.
        """
        matches = self.matches(scene, columns)
        if matches and len(self.scenes[scene].things) == 1 and self.index[SEVERAL] not in columns:
            return math.log(_all(self._kinds, -1, columns).bit_count())
        if self.index[SEVERAL] in columns:
            return math.log(matches - 1) if matches > 1 else NOT_SEVERAL if matches else ABSENT
        if not matches and not self._spent[scene].isdisjoint(columns):
            return 0.0
        return math.log(matches) if matches else ABSENT

    def _wrongly(self, scene: Scene, positive: NDArray[np.bool_]) -> frozenset[int]:
        """Indices of the events that happen to the only thing of a world, in a trajectory without goal states.

        So under an instruction about such an event, the trajectory shows that the instruction is about another thing.
        The set is empty for a world with several things.
        """
        if positive.any() or len(scene.things) != 1:
            return frozenset()
        return frozenset(self.index[Filter("event", event)] for event in np.unique(scene.happenings.event).tolist())

    def _fired(self, scene: int, stages: Stages) -> int:
        # A stage completes in a state if one of its steps happens there and each of its steps has happened by then.
        # The set `since` has the state in which the previous stage first completes, and all later states. Steps in
        # earlier states do not count. For the first stage, `since` has all states. As sets, -1 contains all states and
        # 0 contains none.
        since, now = -1, 0
        if len(stages) == len(stages[0]) == 1:
            return self._hit(scene, stages[0][0])
        for stage in stages:
            if len(stage) == 1:
                now = self._hit(scene, stage[0]) & since
            else:
                done = [self._hit(scene, step) & since for step in stage]
                now = 0
                for one in done:
                    now |= one
                for one in done:
                    now &= _ever(one)
            if not now:
                return 0
            since = _ever(now)
        return now

    def _hit(self, scene: int, step: tuple[Columns, ...]) -> int:
        """The set of states in which a step happens, regardless of other steps."""
        states = self._hits[scene].get(step)
        if states is None:
            thing, *neighbours = step
            rows = _all(self._happenings[scene], self._rows[scene], thing)
            if len(step) == ENCLOSED:
                rows &= self._between(scene, *neighbours)
            else:
                # Each neighbour that the step describes must lie in one of the four cells next to the event's thing.
                for columns in neighbours:
                    beside = 0
                    for there, masks in self._around(scene):
                        beside |= _all(masks, there, columns)
                    rows &= beside
            length = self.scenes[scene].length
            states, every = 0, (1 << length) - 1
            while rows:
                states |= rows & every
                rows >>= length
            self._hits[scene][step] = states
        return states

    def _between(self, scene: int, one: Columns, other: Columns) -> int:
        """The set of events whose thing lies between two things, in one row or column of the grid.

        One of the two things passes the filters `one`, and the other thing passes the filters `other`.
        """
        lines = zip(self._lines(scene, one), self._lines(scene, other), strict=True)
        (down, below), (right, after), (up, above), (left, before) = lines
        return (down & above) | (up & below) | (right & before) | (left & after)

    def _lines(self, scene: int, columns: Columns) -> list[int]:
        """Four sets of events, one for each direction in `OFFSETS`.

        An event is in the set of a direction if a thing that passes the filters lies in this direction from the event's
        thing. Both things lie in one row or column, at any distance.
        """
        found = self._seen[scene].get(columns)
        if found is None:
            found = self._seen[scene][columns] = [0] * len(OFFSETS)
            for distance in range(1, max(self.scenes[scene].states.shape[1:3])):
                for towards, (there, masks) in enumerate(self._around(scene, distance)):
                    found[towards] |= _all(masks, there, columns)
        return found

    def _around(self, scene: int, distance: int = 1) -> list[tuple[int, list[int]]]:
        """Find the neighbours of each event: things at this distance in the four directions, in the event's state.

        Returns:
            A pair for each direction: the set of events that have a neighbour, and a list. For each filter, the list
            has the set of events for which the neighbour's cell passes the filter.
        """
        if (scene, distance) not in self._near:
            rows, states, objects = self.scenes[scene].happenings, self.scenes[scene].states, self.scenes[scene].objects
            # Words describe a neighbour by its codes in channels 0 and 1. All other filters count as passed.
            silent = np.array([f.feature not in ("channel 0", "channel 1") for f in self.filters])
            found = self._near[scene, distance] = []
            for offset in OFFSETS:
                cells = rows.cells + distance * np.array(offset)
                inside = np.asarray(np.all((cells >= 0) & (cells < states.shape[1:3]), axis=1), dtype=np.bool_)
                cells = np.where(inside[:, None], cells, 0)
                at = (rows.state, cells[:, 0], cells[:, 1])
                table, bits = _table(replace(rows, codes=states[at]), self.filters) | silent, self._bits[scene]
                found.append((_mask(objects[at] & inside, bits), _masks(table, bits)))
        return self._near[scene, distance]


def _filters(scenes: Sequence[Scene], positives: Sequence[NDArray[np.bool_]]) -> tuple[Filter, ...]:
    """All useful filters that some thing in the data passes, and `SEVERAL` ("one of several")."""
    filters = _of_experts([(scene, mask) for scene, mask in zip(scenes, positives, strict=True) if mask.any()])
    for scene in scenes:
        for rows in (scene.happenings, scene.things):
            filters |= {Filter("event", e) for e in np.unique(rows.event).tolist() if e >= 0}
            for codes, channel in zip(rows.codes.T, CHANNELS, strict=True):
                filters |= {Filter(channel, v) for v in np.unique(codes).tolist()}
            filters |= {Filter("side", s) for s in range(len(SIDES)) if rows.sides[:, s].any()}
    # A filter that all things pass is not useful, unless it is about events.
    empty = [
        f
        for f in filters
        if all(_table(rows, (f,)).all() for scene in scenes for rows in (scene.happenings, scene.things))
        and f.feature != "event"
    ]
    return tuple(sorted({*filters.difference(empty), SEVERAL}))


def _kinds(scenes: Sequence[Scene], filters: Sequence[Filter]) -> NDArray[np.bool_]:
    """Whether each kind of thing passes each filter, (K, F). Filters on other features than the kind count as passed.

    A kind is a pair of codes in channels 0 and 1. The kinds are those of the worlds with a single thing.
    """
    alone = [scene.things.codes[0, :2] for scene in scenes if len(scene.things) == 1]
    kinds = np.unique(np.array(alone, dtype=np.int64).reshape(-1, 2), axis=0)
    passed = [
        kinds[:, int(f.feature[-1])] == f.value
        if f.feature in ("channel 0", "channel 1")
        else np.ones(len(kinds), np.bool_)
        for f in filters
    ]
    return np.stack(passed, axis=1)


def _of_experts(goals: Sequence[tuple[Scene, NDArray[np.bool_]]]) -> set[Filter]:
    """Filters on halves and on shared codes (`SHARED`) that fit every expert. Others are left out for a fast search.

    A filter on a half fits if one kind of event in `MOVED` happens in this half in every expert's trajectory. A filter
    on a shared code fits if every expert has a goal state in which an event happens to a thing that passes the filter.

    Args:
        goals: the trajectories with goal states, each with the mask of these states.
    """
    found: set[Filter] = set()
    for half in range(len(HALVES)):
        in_all = [
            all((scene.happenings.halves[:, half] & (scene.happenings.event == event)).any() for scene, _ in goals)
            for event in MOVED
        ]
        found |= {Filter("half", half)} if goals and any(in_all) else set()
    for feature, (_, other) in SHARED.items():
        codes = [set(scene.things.codes[:, other].tolist()) for scene, _ in goals]
        for code in set.intersection(*codes) if codes else ():
            column = Filter(feature, code)
            passed = [
                _table(scene.happenings, [column])[goal[scene.happenings.state], 0].any() for scene, goal in goals
            ]
            found |= {column} if all(passed) else set()
    return found


def _turns(
    scenes: Sequence[Scene], positives: Sequence[NDArray[np.bool_]], filters: Sequence[Filter]
) -> frozenset[int]:
    """See `GridEvidence.turns`."""
    found: list[set[Filter]] = []
    for scene, positive in zip(scenes, positives, strict=True):
        if positive.any():
            rows = scene.happenings
            changed = positive[rows.state] & (rows.event == EVENTS.index("changed"))
            after, before = rows.codes[changed], scene.states[rows.state[changed] - 1, *rows.cells[changed].T]
            turned = [(CHANNELS[channel], int(after[row, channel])) for row, channel in np.argwhere(after != before)]
            found.append({Filter(feature, code) for feature, code in turned})
    shared = set.intersection(*found) if found else ()
    return frozenset(i for i, f in enumerate(filters) if f in shared)


def _table(rows: ThingRows, filters: Sequence[Filter]) -> NDArray[np.bool_]:
    """Whether each of N rows passes each of F filters, (N, F)."""
    columns: list[NDArray[Any]] = []
    for f in filters:
        if f.feature == "event":
            columns.append(rows.event == f.value)
        elif f == SEVERAL:
            columns.append(np.ones(len(rows), np.bool_))
        elif f.feature == "side":
            columns.append(rows.sides[:, f.value])
        elif f.feature == "half":
            columns.append(rows.halves[:, f.value])
        elif f.feature in SHARED:
            same, other = SHARED[f.feature]
            codes = rows.start[rows.start[:, other] == f.value, same]
            columns.append(np.isin(rows.codes[:, same], codes) & (rows.codes[:, other] != f.value))
        else:
            columns.append(rows.codes[:, int(f.feature[-1])] == f.value)
    return np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0), np.bool_)


def _ever(done: int) -> int:
    """The set of the first state in `done` and all later states. The set is empty if `done` is empty."""
    return -(done & -done)


def _all(masks: Sequence[int], rows: int, columns: Columns) -> int:
    """The subset of `rows` that passes all filters in `columns`; `masks` has the set of rows that pass each filter."""
    for column in columns:
        rows &= masks[column]
    return rows


def _bits(scene: Scene) -> NDArray[np.int64]:
    """For each event of a scene, its bit in sets of events: its state plus a multiple of the number of states."""
    earlier: Counter[int] = Counter()
    bits = []
    for state in scene.happenings.state.tolist():
        bits.append(state + earlier[state] * scene.length)
        earlier[state] += 1
    return np.array(bits, dtype=np.int64)


def _mask(marks: NDArray[np.bool_], bits: NDArray[np.int64] | None = None) -> int:
    """The marked elements as a set: an integer with one bit for each element, by default at the element's index."""
    if bits is not None:
        marked = np.zeros(int(bits.max(initial=-1)) + 1, np.bool_)
        marked[bits] = marks
        marks = marked
    return int.from_bytes(np.packbits(marks, bitorder="little").tobytes(), "little")


def _masks(table: NDArray[np.bool_], bits: NDArray[np.int64] | None = None) -> list[int]:
    """For each column of a table, the set of rows in which the column is True."""
    return [_mask(column, bits) for column in table.T]
