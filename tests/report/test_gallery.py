"""Statistics of fields in the report."""

from __future__ import annotations

import tracemalloc
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from grace_irl.demos.trajectory import Trajectory
from grace_irl.report.gallery import fields
from grace_irl.states.record import RECORD, RecordStates


def test_statistics_of_pictures_hold_one_episode_of_numbers_at_a_time() -> None:
    rng = np.random.default_rng(0)
    trajectories, valued = {}, []
    for number in range(20):
        parts = {"camera": rng.integers(0, 255, (40, 24, 24, 3), np.uint8), "place": rng.normal(size=(40, 2))}
        trajectory = Trajectory(RecordStates(parts))
        trajectories[trajectory.digest] = trajectory
        row = SimpleNamespace(digest=trajectory.digest, split="train")
        valued.append(SimpleNamespace(row=row, positive=np.full(40, number < 10)))
    whole = sum(8 * 40 * (24 * 24 * 3 + 2) for _ in valued)  # bytes
    tracemalloc.start()
    found, left = fields(cast("Any", valued), trajectories, ())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < whole / 2
    assert len(found) + left == 24 * 24 * 3 + 2
    one = found[0]
    chosen = [RECORD.numbers(each.states)[:, one.index] for each in list(trajectories.values())[:10]]
    assert one.positive is not None
    np.testing.assert_allclose(one.positive, (np.mean(chosen), np.std(chosen)))
