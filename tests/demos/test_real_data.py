"""Archives that other people wrote (../shared/data/mujoco; its MANIFEST.md says whose)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grace_irl.demos import load, save
from grace_irl.demos.convert import Stated, convert
from tests.demos.equality import assert_same

DATA = Path(__file__).parents[3] / "shared" / "data" / "mujoco"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data/mujoco is not there")

# File, states of each trajectory, mean return as the manifest gives it. D-REX's files do not say what the
# last action led to, so that its return lacks the last reward.
FILES = [
    ("cs285_2023_Hopper-v4.npz", [1001, 1001], (3717, 3718), True),
    ("cs285_2023_HalfCheetah-v4.npz", [1001, 1001], (4002, 4068), True),
    ("drex_Hopper.npz", [295, 337, 299, 393], (930, 1280), False),
    ("drex_HalfCheetah.npz", [1000], (180, 190), False),
]


@pytest.mark.parametrize(("name", "lengths", "returns", "final"), FILES)
def test_trajectories(name: str, lengths: list[int], returns: tuple[int, int], final: bool) -> None:
    found = load([DATA / name], role="expert")
    assert [len(d.trajectory.states) for d in found] == lengths
    for item in found:
        assert item.trajectory.actions is not None
        assert len(item.trajectory.actions) == item.trajectory.num_steps
        assert item.trajectory.rewards is not None
        assert returns[0] <= round(item.trajectory.rewards.sum()) <= returns[1]
    with np.load(DATA / name, allow_pickle=False) as archive:
        kept = lengths[0] - final
        np.testing.assert_array_equal(found[0].trajectory.states[:kept], archive["observations"][:kept])
        if final:
            last = archive["next_observations"][kept - 1]
            np.testing.assert_array_equal(found[0].trajectory.states[-1], last)


def test_roles_of_two_files_in_one_set() -> None:
    found = load([DATA / "cs285_2023_Hopper-v4.npz"], [DATA / "drex_Hopper.npz"], role="expert")
    assert [d.role for d in found] == ["expert"] * 2 + ["negative"] * 4
    assert found.tasks == ("default",)


@pytest.mark.parametrize(("name", "lengths", "returns", "final"), FILES)
def test_through_parquet_and_back(
    name: str, lengths: list[int], returns: tuple[int, int], final: bool, tmp_path: Path
) -> None:
    del returns, final
    stated = Stated(role="expert", environment="X-v4", label="all")
    convert(DATA / name, tmp_path / "set.parquet", None, stated)
    found = load([tmp_path / "set.parquet"])
    assert [len(d.trajectory.states) for d in found] == lengths
    save(found, tmp_path / "again.npz")
    assert_same(load([tmp_path / "again.npz"]), found)
    originals = load([DATA / name], role="expert")
    for one, other in zip(found, originals, strict=True):
        np.testing.assert_array_equal(one.trajectory.states, other.trajectory.states)
        np.testing.assert_array_equal(one.trajectory.actions, other.trajectory.actions)
