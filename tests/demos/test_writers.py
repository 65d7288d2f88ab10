"""Duties of every format's writer, and refusals of damaged sets; the formats are in `matrix.py`."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from grace_irl.demos import load, save
from grace_irl.demos.files import open_writer
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Trajectory
from grace_irl.errors import InputError
from tests.demos.matrix import FORMATS, HOLD_ARRAYS, FormatCase


@pytest.fixture(params=FORMATS, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> FormatCase:
    found: FormatCase = request.param
    return found


@pytest.fixture
def usual(case: FormatCase, request: pytest.FixtureRequest) -> Demonstrations:
    """A set that the format holds, whatever is in it."""
    found: Demonstrations = request.getfixturevalue("vectors" if case.arrays else "screens")
    return found


@pytest.fixture
def path(case: FormatCase, tmp_path: Path) -> Path:
    return tmp_path / "folder" / case.file


def refused(path: Path) -> str:
    """The one line that a path is refused with."""
    with pytest.raises(InputError) as caught:
        load([path], role="expert")
    message = str(caught.value)
    assert "\n" not in message
    assert path.name in message
    assert "expected" in message
    return message


def nothing_left(path: Path) -> bool:
    return not path.parent.exists() or not list(path.parent.iterdir())


@pytest.mark.parametrize("name", ["grids", "states_only", "screens"])
def test_what_a_format_cannot_hold_is_refused(
    name: str, case: FormatCase, path: Path, request: pytest.FixtureRequest
) -> None:
    whole: Demonstrations = request.getfixturevalue(name)
    if case.held(whole).items:
        return
    with pytest.raises(InputError, match=r"no actions, which|states of kind 'ui'|AndroidControl holds screens"):
        save(whole, path, case.name)
    assert nothing_left(path)


def test_an_empty_set_writes_nothing(usual: Demonstrations, case: FormatCase, path: Path) -> None:
    with pytest.raises(InputError, match="nothing to write"):
        save(replace(usual, items=()), path, case.name)
    assert nothing_left(path)


def test_a_failure_while_writing_leaves_no_file(usual: Demonstrations, case: FormatCase, path: Path) -> None:
    def interrupted() -> None:
        with open_writer(path, usual.metadata, case.name) as writer:
            writer.add(usual[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert nothing_left(path)


@pytest.mark.parametrize("case", HOLD_ARRAYS, ids=lambda case: case.name)
def test_what_does_not_fit_what_came_before(vectors: Demonstrations, case: FormatCase, path: Path) -> None:
    wide = replace(vectors[0].trajectory, states=np.zeros((5, 7)), actions=np.zeros((4, 9)), source="the odd one")
    with pytest.raises(InputError, match="the odd one"):
        save(replace_item(vectors, wide), path, case.name)
    assert nothing_left(path)


@pytest.mark.parametrize("case", HOLD_ARRAYS, ids=lambda case: case.name)
def test_states_of_another_kind_than_before(vectors: Demonstrations, case: FormatCase, path: Path) -> None:
    grid = replace(vectors[0].trajectory, states=np.zeros((5, 4, 4, 3), np.int64), kind="", source="the odd one")
    with pytest.raises(InputError, match="the odd one: grid states in a set of vector states; expected one kind"):
        save(replace_item(vectors, grid), path, case.name)
    assert nothing_left(path)


def replace_item(whole: Demonstrations, odd: Trajectory) -> Demonstrations:
    """A set of two, the second of which no constructor would have let through."""
    changed = object.__new__(Demonstrations)
    object.__setattr__(changed, "metadata", whole.metadata)
    object.__setattr__(changed, "items", (whole[0], replace(whole[0], trajectory=odd)))
    return changed


def test_a_place_that_cannot_be_written(usual: Demonstrations, case: FormatCase, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError, match="cannot be written"):
        save(case.held(usual), tmp_path / "file" / case.file, case.name)


def test_a_file_system_that_cannot_be_written(
    usual: Demonstrations, case: FormatCase, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(InputError, match=rf"{case.file}: cannot be written \(Read-only file system\); free some space"):
        save(case.held(usual), path, case.name)


@pytest.mark.parametrize("length", [4096, 200_000])
def test_a_very_long_instruction(length: int, usual: Demonstrations, case: FormatCase, path: Path) -> None:
    """It comes back whole, or is refused with its length; nothing is cut."""
    trajectory = replace(usual[0].trajectory, extra_info="x" * length, source="the long one")
    whole = replace(usual, items=(Demonstration(trajectory, "expert"),))
    if case.longest_instruction is not None and length > case.longest_instruction:
        with pytest.raises(InputError, match=rf"the long one: an instruction of over {case.longest_instruction}"):
            save(whole, path, case.name)
        assert nothing_left(path)
        return
    save(whole, path, case.name)
    assert load([path])[0].trajectory.extra_info == "x" * length


@pytest.mark.parametrize("name", ["extra_info", "task"])
def test_half_a_character_is_no_text(name: str, usual: Demonstrations, case: FormatCase, path: Path) -> None:
    trajectory = replace(usual[0].trajectory, source="the odd one")
    item = Demonstration(trajectory, "expert")
    odd = "door \udcff"
    item = replace(item, task=odd) if name == "task" else replace(item, trajectory=replace(trajectory, extra_info=odd))
    with pytest.raises(InputError, match=r"the odd one: .* not Unicode"):
        save(replace(usual, items=(item,)), path, case.name)
    assert nothing_left(path)


def test_a_name_that_is_not_utf8(usual: Demonstrations, case: FormatCase, path: Path) -> None:
    save(case.held(usual), path, case.name)
    odd = path.with_name(os.fsdecode(b"\xff\xfe ") + path.name)
    for attempt in (lambda: save(usual, odd, case.name), lambda: load([odd])):
        with pytest.raises(InputError, match="not UTF-8") as caught:
            attempt()
        str(caught.value).encode()  # the message itself can be printed
    path.rename(odd)
    with pytest.raises(InputError, match="not UTF-8"):
        load([path.parent])


def test_no_trajectories(usual: Demonstrations, case: FormatCase, path: Path) -> None:
    save(case.held(usual), path, case.name)
    case.empty(path)
    refused(path)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.97])
def test_truncated(share: float, usual: Demonstrations, case: FormatCase, path: Path) -> None:
    held = case.held(usual)
    save(replace(held, items=held.items * 20), path, case.name)
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.suffix in (".hdf5", ".arrow")]
    largest = max(files, key=lambda file: file.stat().st_size)
    content = largest.read_bytes()
    largest.write_bytes(content[: int(len(content) * share)])
    refused(path)


@pytest.mark.parametrize("case", HOLD_ARRAYS, ids=lambda case: case.name)
def test_states_that_are_not_finite(vectors: Demonstrations, case: FormatCase, path: Path) -> None:
    states = np.zeros((4, 3))
    trajectory = Trajectory(states, np.zeros((3, 2), np.float32))
    states[2, 1] = np.nan  # after the model has looked at it
    save(replace(vectors, items=(vectors[0], Demonstration(trajectory, "expert"))), path, case.name)
    assert "episode 1, step 2, field 'speed' (number 1): found nan" in refused(path)


@pytest.mark.parametrize("case", HOLD_ARRAYS, ids=lambda case: case.name)
def test_grids_of_floats(grids: Demonstrations, case: FormatCase, path: Path) -> None:
    trajectory = Trajectory(np.zeros((4, 5, 5, 3), np.int64), np.zeros(3, np.int64))
    object.__setattr__(trajectory, "states", trajectory.states.astype(np.float64))
    save(replace(grids, items=(Demonstration(trajectory, "expert"),)), path, case.name)
    assert "integers" in refused(path)


def test_a_disk_that_is_full_when_an_archive_is_put_together(
    vectors: Demonstrations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: Path("/dev/full").open("w+b"))  # noqa: SIM115
    with pytest.raises(InputError, match=r"set.npz: cannot be written \(No space left on device\); free some space"):
        save(vectors, tmp_path / "set.npz")
    assert nothing_left(tmp_path / "set.npz")
