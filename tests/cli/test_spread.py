"""Several values after one flag."""

from __future__ import annotations

import pytest

from grace_irl.cli import spread


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("fit --demos a b --seed 1", "fit --demos a --demos b --seed 1"),
        ("fit --demos a --negatives b c d", "fit --demos a --negatives b --negatives c --negatives d"),
        ("fit --experts a b --negatives c", "fit --experts a --experts b --negatives c"),
        ("score r.py --demos a b", "score r.py --demos a --demos b"),
        ("score --demos a b r.py", "score --demos a --demos b r.py"),
        ("fit --demos=a --json", "fit --demos=a --json"),
        ("fit --demos a -- b c", "fit --demos a -- b c"),
        ("show run --top 3", "show run --top 3"),
        ("", ""),
    ],
)
def test_spread(given: str, expected: str) -> None:
    assert spread(given.split()) == expected.split()
