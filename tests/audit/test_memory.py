"""Memory of an audit: only one episode's numbers are float64 at a time."""

from __future__ import annotations

import tracemalloc

import numpy as np

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.states.record import RecordStates
from tests.audit.bench import codes, examined


def test_pictures_in_records_are_not_all_converted_at_once() -> None:
    """Float64 numbers of all pictures would take eight times the pictures' bytes."""
    rng = np.random.default_rng(0)
    steps, items = 60, []
    for role in ("expert", "negative"):
        for _ in range(12):
            places = rng.normal(0, 1, steps).cumsum()
            places[-1] = 5 if role == "expert" else places[-1]
            camera = rng.integers(0, 256, (steps, 16, 16, 3), dtype=np.uint8)
            items.append(Demonstration(Trajectory(RecordStates({"x": places, "camera": camera})), role))
    demonstrations = Demonstrations(Metadata("record"), tuple(items))
    taken = sum(int(each.trajectory.states.parts["camera"].nbytes) for each in items)
    tracemalloc.start()
    try:
        found = examined(demonstrations, "return float(state['x'] == 5)", held_out=0.0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "pixels" in codes(found)
    assert peak < 6 * taken
