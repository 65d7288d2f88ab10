"""A parcel is read as it was laid out."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.sandbox import memory
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
        actions = random.integers(0, 9, (length - 1, width)).astype("f8") if acting else None
        contents.append(Content((states,), actions, text))
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
        assert view.extra_info == text
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
