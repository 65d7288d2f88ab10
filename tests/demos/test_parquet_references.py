"""References of a Parquet file of somebody else to screenshots and steps: used, or refused in one line."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grace_irl.demos import load, save
from grace_irl.demos.convert import convert
from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from tests.demos.conftest import screen
from tests.demos.pictured import Drawn, a_set, one, png, shots


def table(cells: list[Any], kind: pa.DataType | None = None, **more: list[Any]) -> pa.Table:
    column = pa.array(cells, kind)
    return pa.table({"episode": [0] * len(cells), "state": [screen("a")] * len(cells), "screenshot": column, **more})


def test_the_images_of_hugging_face(tmp_path: Path) -> None:
    """A picture in the row comes before the path, which is then a mere name."""
    kind = pa.struct([("bytes", pa.large_binary()), ("path", pa.large_string()), ("more", pa.int8())])
    cells = [{"bytes": png(1), "path": "/gone.png"}, None, {"path": "in/b.png"}, {"bytes": png(3)}]
    path = tmp_path / "expert.parquet"
    pq.write_table(table(cells, kind), path, row_group_size=3)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.png").write_bytes(png(2))
    (item,) = load([path])
    assert shots(item) == [png(1), None, png(2), png(3)]
    for keep in ("embed", "refer"):
        save(a_set(item), tmp_path / f"{keep}.parquet", screenshots=keep)  # type: ignore[arg-type]
        assert shots(load([tmp_path / f"{keep}.parquet"])[0]) == [png(1), None, png(2), png(3)]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ({"path": "/etc/hostname"}, "an absolute path, '/etc/hostname'; expected the path of a picture in the set's"),
        ({"path": "../secret.png"}, "a path with '..'"),
        ({"path": "in/../../secret.png", "sha256": "0" * 64}, "a path with '..'"),
        ({"path": "http://example.com/a.png"}, "no path of a file"),
        ({"path": "file:///etc/hostname", "sha256": "0" * 64}, "no path of a file"),
        ({"path": "a\0b"}, "no path of a file"),
        ({"path": ""}, "no path of a file"),
        ({"path": "x" * 5000}, "no path of a file"),
        ({"path": "x" * 400}, "no screenshot at"),
        ({"path": "link.png"}, "a link out of the folder"),
        ({"path": "gone.png"}, "no screenshot at"),
        ({"path": "pipe"}, "no screenshot at"),
        ({"path": "."}, "no screenshot at"),
        ({"path": "loop.png"}, "no screenshot at"),
        ({"path": "a.txt"}, "begins with 6e6f20706963; expected a screenshot in PNG, JPEG or WebP"),
        ({"path": "a.png", "start": -1}, "expected numbers of at least 0"),
        ({"path": "a.png", "length": -1}, "expected numbers of at least 0"),
        ({"path": "a.png", "start": 2**63 - 1}, "expected numbers of at least 0"),
        ({"path": "a.png", "start": 10**9}, "begins with ; expected a screenshot"),
        ({"path": "a.png", "length": 3}, "begins with 89504e; expected a screenshot"),
        ({"path": "a.png", "sha256": "no digest"}, "has changed since the set was written"),
        ({"path": "a.png", "step": 0}, "expected numbers of at least 0"),
        ({"path": "a.png", "record": 0}, "a.png is not readable as Parquet"),
        ({"path": "a.png", "record": 0, "step": 0}, "a.png: record 0"),
        ({"path": "expert.parquet", "record": 0}, "row 0: no picture there"),
        ({"path": "embedded.parquet", "record": 7}, "row 7: no screenshot (1 rows)"),
        ({"path": "embedded.parquet", "record": -7}, "expected numbers of at least 0"),
        ({}, "no picture there"),
    ],
)
def test_references_that_are_refused(cell: dict[str, Any], said: str, tmp_path: Path) -> None:
    pytest.importorskip("google.protobuf")
    (tmp_path / "secret.png").write_bytes(png())
    inside = tmp_path / "set"
    inside.mkdir()
    (inside / "a.txt").write_text("no pic")
    (inside / "a.png").write_bytes(png())
    (inside / "link.png").symlink_to("../secret.png")
    (inside / "loop.png").symlink_to("loop.png")
    os.mkfifo(inside / "pipe")
    save(a_set(one((Drawn(png()),))), inside / "embedded.parquet")
    fields = [("path", pa.string()), ("sha256", pa.string())]
    fields += [(name, pa.int64()) for name in ("start", "length", "record", "step")]
    path = inside / "expert.parquet"
    pq.write_table(table([cell], pa.struct(fields)), path)
    (item,) = load([path])
    (shot,) = item.trajectory.screenshots
    assert shot is not None
    with pytest.raises(InputError) as caught:
        shot.read()
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_digest_opens_the_way_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "b.png").write_bytes(png())
    (tmp_path / "set" / "link.png").symlink_to("../b.png")
    digest = hashlib.sha256(png()).hexdigest()
    path = tmp_path / "set" / "expert.parquet"
    pq.write_table(table([{"path": name, "sha256": digest} for name in ("link.png", str(tmp_path / "b.png"))]), path)
    assert shots(load([path])[0]) == [png(), png()]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array([png()]), "column 'screenshot' is binary; expected a struct with 'bytes' (binary) and 'path'"),
        (pa.array(["a.png"]), "column 'screenshot' is string"),
        (pa.array([{"bytes": b""}]), "expected a struct"),
        (pa.array([{"bytes": "", "path": ""}]), "expected a struct"),
        (pa.array([{"path": "a", "record": 1.5}]), "expected a struct"),
    ],
)
def test_columns_of_other_types(column: pa.Array, said: str, tmp_path: Path) -> None:
    path = tmp_path / "expert.parquet"
    pq.write_table(table([None]).set_column(2, "screenshot", column), path)
    with pytest.raises(InputError) as caught:
        load([path])
    assert said in str(caught.value)


def test_pictures_in_rows_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "expert.parquet"
    pq.write_table(table([{"bytes": b"no picture", "path": None}, {"bytes": b"", "path": None}]), path)
    for shot in load([path])[0].trajectory.screenshots:
        assert shot is not None
        with pytest.raises(InputError, match="expected a screenshot in PNG, JPEG or WebP"):
            shot.read()
    with pytest.raises(InputError, match=r"step 0: .*expected a screenshot"):
        convert(path, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_a_damaged_page_of_pictures(tmp_path: Path) -> None:
    """The screens can be read all the same."""
    path = tmp_path / "expert.parquet"
    picture = png(side=60)
    save(a_set(one((Drawn(picture),))), path)
    data = path.read_bytes()
    middle = data.index(picture[200:300])
    path.write_bytes(data[:middle] + b"damaged" + data[middle + 7 :])
    shot = load([path])[0].trajectory.screenshots[0]
    assert shot is not None
    with pytest.raises(InputError, match=r"row 0: no screenshot .* expected a whole Parquet file"):
        shot.read()


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (
            ["a", None, None],
            "episode 0, step 1: no action_text, though other steps have one; expected one for each step, or none",
        ),
        ([None, "a", None], "episode 0, step 0: no action_text"),
        (["a" * (2 << 20), "a", None], "action_text of 2,097,152 characters; expected at most 1,048,576"),
        ([1, 2, None], "column 'action_text' is int64; expected text"),
    ],
)
def test_words_that_cannot_be_used(column: list[Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "expert.parquet"
    pq.write_table(table([None] * 3, action_text=column).drop_columns(["screenshot"]), path)
    with pytest.raises(InputError) as caught:
        load([path])
    assert said in str(caught.value)


def test_files_without_these_columns(tmp_path: Path) -> None:
    """As earlier versions wrote them; and columns of these names beside states that are no screens are others'."""
    path = tmp_path / "expert.parquet"
    pq.write_table(pa.table({"episode": [0], "state": [screen("a")], "later": [1]}), path)
    (item,) = load([path])
    assert type(item.trajectory) is Trajectory
    assert item.trajectory.screenshots == ()
    pq.write_table(pa.table({"episode": [0], "state": [[1.0]], "screenshot": ["a.png"], "action_text": [1]}), path)
    assert load([path])[0].trajectory.screenshots == ()
