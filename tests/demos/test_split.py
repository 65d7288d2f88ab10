"""The held-out split, and the trajectories set aside for validation."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.demos.split import set_aside, split
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Split, Trajectory
from grace_irl.errors import InputError


def demonstrations(counts: dict[tuple[str, Role], int]) -> Demonstrations:
    """So many trajectories of each task and role, no two of them equal."""
    items = [one(f"{task} {role} {n}", role, task) for (task, role), count in counts.items() for n in range(count)]
    return Demonstrations(Metadata("vector"), tuple(items))


def one(content: str, role: Role = "expert", task: str = "a", split: Split | None = None) -> Demonstration:
    """A demonstration whose trajectory is told from others by its content alone."""
    states = np.frombuffer(content.ljust(16).encode(), np.uint8)[None].astype(np.float64)
    return Demonstration(Trajectory(states, source=content), role, task, split)


def sides(demonstrations: Demonstrations) -> list[tuple[str, Split | None]]:
    return sorted((item.trajectory.source, item.split) for item in demonstrations)


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
    assert sides(alone) == sides(beside.select(task="a"))


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


@given(st.lists(st.sampled_from(["train", "held_out", None]), min_size=4, max_size=12), st.integers(0, 99))
def test_every_stated_split_is_kept(stated: list[Split | None], seed: int) -> None:
    items = tuple(one(f"{n}", split=mark) for n, mark in enumerate([*stated, "train", "held_out"]))  # type: ignore[arg-type]
    after = split(Demonstrations(Metadata("vector"), items), 0.5, seed)
    for item, mark in zip(after, [*stated, "train", "held_out"], strict=True):
        assert item.split == (mark or item.split)
        assert item.split is not None


def test_the_draw_is_among_what_states_none() -> None:
    items = tuple(one(f"{n}", split="train" if n < 7 else None) for n in range(10))
    for seed in range(5):
        after = split(Demonstrations(Metadata("vector"), items), 0.2, seed)
        assert {d.split for d in after[:7]} == {"train"}
        assert sum(d.split == "held_out" for d in after) == 2


@given(st.randoms(use_true_random=False), st.integers(0, 9))
def test_order_decides_nothing(random: Random, seed: int) -> None:
    whole = demonstrations({("a", "expert"): 9, ("a", "negative"): 5, ("b", "expert"): 4, ("b", "negative"): 3})
    items = list(whole)
    random.shuffle(items)
    assert sides(split(replace(whole, items=tuple(items)), 0.3, seed)) == sides(split(whole, 0.3, seed))


@given(
    st.lists(st.tuples(st.sampled_from("pqrstu"), st.sampled_from("ab"), st.booleans()), min_size=4, max_size=30),
    st.floats(0.05, 0.95),
    st.integers(0, 99),
)
def test_equals_are_never_on_both_sides(drawn: list[tuple[str, str, bool]], share: float, seed: int) -> None:
    items = [one(content, "expert" if expert else "negative", task) for content, task, expert in drawn]
    groups = {(item.task, item.role) for item in items}
    # Two of each group's own make every group one that can be split.
    items += [one(f"{task} {role} {n}", role, task) for task, role in groups for n in range(2)]
    after = split(Demonstrations(Metadata("vector"), tuple(items)), share, seed)
    for content in {content for content, _, _ in drawn}:
        assert len({d.split for d in after if d.trajectory.source == content}) == 1


def test_equals_follow_one_that_is_stated() -> None:
    items = (
        one("p", split="held_out"),
        one("p"),
        one("q"),
        one("q", "negative"),
        one("q", split="train"),
        one("r", "negative"),
    )
    for seed in range(5):
        after = split(Demonstrations(Metadata("vector"), items), 0.3, seed)
        assert [d.split for d in after] == ["held_out", "held_out", "train", "train", "train", "held_out"]


def test_many_equals_are_held_out_whole_where_nothing_else_can_be() -> None:
    items = (*[one("p")] * 4, *[one("q")] * 6)
    after = split(Demonstrations(Metadata("vector"), items), 0.1, 3)
    assert [d.split for d in after] == ["held_out"] * 4 + ["train"] * 6


def test_equals_alone_cannot_be_split() -> None:
    with pytest.raises(InputError, match=r"3 equal expert trajectories \(p\).*two that differ"):
        split(Demonstrations(Metadata("vector"), (one("p"),) * 3), 0.3, 0)


def test_nothing_drawn() -> None:
    items = (one("p"), one("q", split="held_out"), one("r", split="train"))
    after = split(Demonstrations(Metadata("vector"), items), 0.0, 0)
    assert [d.split for d in after] == ["train", "held_out", "train"]


def test_one_trajectory_cannot_be_split() -> None:
    with pytest.raises(
        InputError, match=r"task 'a': one negative trajectory \(a negative 0\).*at least two.*--held-out 0"
    ):
        split(demonstrations({("a", "expert"): 5, ("a", "negative"): 1}), 0.3, 0)


def test_all_held_out() -> None:
    whole = demonstrations({("a", "expert"): 2})
    marked = replace(whole, items=tuple(replace(d, split="held_out") for d in whole))
    with pytest.raises(
        InputError, match="all 2 expert trajectories state the split 'held_out'; expected some of 'train'"
    ):
        split(marked, 0.3, 0)


def test_nothing_left_to_draw_from() -> None:
    whole = demonstrations({("a", "expert"): 2, ("a", "negative"): 2})
    marked = replace(whole, items=tuple(replace(d, split="train") for d in whole))
    with pytest.raises(InputError, match=r"expected some of 'held_out' or without a split.*--held-out 0"):
        split(marked, 0.3, 0)


@pytest.mark.parametrize("share", [-0.1, 1.0, 2.0, float("nan")])
def test_shares_out_of_range(share: float) -> None:
    with pytest.raises(InputError, match="below 1"):
        split(demonstrations({("a", "expert"): 5}), share, 0)


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["expert", "negative"])),
        st.integers(2, 40),
        min_size=1,
    ),
    st.floats(0.0, 0.99),
    st.integers(0, 2**32),
)
def test_what_is_set_aside_was_in_training(counts: dict[tuple[str, Role], int], share: float, seed: int) -> None:
    before = split(demonstrations(counts), 0.25, seed)
    after = set_aside(before, share, seed, 6)
    assert after.select(split="held_out").items == before.select(split="held_out").items
    aside = after.select(split="validation")
    for task, role in counts:
        train = len(before.select(task=task, role=role, split="train"))
        assert after.select(task=task, role=role, split="train")
        if aside:
            assert len(after.select(task=task, role=role, split="validation")) == min(round(share * train), train - 1)
    if aside:
        assert all(len(after.select(role=role, split="validation")) >= 6 for role in {role for _, role in counts})
    backwards = replace(before, items=before.items[::-1])
    assert sides(set_aside(backwards, share, seed, 6)) == sides(after)


@pytest.mark.parametrize(("experts", "negatives", "aside"), [(24, 24, 12), (24, 21, 0), (21, 24, 0), (24, 0, 6)])
def test_six_of_each_role_are_set_aside_or_none(experts: int, negatives: int, aside: int) -> None:
    found = demonstrations({("a", "expert"): experts, ("a", "negative"): negatives})
    assert len(set_aside(split(found, 0.0, 0), 0.25, 0, 6).select(split="validation")) == aside


def test_equal_trajectories_are_set_aside_together() -> None:
    twins = [one(f"twin {n // 2}", role) for n in range(40) for role in ("expert", "negative")]  # type: ignore[arg-type]
    after = set_aside(split(Demonstrations(Metadata("vector"), tuple(twins)), 0.0, 0), 0.4, 0, 6)
    of: dict[str, set[str | None]] = {}
    for item in after:
        of.setdefault(item.trajectory.digest, set()).add(item.split)
    assert all(len(each) == 1 for each in of.values())
    assert after.select(split="validation")


def test_a_stated_validation_split_stays() -> None:
    items = [one(f"free {n}") for n in range(30)] + [one(f"said {n}", split="validation") for n in range(3)]
    before = split(Demonstrations(Metadata("vector"), tuple(items)), 0.2, 0)
    assert sides(set_aside(before, 0.5, 0, 6)) == sides(before)
    assert {item.trajectory.source for item in before.select(split="validation")} == {"said 0", "said 1", "said 2"}
