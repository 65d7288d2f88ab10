"""The label rule that fits a set: by what its files state, their environments, marks and the ends of episodes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow.parquet as pq
import pytest

from grace_irl.demos import load, save
from grace_irl.demos.files import Format
from grace_irl.demos.label_rule import choose_rule, earlier_rule, environment_rule
from grace_irl.demos.summary import summarise
from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata, Role, Trajectory
from grace_irl.errors import InputError
from grace_irl.states.record import RecordStates
from grace_irl.states.screen import pack
from tests.demos.conftest import screen

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "datasets" / "babyai-go-to-obj"
REAL = ROOT.parent / "shared" / "data"
GRID_FORMATS: tuple[tuple[Format, str], ...] = (
    ("parquet", "set.parquet"),
    ("npz", "set.npz"),
    ("imitation", "imitation.npz"),
    ("minari", "grids/hdf5-v0"),
    ("minari-arrow", "grids/arrow-v0"),
)


@pytest.fixture(autouse=True)
def _minari_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def grids(count: int = 8, *, roles: Sequence[Role] = ("expert", "negative"), **about: Any) -> Demonstrations:
    """Some of the set that ships, without a word on labels or the environment unless `about` says one."""
    whole = load([str(SHIPPED)])
    items = [item for role in roles for item in whole.select(role=role).items[:count]]
    plain = (replace(item, split=None, trajectory=replace(item.trajectory, log_probs=None)) for item in items)
    return Demonstrations(Metadata("grid", **about), tuple(plain))


def vectors(
    environment: str = "",
    *,
    ends: dict[Role, tuple[bool, bool]] | None = None,
    label: LabelRule | str = "",
    task: str = "default",
    count: int = 4,
    fields: tuple[str, ...] = (),
) -> Demonstrations:
    """Vectors whose first number tells experts; `ends`: (terminated, truncated) by role."""
    rng = np.random.default_rng(len(environment))
    items = []
    for role, sign in (("expert", 1.0), ("negative", -1.0)):
        for number in range(count):
            states = rng.normal(size=(6, 2)) + np.array([3 * sign, 0])
            terminated, truncated = (ends or {}).get(role, (False, False))  # type: ignore[call-overload]
            trajectory = Trajectory(
                states, terminated=terminated, truncated=truncated, source=f"{environment} {role} {number}"
            )
            items.append(Demonstration(trajectory, role, task))  # type: ignore[arg-type]
    return Demonstrations(Metadata("vector", fields, environment, label=label), tuple(items))  # type: ignore[arg-type]


def reaching(goal: str = "desired_goal", environment: str = "") -> Demonstrations:
    """Records of a position and a goal, the part `goal`."""
    items = (
        replace(
            item,
            trajectory=Trajectory(RecordStates({"at": item.trajectory.states, goal: np.ones((6, 2))}), terminated=True),
        )
        for item in vectors()
    )
    return Demonstrations(Metadata("record", environment=environment), tuple(items))


def without_header(path: Path) -> Path:
    """A file of a tool that knows nothing of our metadata."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        pq.write_table(table.replace_schema_metadata(None), path)
    elif path.suffix == ".npz":
        with np.load(path) as archive:
            arrays = {name: archive[name] for name in archive.files if name != "grace_irl"}
        np.savez(path, **arrays)
    else:
        about = path / "data" / "metadata.json"
        kept = json.loads(about.read_text())
        del kept["grace_irl"]
        about.write_text(json.dumps(kept))
    return path


def test_files_of_others_have_one_rule_too(tmp_path: Path) -> None:
    pytest.importorskip("minari")
    chosen = set()
    for form, name in GRID_FORMATS:
        minari = form.startswith("minari")
        save(grids(3, roles=("expert",)), name if minari else tmp_path / name, form)
        path = without_header(tmp_path / "minari" / name if minari else tmp_path / name)
        found = choose_rule(load([str(path)], role="expert"))
        chosen.add((found.rule, found.reason))
    assert chosen == {("last", "tasks on grids end where a goal is reached")}


@pytest.mark.parametrize("name", ["expert.parquet", "expert.npz", "records/expert-v0"])
def test_records_with_a_goal_have_one_rule_in_every_format(name: str, tmp_path: Path) -> None:
    minari = name.endswith("-v0")
    if minari:
        pytest.importorskip("minari")
    save(reaching().select(role="expert"), name if minari else tmp_path / name)
    path = without_header(tmp_path / "minari" / name if minari else tmp_path / name)
    assert choose_rule(load([str(path)])).rule == "last"
    assert summarise(path).label.startswith("last")


def test_screens_have_one_rule_in_every_format(tmp_path: Path) -> None:
    items = []
    for role in get_args(Role):
        for number in range(2):
            states = pack([screen(role), screen(str(number))])
            items.append(Demonstration(Trajectory(states, source=f"{role} {number}"), role))
    whole = Demonstrations(Metadata("ui", view="uiautomator"), tuple(items))
    save(whole, tmp_path / "set.parquet")
    save(whole, tmp_path / "set.tfrecord")
    chosen = {choose_rule(load([str(tmp_path / name)])) for name in ("set.parquet", "set.tfrecord")}
    assert {(each.rule, each.reason) for each in chosen} == {("last", "tasks on screens end where a goal is reached")}


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("BabyAI-GoToObj-v0", "last"),
        ("MiniGrid-Empty-8x8-v0", "last"),
        ("FetchReach-v4", "last"),
        ("FetchPickAndPlaceDense-v4", "last"),
        ("AntMaze_UMaze-v5", "last"),
        ("D4RL/antmaze-umaze-v2", "last"),
        ("PointMaze_Large-v3", "last"),
        ("MountainCarContinuous-v0", "last"),
        ("Ant-v5", "all"),
        ("Hopper-v4", "all"),
        ("Walker2d-v5", "all"),
        ("dm_control/cheetah-run-v0", "all"),
        ("CartPole-v1", "all"),
        ("InvertedPendulum-v5", "all"),
        ("Somebody-v0", ""),
        ("fetch_mine.py:make", ""),
        ("", ""),
    ],
)
def test_known_environments(name: str, rule: str) -> None:
    assert environment_rule(name) == rule


