"""Files that the foreign libraries wrote themselves; the scripts are in the folder `written`."""

from pathlib import Path

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.demos import load
from grace_irl.demos.files import expand
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from tests.demos.foreign.writing import to_imitation

WRITTEN = Path(__file__).parent / "written"
STATES = [(np.arange(8.0).reshape(4, 2) + 10 * number).tolist() for number in range(2)]


def test_trajectories_of_imitation() -> None:
    found = load([WRITTEN / "imitation"], role="expert")
    assert [each.trajectory.states.tolist() for each in found] == STATES
    assert [each.trajectory.actions.tolist() for each in found] == [[0, 1, 2]] * 2
    assert [each.trajectory.rewards.tolist() for each in found] == [[0.5] * 3] * 2
    assert {each.trajectory.states.dtype.name for each in found} == {"float32"}
    assert [each.trajectory.terminated for each in found] == [False, True]


def test_pictures_in_a_folder_of_imitation(tmp_path: Path) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)
    trajectory = Trajectory(pictures, [0, 1], rewards=[0.0, 1.0])
    to_imitation(Demonstrations(Metadata("image"), (Demonstration(trajectory, "expert"),)), tmp_path / "set")
    (item,) = load([tmp_path / "set"], role="expert")
    assert (item.trajectory.kind, item.trajectory.states.dtype.name) == ("image", "uint8")
    np.testing.assert_array_equal(item.trajectory.states, pictures)


def test_a_data_set_of_lerobot() -> None:
    found = load([WRITTEN / "lerobot"], role="expert")
    assert found.metadata.fields == ("across", "height")
    assert [each.trajectory.states.tolist() for each in found] == STATES
    assert [each.trajectory.actions.tolist() for each in found] == [[[0], [1], [2]]] * 2
    assert [each.trajectory.extra_info for each in found] == ["lift the cube", "push the cube"]


@pytest.mark.parametrize("path", sorted((WRITTEN / "frames").iterdir()), ids=lambda path: path.name)
def test_a_frame_of_pandas_and_of_polars(path: Path) -> None:
    found = load([path])
    assert found.metadata.fields == ("across", "height")
    assert [each.trajectory.states.tolist() for each in found] == STATES
    assert [each.trajectory.actions.tolist() for each in found] == [[0, 1, 2]] * 2
    assert [each.role for each in found] == ["expert", "negative"]


def test_a_data_set_of_tensorflow_datasets() -> None:
    """RLDS, with descriptions of features, actions in parts and two splits; of the last step only the reward counts."""
    pytest.importorskip("google_crc32c")
    found = load([WRITTEN / "rlds"], role="expert")
    parts = [{name: part.tolist() for name, part in each.trajectory.states.parts.items()} for each in found]
    rest = {"open": [0, 0, 0, 1], "mode": [b"idle", b"moving"] * 2, "grip": [0, 1, 0, 1]}
    assert parts == [{"joints": STATES[n], "goal/place": [[[n], [0.5]]] * 4, **rest} for n in (0, 1)]
    assert [each.trajectory.actions.tolist() for each in found] == [[[0, 0], [1, -1], [2, -2]]] * 2
    assert [each.trajectory.rewards.tolist() for each in found] == [[0, 0.5, 1 + 1.5]] * 2
    assert [each.trajectory.extra_info for each in found] == ["lift the cube", "push the cube"]
    assert [(each.trajectory.terminated, each.trajectory.truncated) for each in found] == [(True, False), (False, True)]
    assert [each.split for each in found] == ["train", "held_out"]


def test_what_of_a_data_set_of_tensorflow_datasets_is_said() -> None:
    pytest.importorskip("google_crc32c")
    notes = " ".join(load([WRITTEN / "rlds"], role="expert").notes)
    assert "left out: observation/image (pictures are not read" in notes
    assert "actions are push, turn, side by side" in notes
    assert "splits train, val: train for training, the others held out" in notes


def test_a_copy_says_what_it_leaves_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("google_crc32c")
    copy = tmp_path / "expert.parquet"
    assert main(["demos", "convert", str(WRITTEN / "rlds"), str(copy), "--role", "expert"]) == 0
    assert "left out: observation/image (pictures are not read" in capsys.readouterr().out
    assert main(["demos", "scramble", str(copy), str(tmp_path / "scrambled.parquet")]) == 0
    for path in (copy, tmp_path / "scrambled.parquet"):
        assert [each.split for each in load([path])] == ["train", "held_out"]


def test_arrays_of_d4rl_as_robomimic_converts_them() -> None:
    """Its converter repeats the last state in the place of the next one."""
    found = load([WRITTEN / "robomimic" / "set.hdf5"], role="expert")
    assert [each.trajectory.states.parts["flat"].tolist() for each in found] == [[*one, one[-1]] for one in STATES]
    assert [each.trajectory.actions.tolist() for each in found] == [[[0], [1], [2], [0]]] * 2
    assert [each.trajectory.rewards.tolist() for each in found] == [[0.5] * 4] * 2
    assert [each.trajectory.terminated for each in found] == [True, True]


def test_a_shard_alone_names_its_folder() -> None:
    shard = WRITTEN / "rlds" / "arm-train.tfrecord-00000-of-00001"
    with pytest.raises(InputError, match=r"a shard of the data set .*rlds; expected the folder: name it"):
        load([shard], role="expert")


def test_a_folder_above_is_searched() -> None:
    assert WRITTEN / "rlds" in expand(WRITTEN)


@pytest.mark.parametrize("name", ["imitation", "lerobot", "rlds"])
def test_inspect_says_which_command_reads_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demos", "inspect", str(WRITTEN / name)]) == 0
    assert f"grace-irl fit --experts {WRITTEN / name}" in capsys.readouterr().out
