"""Tables that lie in several files."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grace_irl.cli import main
from grace_irl.demos import load
from grace_irl.demos.foreign.columns import Columns
from grace_irl.errors import InputError


def written(path: Path, **columns: list[float]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def partitions(tmp_path: Path) -> Path:
    """Three episodes in partitions. The rows of the last one lie in two files."""
    for number, place in enumerate((0, 2, 10)):
        written(tmp_path / f"expert/episode={place}/part-2.parquet", step=[0, 1], x=[number, number + 0.5], y=[1, 1])
    written(tmp_path / "expert/episode=10/part-10.parquet", step=[2], x=[3.0], y=[1])
    return tmp_path / "expert"


@pytest.mark.parametrize("inside", [".", ".."])
def test_folders_named_by_a_column_are_one_table(inside: str, partitions: Path) -> None:
    found = load([partitions / inside])
    assert found.metadata.fields == ("x", "y")
    assert [each.trajectory.states[:, 0].tolist() for each in found] == [[0, 0.5], [1, 1.5], [2, 2.5, 3]]
    assert "episodes by 'episode'" in found.notes[0]


def test_columns_of_partitions_may_be_chosen(partitions: Path) -> None:
    assert load([partitions], columns=Columns(("y",))).metadata.fields == ("y",)


def test_partitions_that_do_not_fit_are_refused_in_a_line(partitions: Path) -> None:
    (partitions / "episode=2" / "part-2.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="expert: partitions that are not readable as one table"):
        load([partitions])


def test_a_column_may_be_in_the_files_and_in_the_names_of_folders(tmp_path: Path) -> None:
    for number in (0, 1):
        written(tmp_path / f"set/label=expert/episode={number}/a.parquet", episode=[number] * 2, x=[0.5, 1.5])
    assert [each.role for each in load([tmp_path / "set"])] == ["expert", "expert"]


def parts(folder: Path, *ids: list[int], **columns: list[list[int]]) -> Path:
    """Parts of a table of one number, `folder/expert-0.csv` and so on, with these numbers of episodes and columns."""
    folder.mkdir(exist_ok=True)
    for place, each in enumerate(ids):
        more = {name: values[place] for name, values in columns.items()}
        lines = [",".join(map(str, row)) for row in zip(each, range(len(each)), *more.values(), strict=True)]
        (folder / f"expert-{place}.csv").write_text("\n".join([",".join(["episode", "x", *more]), *lines]) + "\n")
    return folder


def test_an_episode_in_two_parts_is_refused(tmp_path: Path) -> None:
    one = parts(tmp_path / "one", [0, 0, 1, 1], [1, 2, 2])
    with pytest.raises(
        InputError, match=r"expert-1\.csv: episode 1 begins in .*expert-0\.csv; expected each episode in"
    ):
        load([one])
    two = parts(tmp_path / "two", [0, 0], [0, 0], step=[[0, 1], [2, 3]])
    with pytest.raises(InputError, match=r"expert-1\.csv: episode 0 begins in .*expert-0\.csv"):
        load([two])
    for number in (0, 1):
        written(tmp_path / f"three/expert-{number}.parquet", episode=[number, number + 1], state=[[1.0], [2.0]])
    with pytest.raises(InputError, match=r"expert-1\.parquet: episode 1 begins in .*expert-0\.parquet"):
        load([tmp_path / "three"])
    assert main(["demos", "convert", str(one), str(tmp_path / "copies")]) == 2


def test_files_may_number_their_own_episodes(tmp_path: Path) -> None:
    assert len(load([parts(tmp_path / "one", [0, 0], [0, 0, 1])])) == 3
    assert len(load([parts(tmp_path / "two", [0, 0, 1, 1], [0, 0, 1])])) == 4
    assert len(load([parts(tmp_path / "three", [0, 1, 1], [1, 1, 2], step=[[0, 0, 1], [0, 1, 0]])])) == 4
    assert len(load([parts(tmp_path / "four", [0, 1, 1], [1, 1, 2], done=[[1, 0, 1], [0, 0, 0]])])) == 4
