"""Gaps are filled: what comes next lies together."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json
from grace_irl.sandbox.preload import fill_gaps

SIZE = 200  # bytes of text; the object takes 233, of the class of 240
held = [bytes(SIZE) for _ in range(5000)]
del held[::40]  # a gap or two in each pool

def spread():
    made = [bytes(SIZE) for _ in range(60)]
    return len({id(one) >> 12 for one in made})

before = spread()
fill_gaps()
print(json.dumps([before, spread()]))
"""


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="the allocator is CPython's")
def test_new_objects_lie_together() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    before, after = json.loads(done.stdout)
    assert after <= 60 * 240 // 4096 + 2
    assert before > 5 * after
