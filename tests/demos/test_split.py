"""The held-out split."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.demos.split import split
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.errors import InputError


def demonstrations(counts: dict[tuple[str, Role], int]) -> Demonstrations:
    items = [
        Demonstration(Trajectory(np.full((2, 1), float(n)), source=f"{task} {role} {n}"), role, task)
        for (task, role), count in counts.items()
        for n in range(count)
    ]
    return Demonstrations(Metadata("vector"), tuple(items))


@pytest.mark.parametrize(
    ("count", "share", "expected"),
    [(10, 0.3, 3), (10, 0.25, 2), (3, 0.01, 1), (2, 0.5, 1), (2, 0.99, 1), (10, 0.99, 9), (100, 0.5, 50)],
)
def test_how_many(count: int, share: float, expected: int) -> None:
    held = split(demonstrations({("a", "expert"): count}), share, 0).select(split="held_out")
    assert len(held) == expected


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["expert", "negative"])),
        st.integers(2, 12),
        min_size=1,
    ),
    st.floats(0.01, 0.99),
    st.integers(0, 2**32),
)
def test_every_group_is_on_both_sides(counts: dict[tuple[str, Role], int], share: float, seed: int) -> None:
    before = demonstrations(counts)
    after = split(before, share, seed)
    assert [d.trajectory for d in after] == [d.trajectory for d in before]
    for task, role in counts:
        for side in ("train", "held_out"):
            assert after.select(task=task, role=role, split=side)
    assert [d.split for d in split(before, share, seed)] == [d.split for d in after]
    assert [d.split for d in split(after, share, seed)] == [d.split for d in after]


def test_another_task_moves_nothing() -> None:
    alone = split(demonstrations({("a", "expert"): 20}), 0.3, 5)
    beside = split(demonstrations({("b", "expert"): 9, ("a", "expert"): 20}), 0.3, 5)
    assert [d.split for d in alone] == [d.split for d in beside.select(task="a")]


def test_another_seed_draws_others() -> None:
    whole = demonstrations({("a", "expert"): 20})
    draws = {tuple(d.split for d in split(whole, 0.3, seed)) for seed in range(10)}
    assert len(draws) > 5


def test_what_is_held_out_stays() -> None:
    whole = demonstrations({("a", "expert"): 10})
    marked = replace(whole, items=(replace(whole[0], split="held_out"), *whole[1:]))
    for seed in range(10):
        after = split(marked, 0.3, seed)
        assert after[0].split == "held_out"
        assert len(after.select(split="held_out")) == 3


def test_nothing_held_out() -> None:
    whole = demonstrations({("a", "expert"): 1})
    assert split(whole, 0.0, 0) is whole


def test_one_trajectory_cannot_be_split() -> None:
    with pytest.raises(
        InputError, match=r"task 'a': one negative trajectory \(a negative 0\).*at least two.*--held-out 0"
    ):
        split(demonstrations({("a", "expert"): 5, ("a", "negative"): 1}), 0.3, 0)


def test_everything_held_out() -> None:
    whole = demonstrations({("a", "expert"): 2})
    marked = replace(whole, items=tuple(replace(d, split="held_out") for d in whole))
    with pytest.raises(InputError, match="some for training"):
        split(marked, 0.3, 0)


@pytest.mark.parametrize("share", [-0.1, 1.0, 2.0, float("nan")])
def test_shares_out_of_range(share: float) -> None:
    with pytest.raises(InputError, match="below 1"):
        split(demonstrations({("a", "expert"): 5}), share, 0)
