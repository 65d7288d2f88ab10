"""Selections: what meets the conditions is written once, with the role, task and side that were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grace_irl.demos import load, save
from grace_irl.demos.conditions import Conditions, Funnel, shows
from grace_irl.demos.files import iter_trajectories
from grace_irl.demos.screens import pack
from grace_irl.demos.select import Chosen, Selection, Selector
from grace_irl.demos.select_recipe import read_select_recipe
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.errors import InputError
from tests.demos.equality import assert_same
from tests.demos.ui.data import ALARM, ELEMENTS, HISTORIES, needs_android

SHIPPED = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"


def demonstration(
    value: float = 0.0,
    goal: str = "",
    *,
    length: int = 2,
    role: Role = "expert",
    task: str = "default",
    rewards: Sequence[float] | None = None,
    terminated: bool = False,
) -> Demonstration:
    states = np.full((length, 2), value)
    given_rewards = None if rewards is None else np.array(rewards)
    return Demonstration(Trajectory(states, extra_info=goal, rewards=given_rewards, terminated=terminated), role, task)


def screens(*packages: str) -> Demonstration:
    """An episode of one screen for each text, which lists the packages of its nodes."""
    xml = [f"<hierarchy>{''.join(f'<node package={one!r}/>' for one in text.split())}</hierarchy>" for text in packages]
    return Demonstration(Trajectory(pack(xml)), "expert")


def stored(path: Path, *items: Demonstration) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    save(Demonstrations(Metadata("vector"), items), path)
    return path


def numbered(path: Path, values: Sequence[float]) -> Path:
    return stored(path, *(demonstration(value) for value in values))


def values_of(path: str | Path) -> list[float]:
    return [float(item.trajectory.states[0, 0]) for item in iter_trajectories(path)]


def chosen(paths: Sequence[Path], selection: Selection, seed: int = 0) -> list[float]:
    selector = Selector(paths, [selection], seed)
    selector.write(selector.choose())
    return values_of(selection.out)


TIMER = demonstration(goal="Set a Timer for 5 minutes", length=4, task="clock", terminated=True)


@pytest.mark.parametrize(
    ("conditions", "item", "expected"),
    [
        (Conditions(), TIMER, True),
        (Conditions(goal=r"\btimer\b"), TIMER, True),  # case is ignored
        (Conditions(goal=r"^timer"), TIMER, False),
        (Conditions(goal="(?-i:timer)"), TIMER, False),
        (Conditions(not_goal="minutes"), TIMER, False),
        (Conditions(goal="timer", not_goal="hour"), TIMER, True),
        (Conditions(min_states=4, max_states=4), TIMER, True),
        (Conditions(min_states=5), TIMER, False),
        (Conditions(max_states=3), TIMER, False),
        (Conditions(from_role="expert", from_task="clock"), TIMER, True),
        (Conditions(from_role="negative"), TIMER, False),
        (Conditions(from_task="default"), TIMER, False),
        (Conditions(success=True), TIMER, True),
        (Conditions(success=False), TIMER, False),
        (Conditions(success=True), demonstration(rewards=[0.5]), True),
        (Conditions(success=True), demonstration(rewards=[0.0], terminated=True), False),  # rewards say more
        (Conditions(success=False), demonstration(), True),
        (Conditions(package=("*.deskclock",)), screens("a.launcher", "a.systemui com.google.android.deskclock"), True),
        (Conditions(package=("com.x", "a.?aps")), screens("a.maps"), True),
        (Conditions(package=("deskclock",)), screens("com.google.android.deskclock"), False),  # a whole name
        (Conditions(not_package=("*clock*",)), screens("a.maps", "a.clockwork"), False),
        (Conditions(not_package=("*clock*",)), screens("a.maps", "a.mail"), True),
    ],
)
def test_conditions(conditions: Conditions, item: Demonstration, expected: bool) -> None:
    funnel = Funnel(conditions)
    assert funnel.passes(item) is expected
    assert bool(funnel.emptied_by()) is not expected


def test_a_package_in_a_text_is_none() -> None:
    fake = Demonstration(
        Trajectory(pack(["""<hierarchy><node text='package="com.deskclock"' package="a.mail"/></hierarchy>"""])),
        "expert",
    )
    assert not shows(fake, ["*deskclock"])


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"goal": "("}, "--goal '(': no regular expression"),
        ({"not_goal": "*"}, "--not-goal '*': no regular expression"),
        ({"min_states": 0}, "--min-states 0; expected at least 1"),
        ({"max_states": -1}, "--max-states -1; expected at least 1"),
        ({"min_states": 3, "max_states": 2}, "--min-states 3 above --max-states 2"),
    ],
)
def test_conditions_that_cannot_be(about: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as error:
        Conditions(**about)  # type: ignore[arg-type]
    assert said in str(error.value)


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


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    assert "out.parquet: nothing is chosen (goal 'alarm': met by none of the 4 that came to it, of 6 in all)" in said
    assert "\n" not in said


def test_a_share_of_equal_trajectories(tmp_path: Path) -> None:
    source = numbered(tmp_path / "in.parquet", [1, 1, 1])
    with pytest.raises(InputError, match=r"--held-out 0.2 of 3 equal trajectories; expected at least two that differ"):
        Selector([source], [Selection(str(tmp_path / "out.parquet"), held_out=0.2)]).choose()


def test_apps_of_states_that_are_no_screens(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="vector states show no app; expected screens"):
        Funnel(Conditions(package=("a",))).passes(demonstration())


def test_sources_and_targets_that_clash(tmp_path: Path) -> None:
    source = numbered(tmp_path / "in.parquet", range(3))
    for selections, said in (
        ([Selection(str(source))], "source and target are the same"),
        ([Selection(str(tmp_path / "x.parquet"))] * 2, "two selections for one file"),
    ):
        with pytest.raises(InputError, match=said):
            Selector([source], selections)
    with pytest.raises(InputError, match="nothing to choose from"):
        Selector([], [Selection(str(tmp_path / "x.parquet"))])
    with pytest.raises(InputError, match="--seed -1"):
        Selector([source], [Selection(str(tmp_path / "x.parquet"))], -1)


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
        with pytest.raises(InputError, match="no role in the file"):
            Selector([path], [selection]).choose()


def test_one_trajectory_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No demonstration is alive when the next one but one is read."""
    import weakref

    from grace_irl.demos.parquet import ParquetSource

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


