"""Demonstrations of CartPole in files, and short comparisons of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from grace_irl.demos import save
from grace_irl.demos.trajectory import Demonstrations
from tests.rl.cart_pole import experts, play


@pytest.fixture(scope="session")
def cart_pole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of experts that balance and negatives that fall."""
    folder = tmp_path_factory.mktemp("cart-pole")
    known = experts(3)
    save(known, folder / "expert.parquet")
    negatives = tuple(play(100 + seed, "negative") for seed in range(4))
    save(Demonstrations(known.metadata, negatives), folder / "negative.parquet")
    return folder
