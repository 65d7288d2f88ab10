"""One order of components in a set, whatever the order of the columns in its files."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grace_irl.cli import main
from grace_irl.demos import iter_trajectories, load, save
from grace_irl.demos.convert import convert, scramble
from grace_irl.errors import InputError


def folder_of(folder: Path, second: str, names: str = "speed,height") -> Path:
    """An expert with columns (height, speed), and a negative with the same states in columns of the other order."""
    folder.mkdir()
    (folder / "expert.csv").write_text("episode,height,speed\n0,1.5,10\n0,2.5,20\n")
    text = f"episode,{names}\n0,10,1.5\n0,20,2.5\n"
    (folder / "negative.csv").write_text(text)
    if second == "own":
        save(load([folder / "negative.csv"]), folder / "negative.parquet")
        (folder / "negative.csv").unlink()
    if second == "table":
        table = {"episode": [0, 0], "speed": [10.0, 20.0], "height": [1.5, 2.5]}
        pq.write_table(pa.table(table), folder / "negative.parquet")
        (folder / "negative.csv").unlink()
    return folder


@pytest.mark.parametrize("second", ["csv", "table", "own"])
def test_all_files_of_a_set_have_the_order_of_the_first(
    second: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(tmp_path / "set", second)
    loaded = load([folder])
    assert loaded.metadata.fields == ("height", "speed")
    wanted = [[[1.5, 10.0], [2.5, 20.0]]] * 2
    assert [item.trajectory.states.tolist() for item in loaded] == wanted
    assert [item.trajectory.states.tolist() for item in iter_trajectories(folder)] == wanted

    convert(folder, tmp_path / "copy")
    for name in ("expert", "negative"):
        copy = load([tmp_path / "copy" / f"{name}.parquet"])
        assert copy.metadata.fields == ("height", "speed")
        assert copy.items[0].trajectory.states.tolist() == wanted[0]

    scramble([folder], tmp_path / "scrambled", 1)
    one, other = (item.trajectory.states for item in load([tmp_path / "scrambled"]))
    np.testing.assert_array_equal(one, other)

    assert main(["demos", "inspect", str(folder)]) == 0
    assert "height" in capsys.readouterr().out
    chosen = tmp_path / "chosen.parquet"
    assert main(["demos", "select", "--from", str(folder), "--out", str(chosen), "--role", "expert"]) == 0
    assert {item.trajectory.states.tobytes() for item in load([chosen])} == {np.array(wanted[0]).tobytes()}


def test_a_scramble_map_is_not_drawn_for_other_components(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"fields speed, depth beside .* with height, speed; expected the same fields"):
        scramble([folder_of(tmp_path / "set", "csv", "speed,depth")], tmp_path / "scrambled", 1)
