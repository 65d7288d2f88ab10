"""Screenshots, actions and instructions of steps in Parquet come back, wherever the pictures are."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.demos import iter_trajectories, load, save
from grace_irl.demos.convert import Stated, convert
from grace_irl.demos.parquet import writer
from grace_irl.demos.screenshots import FileScreenshot, Keep
from grace_irl.errors import InputError
from tests.demos.conftest import screen
from tests.demos.equality import assert_same, assert_same_demonstration
from tests.demos.pictured import Drawn, a_set, one, png, shots, words


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An episode of three dumps, two of them with a screenshot."""
    path = tmp_path / "expert"
    (path / "screenshots").mkdir(parents=True)
    for step in range(3):
        (path / f"step_{step}.xml").write_text(screen(str(step)))
    for step in (0, 2):
        (path / "screenshots" / f"step_{step}.png").write_bytes(png(step))
    return path


PARTS = st.lists(
    st.tuples(st.lists(st.none() | st.integers(0, 3), min_size=1, max_size=6), st.booleans(), st.booleans()),
    min_size=1,
    max_size=4,
)


@settings(max_examples=40)
@given(PARTS, st.text(st.characters(exclude_categories=["Cs"]), max_size=9), st.sampled_from([1, 150, 64 << 20]))
def test_everything_comes_back(
    tmp_path_factory: pytest.TempPathFactory, parts: list[Any], text: str, group: int
) -> None:
    """Also where row groups end within episodes, after each picture or two."""
    path = tmp_path_factory.mktemp("set") / "set.parquet"
    items = []
    for number, (pictures, acts, says) in enumerate(parts):
        taken = tuple(None if n is None else Drawn(b"\xff\xd8\xff" + bytes([n]) * 70) for n in pictures)
        item = one(taken, extra_info=str(number))
        steps = len(pictures) - 1
        done, said = (tuple(f"{text}{step}" for step in range(steps)) if there else () for there in (acts, says))
        items.append(replace(item, trajectory=replace(item.trajectory, action_texts=done, step_instructions=said)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "GROUP_BYTES", group)
        save(a_set(*items), path)
    found = load([path])
    assert_same(found, a_set(*items))
    for item, other in zip(found, items, strict=True):
        assert words(item) == words(other)
        expected = shots(other)
        assert shots(item) == (expected if any(expected) else [])
        backwards = [shot and shot.read() for shot in reversed(item.trajectory.screenshots)]
        assert backwards == (expected[::-1] if any(expected) else [])


@pytest.mark.parametrize("keep", ["embed", "refer"])
def test_an_episode_and_its_pictures_are_carried(keep: Keep, folder: Path, tmp_path: Path) -> None:
    """Embedded pictures need nothing but the file; those that are referred to move with it where they lie below it."""
    convert(folder, tmp_path / "set.parquet", stated=Stated(role="expert"), screenshots=keep)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (tmp_path / "set.parquet").rename(moved / "set.parquet")
    if keep == "refer":
        folder.rename(moved / "expert")
    else:
        (folder / "screenshots" / "step_0.png").unlink()
    (item,) = load([moved / "set.parquet"])
    assert shots(item) == [png(0), None, png(2)]
    assert shots(pickle.loads(pickle.dumps(item))) == shots(item)


def test_none_are_kept(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "set.parquet"
    convert(folder, path, stated=Stated(role="expert"), screenshots="none")
    assert "screenshot" not in pq.read_schema(path).names
    assert load([path])[0].trajectory.screenshots == ()


def test_a_picture_elsewhere_is_referred_to_by_its_whole_path(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "set.parquet"
    convert(folder, path, stated=Stated(role="expert"), screenshots="refer")
    cells = pq.read_table(path)["screenshot"].to_pylist()
    assert cells[1] is None
    assert cells[0] == {
        "path": str(folder / "screenshots" / "step_0.png"),
        "sha256": hashlib.sha256(png(0)).hexdigest(),
        **dict.fromkeys(("start", "length", "record", "step")),
    }
    (item,) = load([path])
    assert shots(item) == [png(0), None, png(2)]
    picture = item.trajectory.screenshots[0]
    assert picture is not None
    (folder / "screenshots" / "step_0.png").write_bytes(png(9))
    with pytest.raises(InputError, match="has changed since the set was written"):
        picture.read()
    (folder / "screenshots" / "step_0.png").unlink()
    with pytest.raises(InputError, match=r"row 0: no screenshot at .*step_0.png; expected the file there"):
        picture.read()
    (again,) = iter_trajectories(path)  # the rest is there as it was
    assert_same_demonstration(again, item)
    # a reference to what has gone is kept; the picture itself cannot be
    save(a_set(again), tmp_path / "again.parquet", screenshots="refer")
    (folder / "screenshots" / "step_0.png").write_bytes(png(0))
    assert shots(load([tmp_path / "again.parquet"])[0]) == [png(0), None, png(2)]
    (folder / "screenshots" / "step_0.png").unlink()
    with pytest.raises(InputError, match=r"no screenshot at .*\(--screenshots none\)"):
        save(a_set(again), tmp_path / "embedded.parquet")
    assert not (tmp_path / "embedded.parquet").exists()


def test_sets_refer_to_sets(folder: Path, tmp_path: Path) -> None:
    """A set without pictures of its own beside the one that has them; and never by way of a third."""
    first, second, third = (tmp_path / name for name in ("a.parquet", "b.parquet", "c.parquet"))
    convert(folder, first, stated=Stated(role="expert"))
    save(load([first]), second, screenshots="refer")
    save(load([second]), third, screenshots="refer")
    for path in (second, third):
        cells = pq.read_table(path)["screenshot"].to_pylist()
        assert [cell and (cell["path"], cell["record"]) for cell in cells] == [("a.parquet", 0), None, ("a.parquet", 2)]
        assert shots(load([path])[0]) == [png(0), None, png(2)]
    embedded = tmp_path / "d.parquet"
    save(load([third]), embedded)
    first.unlink()
    assert shots(load([embedded])[0]) == [png(0), None, png(2)]


def test_pictures_that_lie_nowhere_can_only_be_embedded(tmp_path: Path) -> None:
    whole = a_set(one((Drawn(png()),), source="here: episode 0"))
    with pytest.raises(InputError, match="here: episode 0, step 0: a screenshot that is in no file"):
        save(whole, tmp_path / "set.parquet", screenshots="refer")
    assert not list(tmp_path.iterdir())


def test_bytes_of_a_file(tmp_path: Path) -> None:
    """A reference has the range, too."""
    packed = tmp_path / "packed"
    packed.write_bytes(b"before" + png(1) + png(2))
    ranges = ((6, len(png(1))), (6 + len(png(1)), None))
    whole = a_set(one(tuple(FileScreenshot(packed, *part) for part in ranges)))
    save(whole, tmp_path / "set.parquet", screenshots="refer")
    assert shots(load([tmp_path / "set.parquet"])[0]) == [png(1), png(2)]


def test_a_set_that_was_written_again(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "set.parquet"
    convert(folder, path, stated=Stated(role="expert"))
    shot = load([path])[0].trajectory.screenshots[0]
    assert shot is not None
    assert shot.read() == png(0)
    save(a_set(one((Drawn(png(5)),))), path)
    with pytest.raises(InputError, match=r"row 0: no screenshot: the set was removed or written again"):
        shot.read()
    path.unlink()
    with pytest.raises(InputError, match="the set was removed"):
        shot.read()


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("a",), "here: 1 of action_text for 3 states; expected 2, or none"),
        (("a", "\ud800"), "here: action_text is not"),
    ],
)
def test_words_that_cannot_be_written(texts: tuple[str, ...], said: str, tmp_path: Path) -> None:
    item = one((None,) * 3, source="here")
    item = replace(item, trajectory=replace(item.trajectory, action_texts=texts))
    with pytest.raises(InputError, match=said):
        save(a_set(item), tmp_path / "set.parquet")
    assert not list(tmp_path.iterdir())
