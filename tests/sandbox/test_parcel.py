"""A parcel is read as it was laid out."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox import memory
from grace_irl.sandbox.packing import pack
from grace_irl.sandbox.parcel import Content, Views, seal_parcel
from grace_irl.states.kind import PartLayout
from grace_irl.states.vector import VECTOR

content = st.tuples(st.integers(1, 4), st.integers(0, 3), st.text(max_size=9))


@given(st.lists(content, max_size=9), st.sampled_from(["<f4", "<f8", "|u1"]), st.booleans())
def test_a_parcel_holds_what_was_given(sizes: list[tuple[int, int, str]], dtype: str, acting: bool) -> None:
    random = np.random.default_rng(0)
    contents = []
    for length, width, text in sizes:
        states = (random.normal(size=(length, width)) * 100).astype(dtype)
        actions = random.integers(0, 9, (length - 1, width)).astype("i2") if acting else None
        contents.append(Content((states,), actions, text.encode("utf-8", "surrogatepass")))
    fd = seal_parcel(VECTOR, [PartLayout("", dtype, ())], contents)
    views = Views(fd)
    assert len(views) == len(contents)
    for view, ((states,), actions, text) in zip(views, contents, strict=True):
        np.testing.assert_array_equal(view.arrays[0], states)
        assert view.arrays[0].dtype == np.dtype(dtype)
        handed = list(view.states())
        np.testing.assert_array_equal(handed, states)
        assert all(state.dtype == np.float64 and state.flags.owndata for state in handed)
        np.testing.assert_array_equal(view.layout.state(view.wire(0)), view.state(0))
        assert view.extra_info.encode() == text
        assert (view.actions is None) == (actions is None)
        if actions is not None:
            np.testing.assert_array_equal(view.actions, actions)
            assert view.actions.dtype == np.float64
    with pytest.raises(IndexError):
        views[len(contents)]
    with pytest.raises(OSError):
        os.pwrite(fd, b"x", 0)
    with pytest.raises(OSError):
        os.ftruncate(fd, 0)
    memory.close(fd)


def test_many_parts_are_written_in_order() -> None:
    fd = memory.create(3000)
    parts = [bytes([number % 256]) * (number % 3) for number in range(3000)]
    memory.write_many(fd, parts, 10)
    whole = b"".join(parts)
    assert bytes(memory.read_all(fd, len(whole), 10)) == whole
    memory.close(fd)


@pytest.mark.parametrize(
    ("most", "expected"),
    [(1, [1, 1, 1, 1]), (24, [1, 1, 1, 1]), (48, [2, 1, 1]), (96, [3, 1]), (1 << 20, [4])],
)
def test_portions_hold_so_many_bytes(most: int, expected: list[int]) -> None:
    package = pack([Trajectory(np.full((length, 1), 1 / 3)) for length in (1, 3, 3, 6)])
    parts = list(package.portions(np.array([0, 1, 2, 3]), most))
    assert [part.stop - part.start for part in parts] == expected
    assert [part.start for part in parts] == list(np.cumsum([0, *expected[:-1]]))


def test_an_empty_run_is_one_portion() -> None:
    assert list(pack([]).portions(np.zeros(0, np.int64))) == [slice(0, 0)]
