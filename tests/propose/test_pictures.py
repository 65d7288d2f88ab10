"""States as pictures."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest

from grace_irl.demos.labels import label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.propose.pictures import CELL, LONGEST, pictures, png, require_pictures
from tests.fakes.data import vector_set

Image = pytest.importorskip("PIL.Image")


def grid_set(experts: int = 5) -> Demonstrations:
    rng = np.random.default_rng(0)
    items = [
        Demonstration(Trajectory(rng.integers(0, 5, (4, 3, 6, 3)), extra_info=f"go to {n}"), role)  # type: ignore[arg-type]
        for role, count in (("expert", experts), ("negative", 2))
        for n in range(count)
    ]
    return Demonstrations(Metadata("grid", label="last"), tuple(items))


def test_every_code_has_its_own_colour_and_the_first_index_goes_down() -> None:
    codes = list(itertools.product(range(4), range(3), range(2)))
    state = np.array(codes).reshape(4, 6, 3)
    image = Image.open(io.BytesIO(png(state))).convert("RGB")
    assert image.size == (6 * CELL, 4 * CELL)
    corners = {(i, j): image.getpixel((j * CELL + CELL - 4, i * CELL + CELL // 2)) for i in range(4) for j in range(6)}
    assert len(set(corners.values())) == 24
    again = Image.open(io.BytesIO(png(state[::-1]))).convert("RGB")
    assert again.getpixel((CELL - 4, CELL // 2)) == corners[3, 0]


def test_large_grids_stay_within_a_size() -> None:
    image = Image.open(io.BytesIO(png(np.zeros((500, 90, 3), int))))
    assert max(image.size) <= LONGEST


def test_first_and_last_states_of_experts_go_with_a_prompt() -> None:
    train = label(grid_set(), "last").train
    found = pictures(train, seed=3)
    assert len(found.files) == len(found.captions) == 6
    assert found == pictures(train, seed=3)
    assert found != pictures(train, seed=4)
    assert [caption.endswith("positive") for caption in found.captions] == [False, True] * 3
    assert found.text.splitlines()[2].startswith(
        "Picture 1: the first state of an expert trajectory with extra_info 'go to"
    )


def test_vectors_have_no_picture() -> None:
    with pytest.raises(InputError, match="vector states have no picture"):
        require_pictures(label(vector_set(), "all"))
    require_pictures(label(grid_set(), "last"))
