"""Demonstrations that unpack to gigabytes: what they need is known, and refused in one line, before it is taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.hostile_files.huge import HUGE, LONG, MEGABYTE, ROWS, parquet, repeated, screens, zeros
from tests.hostile_files.refusal import Ended, run

LIMIT = 256 * MEGABYTE
"""Of each set here. What Python, numpy and Arrow take themselves comes on top."""

BESIDE = 400 * MEGABYTE
IN_PARTS = ("screens of a megabyte", "several files")
"""Sets whose trajectories are small enough to be scored one after the other."""

REWARD = "class Reward:\n    def __init__(self, extra_info=None): pass\n    def reward_fn(self, state): return 0.0\n"


def scored(path: Path, folder: Path, size: str = "256M") -> Ended:
    """Scores a reward on a set, in little memory."""
    (folder / "reward.py").write_text(REWARD)
    return run(folder, ["score", str(folder / "reward.py"), "--demos", str(path), "--label", "last"], max_memory=size)


@pytest.mark.slow
@pytest.mark.parametrize("case", HUGE)
def test_refused_before_it_is_taken_or_read_in_parts(case: str, tmp_path: Path) -> None:
    path = HUGE[case](tmp_path)
    ended = scored(path, tmp_path)
    assert ended.code == (0 if case in IN_PARTS else 2), ended
    if ended.code:
        assert ended.said.count("\n") == 1, ended.said
        assert path.name in ended.said
    assert ended.peak < LIMIT + BESIDE, ended
    assert ended.seconds < 60, ended


@pytest.mark.slow
@pytest.mark.parametrize("column", ["action_text", "instruction", "task"])
def test_a_text_in_all_rows_is_in_memory_once(column: str, tmp_path: Path) -> None:
    """Three gigabytes, when every row had its own."""
    table = screens(episode=np.arange(ROWS), **{column: repeated(LONG)})
    ended = run(tmp_path, ["demos", "inspect", "--json", str(parquet(table, tmp_path / "expert.parquet"))])
    assert ended.code == 0, ended
    assert ended.peak < LIMIT + BESIDE, ended


def test_the_address_space_counts(tmp_path: Path) -> None:
    path = zeros(tmp_path)
    (tmp_path / "reward.py").write_text(REWARD)
    ended = run(tmp_path, ["score", str(tmp_path / "reward.py"), "--demos", str(path)], limit=900 * MEGABYTE)
    assert ended.code == 2, ended
    assert "needs" in ended.said