ENDED, CUT, SILENT = (True, False), (False, True), (False, False)


@pytest.mark.parametrize(
    ("found", "rule", "reason"),
    [
        (vectors("Hopper-v5"), "all", "Hopper-v5 has no goal"),
        (vectors("FetchReach-v4", ends={"expert": CUT}), "last", "the environment ended 0 of 4 expert"),
        (vectors(ends={"expert": ENDED, "negative": CUT}), "last", "a time limit all 4 negative ones"),
        (vectors(ends={"expert": ENDED, "negative": SILENT}), "all", "no goal is known,"),  # marks of a time limit
        (vectors(ends={"expert": ENDED, "negative": ENDED}), "all", "no goal is known,"),  # falls
        (vectors(ends={"expert": CUT, "negative": ENDED}), "all", "a time limit ended all 4 expert"),
        (vectors(), "all", "no goal is known,"),
        (vectors("Hopper-v5", label="last"), "last", "the data state it"),
        (vectors(fields=("achieved_goal_0", "desired_goal_0")), "last", "desired_goal"),
        (reaching(), "last", "an environment with a desired_goal"),
        (reaching("inner/desired_goal"), "last", "desired_goal"),
        (reaching("desired_goal/kettle"), "last", "desired_goal"),
        (reaching("goal"), "all", "no goal is known,"),
        (reaching(environment="Hopper-v5"), "all", "Hopper-v5 has no goal"),
    ],
)
def test_what_decides(found: Demonstrations, rule: str, reason: str) -> None:
    chosen = choose_rule(found)
    assert (chosen.rule, reason in chosen.reason) == (rule, True), chosen
    asked = choose_rule(found, "goal")
    assert (asked.rule, asked.reason) == ("goal", "chosen with --label")


def test_rewards_have_no_say() -> None:
    plain = vectors()
    sparse = [
        replace(
            item, trajectory=replace(item.trajectory, rewards=np.array([0, 0, 0, 0, 1.0 * (item.role == "expert")]))
        )
        for item in plain
    ]
    assert choose_rule(replace(plain, items=tuple(sparse))) == choose_rule(plain)


def test_marks_in_every_expert_mean_goal() -> None:
    plain = grids(2)
    marked = [replace(item, goals=(0,)) if item.role == "expert" else item for item in plain]
    assert choose_rule(replace(plain, items=tuple(marked))).rule == "goal"
    assert choose_rule(replace(plain, items=(*marked[:1], *plain.items[1:]))).rule == "last"  # one nobody marked


def test_tasks_of_environments_that_agree(tmp_path: Path) -> None:
    save(vectors("Hopper-v5"), tmp_path / "hop.parquet")
    save(vectors("Swimmer-v5"), tmp_path / "swim.parquet")
    found = choose_rule(load([str(tmp_path)]))
    assert (found.rule, found.reason) == ("all", "Hopper-v5, Swimmer-v5 have no goal at which an episode ends")


def test_a_negative_file_has_no_say(tmp_path: Path) -> None:
    save(vectors(label="last").select(role="expert"), tmp_path / "expert.parquet")
    save(vectors("x", label="all").select(role="negative"), tmp_path / "negative.parquet")
    assert choose_rule(load([str(tmp_path)])).reason == "expert.parquet states it"


def test_the_rule_of_earlier_versions(tmp_path: Path) -> None:
    pytest.importorskip("minari")
    save(grids(2), tmp_path / "set.parquet")
    save(grids(2), "grids/old-v0", "minari")
    assert earlier_rule(load([str(tmp_path / "set.parquet")])) == "all"
    assert earlier_rule(load(["grids/old-v0"])) == "last"
    assert earlier_rule(vectors(label="goal")) == "goal"


@pytest.mark.parametrize(
    ("expert", "negative", "rule"),
    [
        ("mujoco/cs285_2023_Hopper-v4.npz", "mujoco/drex_Hopper.npz", "all"),
        ("mujoco/cs285_2023_HalfCheetah-v4.npz", "mujoco/drex_HalfCheetah.npz", "all"),
        ("android/alarm_episode", "android/androidworld", "last"),
        ("android/utg", "android/androidworld", "last"),
    ],
)
def test_real_data(expert: str, negative: str, rule: str) -> None:
    if not (REAL / expert).exists():
        pytest.skip("the data of others are not here (shared/data)")
    found = load([str(REAL / expert)], [str(REAL / negative)], role="expert")
    assert choose_rule(found).rule == rule


def test_the_set_that_ships_states_its_rule() -> None:
    assert choose_rule(load([str(SHIPPED)])).line == (
        "label rule last: expert.parquet states it (--label chooses otherwise: all, goal)"
    )


def test_a_conflict_is_an_error_of_the_data() -> None:
    origins = (("a", Metadata("vector", label="all")), ("b", Metadata("vector", environment="PointMaze_Open-v3")))
    with pytest.raises(InputError, match="a states 'all', and PointMaze_Open-v3 calls for 'last'"):
        choose_rule(replace(vectors(), origins=origins))
