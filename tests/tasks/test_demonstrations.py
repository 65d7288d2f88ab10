"""Demonstrations beside a task: their components have the task's names, in the task's order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")

import grace_irl
from grace_irl.cli import main
from grace_irl.compare.contest import Contest
from grace_irl.compare.settings import Settings, comparison_of
from grace_irl.demos import save
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError
from grace_irl.report import data
from grace_irl.rl.collect import collect
from grace_irl.runs.config import resolve
from grace_irl.runs.loading import new_labelling
from grace_irl.runs.run import opened
from tests.tasks.poles import TASK

Capture = pytest.CaptureFixture[str]
NAMES = ("x", "velocity", "angle", "angular velocity")


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "pole.toml"
    path.write_text(TASK)
    return path


def experts(names: tuple[str, ...]) -> Demonstrations:
    """Episodes of CartPole, whose components have these names in the order of the task's."""
    found = collect("CartPole-v1", "random", 4, "expert", 0)
    return replace(found, metadata=replace(found.metadata, fields=names))


def backwards(found: Demonstrations) -> Demonstrations:
    """The same episodes, with components and names in the reverse order."""
    items = [replace(one, trajectory=replace(one.trajectory, states=one.trajectory.states[:, ::-1])) for one in found]
    return replace(found, metadata=replace(found.metadata, fields=found.metadata.fields[::-1]), items=tuple(items))


def written(folder: Path, found: Demonstrations) -> str:
    save(found, folder / "demos.parquet")
    return str(folder / "demos.parquet")


def test_components_in_another_order_are_put_into_the_tasks(task: Path, tmp_path: Path) -> None:
    right = experts(NAMES)
    path = written(tmp_path, backwards(right))
    config = resolve(flags={"method": "random", "policy.task": str(task), "data.demos": (path,)})
    problem = new_labelling(config).problem()
    settings = Settings(comparison_of({"task": str(task), "methods": ("bc",)}), resolve(flags={"data.demos": (path,)}))
    compared = Contest.of(settings).demonstrations
    assert problem.metadata.fields == compared.metadata.fields == NAMES
    for found in (problem.items, compared.items):
        for one, other in zip(found, right, strict=True):
            np.testing.assert_array_equal(one.trajectory.states, other.trajectory.states)


def test_components_of_other_names_are_refused(task: Path, tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path, experts(("a", "b", "c", "d")))
    for words in (["fit", "--method", "random"], ["compare", "--methods", "bc"]):
        assert main([*words, "--task", str(task), "--demos", path, "--out", str(tmp_path / "out")]) == 2
        error = capsys.readouterr().err
        assert "demonstrations beside a task: components a, b, c, d; expected x, velocity, angle," in error
        assert f"as task {task} has them" in error
        assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_report_finds_demonstrations_of_another_order_again(task: Path, tmp_path: Path) -> None:
    path = written(tmp_path, backwards(experts(NAMES)))
    run = grace_irl.fit(method="random", programs=1, task=task, demos=[path], out=tmp_path / "run")
    with opened(run.folder) as (store, config):
        assert not data.read(config, store.trajectories(), fields=NAMES).trouble
    assert main(["report", str(run.folder), "--demos", path]) == 0


def test_programs_to_begin_with_fit_the_task_and_not_the_demonstrations(task: Path, tmp_path: Path) -> None:
    """The task alone judges."""
    run = grace_irl.fit(method="random", programs=1, task=task, out=tmp_path / "first")
    unnamed = written(tmp_path, experts(()))
    beside = grace_irl.fit(
        method="random", programs=1, task=task, demos=[unnamed], start_from=[run.reward_path], out=tmp_path / "second"
    )
    assert beside.programs >= 1
    refused = r"start_from=.* reads x, velocity, .* and the states of task acrobot have"
    with pytest.raises(InputError, match=refused):
        grace_irl.fit(method="random", task="acrobot", start_from=[run.reward_path], out=tmp_path / "third")
    unnamed_reward = run.reward_path.read_text().replace("fields:", "names:")
    (tmp_path / "unnamed.py").write_text(unnamed_reward)
    with pytest.raises(InputError, match="states of task acrobot"):
        grace_irl.fit(method="random", task="acrobot", start_from=[tmp_path / "unnamed.py"], out=tmp_path / "fourth")


def test_a_run_that_had_demonstrations_in_memory_asks_for_them_again(task: Path, tmp_path: Path) -> None:
    found = experts(NAMES)
    run = grace_irl.fit(method="random", programs=1, task=task, demos=found, out=tmp_path / "run")
    with pytest.raises(InputError, match=r"began with demonstrations in memory; expected them again"):
        grace_irl.fit(resume=run.folder)
    assert grace_irl.fit(resume=run.folder, demos=found).programs == 1
