"""Selections: what meets the conditions is written once, with the role, task and side that were asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grace_irl.demos import load, save
from grace_irl.demos.conditions import Conditions
from grace_irl.demos.convert import convert
from grace_irl.demos.files import iter_trajectories
from grace_irl.demos.select import Selected, Selection, Selector
from grace_irl.demos.trajectory import Demonstration
from grace_irl.errors import InputError, NoSuchFileError
from tests.demos.choosing import SHIPPED, chosen, demonstration, numbered, stored, values_of
from tests.demos.equality import assert_same
from tests.demos.test_label_rule import reaching
from tests.demos.ui.data import ALARM, ELEMENTS, HISTORIES, needs_android


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"sample": 0}, "--sample 0; expected at least 1"),
        ({"held_out": 1.0}, "--held-out 1.0; expected a share above 0 and below 1"),
        ({"held_out": 0.0}, "--held-out 0.0"),
        ({"held_out": float("nan")}, "--held-out nan"),
    ],
)
def test_selections_that_cannot_be(about: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as error:
        Selection("out.parquet", **about)  # type: ignore[arg-type]
    assert said in str(error.value)


def test_everything_else_of_a_trajectory_is_kept(tmp_path: Path) -> None:
    """All of the shipped set in two files is the shipped set."""
    selector = Selector(
        [SHIPPED],
        [
            Selection(str(tmp_path / f"{role}.parquet"), Conditions(from_role=role), role=role)
            for role in ("expert", "negative")
        ],
    )
    selector.write(selector.choose())
    assert_same(load([tmp_path]), load([SHIPPED]))


def test_a_role_task_and_side_are_given(tmp_path: Path) -> None:
    source = numbered(tmp_path / "expert.parquet", range(10))
    out = tmp_path / "out.parquet"
    chosen([source], Selection(str(out), role="negative", task="other", held_out=0.2))
    items = list(iter_trajectories(out))
    assert {(item.role, item.task) for item in items} == {("negative", "other")}
    assert sorted(str(item.split) for item in items) == ["held_out"] * 2 + ["train"] * 8


def test_stated_sides_are_kept_without_a_share(tmp_path: Path) -> None:
    items = [replace(demonstration(1), split="held_out"), replace(demonstration(2), split="train"), demonstration(3)]
    source = stored(tmp_path / "in.parquet", *items)
    chosen([source], Selection(str(tmp_path / "out.parquet"), task="t"))
    assert [item.split for item in iter_trajectories(tmp_path / "out.parquet")] == ["held_out", "train", None]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(st.integers(0, 9), min_size=2, max_size=12),
    cut=st.integers(1, 11),
    sample=st.integers(1, 12),
    seed=st.integers(0, 5),
)
def test_the_sample_is_the_same_however_the_files_are_cut(
    tmp_path: Path, values: list[int], cut: int, sample: int, seed: int
) -> None:
    cut = min(cut, len(values) - 1)
    whole = numbered(tmp_path / "whole.parquet", values)
    parts = [numbered(tmp_path / "b.parquet", values[cut:]), numbered(tmp_path / "a.parquet", values[:cut])]
    selection = Selection(str(tmp_path / "out.parquet"), sample=sample)
    one = chosen([whole], selection, seed)
    assert len(one) == min(sample, len(values))
    assert sorted(one) == sorted(chosen(parts, selection, seed))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(st.integers(0, 9), min_size=2, max_size=15).filter(lambda v: len(set(v)) > 1),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 5),
)
def test_equal_trajectories_are_on_one_side(tmp_path: Path, values: list[int], share: float, seed: int) -> None:
    out = tmp_path / "out.parquet"
    chosen([numbered(tmp_path / "in.parquet", values)], Selection(str(out), held_out=share), seed)
    sides: dict[float, set[str | None]] = {}
    for item in iter_trajectories(out):
        sides.setdefault(float(item.trajectory.states[0, 0]), set()).add(item.split)
    assert all(len(found) == 1 for found in sides.values())
    assert set().union(*sides.values()) == {"train", "held_out"}


def test_a_label_is_given(tmp_path: Path) -> None:
    source = numbered(tmp_path / "in.parquet", range(2))
    for label in ("goal", None):
        selector = Selector([source], [Selection(str(tmp_path / "out.parquet"))], label=label)
        selector.write(selector.choose())
        assert load([tmp_path / "out.parquet"]).metadata.label == (label or "")


def test_records_with_a_goal_from_several_environments_keep_their_rule(tmp_path: Path) -> None:
    sources = [tmp_path / name for name in ("one.parquet", "two.parquet")]
    for number, source in enumerate(sources):
        save(reaching(environment=f"Mine-v{number}"), source)
    selector = Selector(sources, [Selection(str(tmp_path / "out.parquet"))])
    selector.write(selector.choose())
    assert load([tmp_path / "out.parquet"]).metadata.label == "last"


def test_seeds_differ(tmp_path: Path) -> None:
    source = numbered(tmp_path / "in.parquet", range(40))
    drawn = {tuple(chosen([source], Selection(str(tmp_path / "out.parquet"), sample=5), seed)) for seed in range(5)}
    assert len(drawn) > 1


def test_an_earlier_selection_has_it(tmp_path: Path) -> None:
    source = stored(tmp_path / "in.parquet", *(demonstration(value, f"goal {value}") for value in range(6)))
    first = Selection(str(tmp_path / "one.parquet"), Conditions(goal="[0-3]"), sample=2)
    second = Selection(str(tmp_path / "two.parquet"))
    selector = Selector([source], [first, second])
    one, two = selector.choose()
    selector.write([one, two])
    assert (len(one.matches), two.taken, len(two.matches)) == (2, 2, 4)
    assert sorted(values_of(first.out) + values_of(second.out)) == list(range(6))


def test_what_is_chosen_twice_over_is_said(tmp_path: Path) -> None:
    source = numbered(tmp_path / "in.parquet", range(3))
    selector = Selector([source], [Selection(str(tmp_path / name)) for name in ("one.parquet", "two.parquet")])
    with pytest.raises(InputError, match="all 3 that meet its conditions are in the file of an earlier selection"):
        selector.write(selector.choose())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet"]  # nothing, not even the first


def test_nothing_met_a_condition(tmp_path: Path) -> None:
    source = stored(tmp_path / "in.parquet", *(demonstration(n, "set a timer", length=n) for n in range(1, 7)))
    selector = Selector([source], [Selection(str(tmp_path / "out.parquet"), Conditions(goal="alarm", max_states=4))])
    with pytest.raises(InputError) as error:
        selector.write(selector.choose())
    said = str(error.value)
    assert (
        "out.parquet: nothing is chosen (goal 'alarm': met by none of the 4 demonstrations that met the earlier "
        "conditions (6 in all))" in said
    )
    assert "\n" not in said


def test_a_share_of_equal_trajectories(tmp_path: Path) -> None:
    source = numbered(tmp_path / "in.parquet", [1, 1, 1])
    with pytest.raises(InputError, match=r"--held-out 0.2 of 3 equal trajectories; expected at least two that differ"):
        Selector([source], [Selection(str(tmp_path / "out.parquet"), held_out=0.2)]).choose()


def test_sources_and_targets_that_clash(tmp_path: Path) -> None:
    source = numbered(tmp_path / "in.parquet", range(3))
    for selections, said in (
        ([Selection(str(source))], "source and target are the same"),
        ([Selection(str(tmp_path / "x.parquet"))] * 2, "two selections for one file"),
        ([Selection(str(tmp_path / name)) for name in ("x.parquet", "y/../x.parquet")], "two selections for one file"),
    ):
        with pytest.raises(InputError, match=said):
            Selector([source], selections)
    with pytest.raises(InputError, match="nothing to choose from"):
        Selector([], [Selection(str(tmp_path / "x.parquet"))])
    with pytest.raises(InputError, match="--seed -1"):
        Selector([source], [Selection(str(tmp_path / "x.parquet"))], -1)


def test_links_in_a_loop_are_no_file(tmp_path: Path) -> None:
    for name, other in (("a.parquet", "b.parquet"), ("b.parquet", "a.parquet")):
        (tmp_path / name).symlink_to(tmp_path / other)
    with pytest.raises(NoSuchFileError, match=r"a\.parquet: no such file"):
        Selector([tmp_path / "a.parquet"], [Selection(str(tmp_path / "out.parquet"))]).choose()
    convert(numbered(tmp_path / "in.parquet", range(3)), tmp_path / "a.parquet")  # takes the place of the link
    assert len(load([tmp_path / "a.parquet"], role="expert")) == 3


def test_a_source_that_changes_between_the_readings(tmp_path: Path) -> None:
    source = numbered(tmp_path / "in.parquet", range(3))
    selector = Selector([source], [Selection(str(tmp_path / "out.parquet"))])
    found = selector.choose()
    for values in ([0, 5, 2], [0, 1]):
        numbered(source, values)
        with pytest.raises(InputError, match=r"in.parquet: changed while it was read"):
            selector.write(found)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet"]


def test_files_without_a_role(tmp_path: Path) -> None:
    """A role that is given to everything needs none in the source; a condition on it does."""
    path = tmp_path / "plain.npz"
    np.savez(path, observations=np.zeros((4, 2)), episode_lengths=np.array([4]))
    out = str(tmp_path / "out.parquet")
    chosen([path], Selection(out, role="negative"))
    assert [item.role for item in iter_trajectories(out)] == ["negative"]
    for selection in (Selection(out), Selection(out, Conditions(from_role="expert"), role="expert")):
        with pytest.raises(InputError, match=r"no role in the file.*name it by --role, without --from-role"):
            Selector([path], [selection]).choose()


def test_one_trajectory_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No demonstration is alive when the next one but one is read."""
    import weakref

    from grace_irl.demos.parquet.source import ParquetSource

    alive: list[weakref.ref[Demonstration]] = []
    most = 0
    reader = ParquetSource.demonstrations

    def watched(self: ParquetSource, *arguments: object) -> object:
        nonlocal most
        for item in reader(self, *arguments):  # type: ignore[arg-type]
            alive.append(weakref.ref(item))
            most = max(most, sum(one() is not None for one in alive))
            yield item
            del item

    monkeypatch.setattr(ParquetSource, "demonstrations", watched)
    chosen([numbered(tmp_path / "in.parquet", range(50))], Selection(str(tmp_path / "out.parquet"), sample=20))
    assert len(alive) > 50
    assert most <= 3


