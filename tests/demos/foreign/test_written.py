"""Files that the foreign libraries wrote themselves; the scripts are in the folder `written`."""

from pathlib import Path

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.demos import load

WRITTEN = Path(__file__).parent / "written"
STATES = [(np.arange(8.0).reshape(4, 2) + 10 * number).tolist() for number in range(2)]


def test_trajectories_of_imitation() -> None:
    found = load([WRITTEN / "imitation"], role="expert")
    assert [each.trajectory.states.tolist() for each in found] == STATES
    assert [each.trajectory.actions.tolist() for each in found] == [[0, 1, 2]] * 2
    assert [each.trajectory.rewards.tolist() for each in found] == [[0.5] * 3] * 2
    assert [each.trajectory.terminated for each in found] == [False, True]


def test_a_data_set_of_lerobot() -> None:
    found = load([WRITTEN / "lerobot"], role="expert")
    assert found.metadata.fields == ("across", "height")
    assert [each.trajectory.states.tolist() for each in found] == STATES
    assert [each.trajectory.actions.tolist() for each in found] == [[[0], [1], [2]]] * 2
    assert [each.trajectory.extra_info for each in found] == ["lift the cube", "push the cube"]


@pytest.mark.parametrize("name", ["imitation", "lerobot"])
def test_inspect_says_which_command_reads_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demos", "inspect", str(WRITTEN / name)]) == 0
    assert f"grace-irl fit --experts {WRITTEN / name}" in capsys.readouterr().out