RECIPE = """
seed = 7
label = "last"
[[file]]
out = "timer.parquet"
goal = 'timer'
package = ["*.deskclock"]
success = true
min_states = 2
role = "expert"
task = "set timer"
sample = 12
held_out = 0.2
[[file]]
out = "negative.parquet"
not_package = ["*clock*"]
not_goal = "clock"
from_role = "expert"
"""


def test_a_recipe(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    recipe = read_select_recipe(path)
    assert (recipe.seed, recipe.label) == (7, "last")
    first, second = recipe.into("set")
    asked = Conditions(goal="timer", package=("*.deskclock",), success=True, min_states=2)
    assert first == Selection(str(Path("set", "timer.parquet")), asked, "expert", "set timer", 12, 0.2)
    assert second.conditions == Conditions(not_package=("*clock*",), not_goal="clock", from_role="expert")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "keys none; expected [[file]] tables, seed, label, nothing else"),
        ("[[file]]", "file 1: out = ''; expected the name of a file in the set's folder"),
        ("seed = -1\n[[file]]\nout = 'a.parquet'", "seed = -1; expected a whole number"),
        ("seed = true\n[[file]]\nout = 'a.parquet'", "seed = True; expected a whole number"),
        ("label = 'best'\n[[file]]\nout = 'a.parquet'", "label = 'best'; expected one of all, last, goal"),
        ("label = []\n[[file]]\nout = 'a.parquet'", "label = []; expected one of all, last, goal"),
        ("sed = 1\n[[file]]\nout = 'a.parquet'", "keys sed, file; expected [[file]] tables"),
        ("file = [1]", "file 1: 1; expected a table"),
        ("[[file]]\nout = '../a.parquet'", "expected the name of a file in the set's folder"),
        ("[[file]]\nout = '/tmp/a.parquet'", "expected the name of a file in the set's folder"),
        ("[[file]]\nout = 'a'\ngaol = 'x'", "file 1: gaol = 'x'; expected the keys out (str)"),
        ("[[file]]\nout = 'a'\npackage = 'x'", "package = 'x'; expected the keys"),
        ("[[file]]\nout = 'a'\npackage = [1]", "package = [1]; expected the keys"),
        ("[[file]]\nout = 'a'\nsample = 1.5", "sample = 1.5; expected the keys"),
        ("[[file]]\nout = 'a'\nsample = true", "sample = True; expected the keys"),
        ("[[file]]\nout = 'a'\nrole = 'boss'", "file 1: role 'boss'; expected 'expert' or 'negative'"),
        ("[[file]]\nout = 'a'\n[[file]]\nout = 'b'\ngoal = '('", "file 2: --goal '(': no regular expression"),
        ("[[file]", "not readable as TOML"),
    ],
)
def test_recipes_that_cannot_be(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_select_recipe(path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_shortage_is_known(tmp_path: Path) -> None:
    source = numbered(tmp_path / "in.parquet", range(3))
    (one,) = Selector([source], [Selection(str(tmp_path / "out.parquet"), sample=5)]).choose()
    assert isinstance(one, Chosen)
    assert (one.missing, one.states) == (2, 6)


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
