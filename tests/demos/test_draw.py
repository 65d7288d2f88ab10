"""A draw of demonstrations: by content and seed, of each task and role."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from grace_irl.demos.split import draw, split
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.errors import InputError

ROLES: tuple[Role, ...] = ("expert", "negative")


def known(count: int = 6, tasks: tuple[str, ...] = ("a", "b")) -> Demonstrations:
    items = [
        Demonstration(Trajectory(np.full((3, 1), number, float), source=f"{task} {role} {number}"), role, task)
        for number, (task, role, _) in enumerate(product(tasks, ROLES, range(count)))
    ]
    return Demonstrations(Metadata("vector"), tuple(items))


def names(demonstrations: Demonstrations) -> list[str]:
    return [item.trajectory.source for item in demonstrations]


def test_as_many_of_each_task_and_role_in_the_order_of_the_set() -> None:
    found = draw(known(), 2, 0)
    assert set(Counter((item.task, item.role) for item in found).values()) == {2}
    assert len(found) == 8
    assert names(found) == [name for name in names(known()) if name in names(found)]


def test_seeds_draw_differently_and_the_same_seed_the_same() -> None:
    assert names(draw(known(), 2, 3)) == names(draw(known(), 2, 3))
    assert len({tuple(names(draw(known(), 2, seed))) for seed in range(8)}) > 4


def test_neither_the_order_of_files_nor_another_task_moves_a_draw() -> None:
    backwards = replace(known(), items=tuple(reversed(known().items)))
    assert sorted(names(draw(backwards, 3, 1))) == sorted(names(draw(known(), 3, 1)))
    alone = draw(known(tasks=("a",)), 3, 1)
    assert set(names(alone)) <= set(names(draw(known(), 3, 1)))


def test_all_may_be_drawn_and_no_more() -> None:
    assert names(draw(known(3), 3, 0)) == names(known(3))
    with pytest.raises(InputError, match=r"--draw-demos 4: task 'a' has 3 expert trajectories; expected at least 4"):
        draw(known(3), 4, 0)


def test_what_is_held_out_stays_and_is_not_counted() -> None:
    items = tuple(
        replace(item, split="held_out" if number % 6 == 0 else None) for number, item in enumerate(known().items)
    )
    found = draw(replace(known(), items=items), 2, 0)
    assert sum(item.split == "held_out" for item in found) == 4
    assert len(found) == 4 + 8


def test_a_draw_can_be_split() -> None:
    sides = Counter((item.task, item.role, item.split) for item in split(draw(known(), 4, 2), 0.25, 2))
    assert {count for (_, _, side), count in sides.items() if side == "held_out"} == {1}
    assert len(sides) == 8