def test_a_shortage_is_known(tmp_path: Path) -> None:
    source = numbered(tmp_path / "in.parquet", range(3))
    (one,) = Selector([source], [Selection(str(tmp_path / "out.parquet"), sample=5)]).choose()
    assert isinstance(one, Selected)
    assert (one.missing, one.states) == (2, 6)


@pytest.mark.slow
@needs_android
@pytest.mark.parametrize("name", ["out.parquet", "out.tfrecord"])
def test_real_screens(tmp_path: Path, name: str) -> None:
    """An episode of dumps, histories and element lists, by app: what is chosen is what was there."""
    sources = [ALARM, *HISTORIES, *ELEMENTS]
    out = str(tmp_path / name)
    selector = Selector(sources, [Selection(out, Conditions(package=("com.google.*.deskclock",)), "expert", "alarm")])
    (one,) = selector.choose()
    selector.write([one])
    assert one.funnel.seen == 1 + len(HISTORIES) + len(ELEMENTS)
    (item,) = iter_trajectories(out)
    (there,) = iter_trajectories(ALARM, role="expert")
    assert item.task == "alarm"
    assert item.trajectory.extra_info == there.trajectory.extra_info
    assert [bytes(state) for state in item.trajectory.states] == [bytes(state) for state in there.trajectory.states]


@needs_android
def test_a_goal_among_real_histories(tmp_path: Path) -> None:
    selection = Selection(str(tmp_path / "x.parquet"), Conditions(goal="simple calendar", success=False, min_states=21))
    (one,) = Selector(HISTORIES, [selection]).choose()
    assert [HISTORIES[match.file].name[:16] for match in one.matches] == ["2025_01_08_17_09", "2025_04_20_03_32"]
    assert list(one.funnel.left.values()) == [7, 3, 2]
