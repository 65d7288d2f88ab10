"""Demonstrations beside a task: their components have the task's names, in the task's order."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")

import grace_irl
from grace_irl.cli import main
from grace_irl.compare.contest import Contest
from grace_irl.compare.settings import Settings, comparison_of
from grace_irl.demos import save
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError
from grace_irl.methods.registry import method_of
from grace_irl.rl.collect import collect
from grace_irl.runs.config import resolve
from grace_irl.runs.loading import new_labelling
from grace_irl.runs.recording import is_of_task
from grace_irl.tasks.task import read_task
from tests.tasks.poles import TASK

Capture = pytest.CaptureFixture[str]
SMALL = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"
NAMES = ("x", "velocity", "angle", "angular velocity")


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


@pytest.mark.parametrize("found", [backwards(experts(NAMES)), experts(("a", "b", "c", "d"))], ids=["order", "names"])
def test_components_of_other_names_or_in_another_order_are_refused(
    found: Demonstrations, task: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = written(tmp_path, found)
    for words in (["fit", "--method", "random"], ["compare", "--methods", "bc"]):
        assert main([*words, "--task", str(task), "--demos", path, "--out", str(tmp_path / "out")]) == 2
        error = capsys.readouterr().err
        assert f"components {', '.join(found.metadata.fields)}, and task pole has x, velocity, angle, angular" in error
        assert "expected the same in the same order: leave --demos out" in error
        assert not (tmp_path / "out").exists()


def test_demonstrations_of_another_view_are_refused(task: Path) -> None:
    found, made = experts(NAMES), read_task(str(task))
    made.require_alike(found.metadata)
    made.require_alike(replace(found.metadata, view=""))
    assert found.metadata.view
    with pytest.raises(InputError, match=f"demonstrations with view other, and task pole has {found.metadata.view};"):
        made.require_alike(replace(found.metadata, view="other"))


@pytest.mark.parametrize("names", [NAMES, ()], ids=["named", "unnamed"])
def test_components_of_the_tasks_names_or_of_none_pass(names: tuple[str, ...], task: Path, tmp_path: Path) -> None:
    path = written(tmp_path, experts(names))
    config = resolve(flags={"method": "random", "policy.task": str(task), "data.demos": (path,)})
    method_of(config).evaluator(new_labelling(config).problem(), config)
    settings = Settings(comparison_of({"task": str(task), "methods": ("bc",)}), resolve(flags={"data.demos": (path,)}))
    assert Contest.of(settings).problem(0).demonstrations.items


def test_a_task_may_rename_the_components_of_its_environment(tmp_path: Path) -> None:
    """Demonstrations that were collected in the environment have the environment's own names."""
    names = [f"part {number}" for number in range(11)]
    (tmp_path / "hopper.toml").write_text(
        TASK.replace("CartPole-v1", "Hopper-v5").replace(
            '["x", "velocity", "angle", "angular velocity"]', json.dumps(names)
        )
    )
    found = collect("Hopper-v5", "random", 2, "expert", 0)
    assert len(found.metadata.fields) == 11
    path = written(tmp_path, found)
    settings = comparison_of({"task": str(tmp_path / "hopper.toml"), "methods": ("bc",)})
    contest = Contest.of(Settings(settings, resolve(flags={"data.demos": (path,)})))
    assert contest.problem(0).demonstrations.items


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


@pytest.mark.parametrize("rules", [("goal",), ("last", "all")], ids=["goals without marks", "several rules"])
def test_no_label_is_asked_for(rules: tuple[str, ...], task: Path, tmp_path: Path) -> None:
    """A task judges, so labels serve statistics in prompts alone."""
    paths = []
    for rule in rules:
        found = experts(NAMES)
        save(replace(found, metadata=replace(found.metadata, label=rule)), tmp_path / f"{rule}.parquet")
        paths.append(tmp_path / f"{rule}.parquet")
    run = grace_irl.fit(method="random", programs=1, task=task, demos=paths, out=tmp_path / "run")
    assert run.programs == 1
    assert grace_irl.fit(resume=run.folder).programs == 1


def test_the_kind_of_the_states_may_be_named(task: Path, tmp_path: Path) -> None:
    path = written(tmp_path, experts(NAMES))
    words = ["fit", "--method", "random", "--programs", "1", "--task", str(task), "--demos", path, "--kind", "vector"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 0


def test_marks_without_a_goal_state_are_no_goals(task: Path, tmp_path: Path) -> None:
    found = experts(NAMES)
    items = tuple(replace(one, goals=()) for one in found)
    marked = replace(found, items=items, metadata=replace(found.metadata, label="goal"))
    assert grace_irl.fit(method="random", programs=1, task=task, demos=marked, out=tmp_path / "run").programs == 1


def test_searches_in_a_comparison_need_no_label_either(task: Path, tmp_path: Path) -> None:
    for rule in ("goal", "last", "all"):
        found = experts(NAMES)
        save(replace(found, metadata=replace(found.metadata, label=rule)), tmp_path / f"{rule}.parquet")

    def contest(methods: tuple[str, ...], *rules: str) -> Contest:
        data = tuple(str(tmp_path / f"{rule}.parquet") for rule in rules)
        settings = comparison_of({"task": str(task), "methods": methods})
        return Contest.of(Settings(settings, resolve(flags={"data.demos": data})), new=True)

    for rules in (("goal",), ("last", "all")):
        assert not contest(("random", "ppo-true"), *rules).needs_goals
    assert contest(("random", "bc"), "goal").needs_goals
    with pytest.raises(InputError, match="expected one label rule"):
        contest(("random", "bc"), "last", "all")


def test_negatives_alone_are_refused(task: Path, tmp_path: Path, capsys: Capture) -> None:
    words = ["fit", "--method", "random", "--task", str(task), "--negatives", str(tmp_path / "none.parquet")]
    assert main([*words, "--out", str(tmp_path / "run")]) == 2
    assert "negatives alone; expected experts, too" in capsys.readouterr().err
    found = experts(NAMES)
    negatives = replace(found, items=tuple(replace(one, role="negative") for one in found))
    with pytest.raises(InputError, match="negatives alone"):
        grace_irl.fit(method="random", task=task, demos=negatives, out=tmp_path / "run")


def test_a_run_that_began_with_negatives_alone_goes_on(task: Path, tmp_path: Path) -> None:
    """Earlier versions left them out without a word."""
    run = grace_irl.fit(method="random", programs=1, task=task, out=tmp_path / "run")
    config = run.folder / "config.toml"
    config.write_text(config.read_text().replace("negatives = []", 'negatives = ["none.parquet"]'))
    assert "none.parquet" in config.read_text()
    assert grace_irl.fit(resume=run.folder, task=task, negatives=["none.parquet"]).programs == 1


def test_a_replay_without_its_task_is_not_judged_by_the_demonstrations(
    task: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = written(tmp_path, experts(NAMES))
    run = grace_irl.fit(method="random", programs=1, task=task, demos=[path], out=tmp_path / "run")
    assert main(["export", str(run.folder), "--recording", str(tmp_path / "a.jsonl")]) == 0
    for source in (run.folder, tmp_path / "a.jsonl"):
        for more in ([], ["--demos", path, "--held-out", "0"]):
            assert main(["fit", "--replay", str(source), *more, "--out", str(tmp_path / "again")]) == 2
            assert "is of a run with a task; expected --task" in capsys.readouterr().err
    with pytest.raises(InputError, match="is of a run with a task"):
        grace_irl.fit(replay=tmp_path / "a.jsonl", demos=experts(NAMES), held_out=0, out=tmp_path / "again")
    words = ["--replay", str(tmp_path / "a.jsonl"), "--task", str(task), "--demos", path, "--recorded-scores"]
    assert main(["fit", *words, "--out", str(tmp_path / "second")]) == 0
    assert main(["export", str(tmp_path / "second"), "--recording", str(tmp_path / "b.jsonl")]) == 0
    assert is_of_task(tmp_path / "b.jsonl")


def test_the_recording_of_a_run_over_demonstrations_has_no_task(tmp_path: Path) -> None:
    found = grace_irl.fit(
        demos=[SMALL], method="random", programs=1, proposer="drafts", out=tmp_path / "run", target_accuracy=None
    )
    assert main(["export", str(found.folder), "--recording", str(tmp_path / "a.jsonl")]) == 0
    assert not is_of_task(tmp_path / "a.jsonl")
    assert not is_of_task(found.folder)


def test_a_run_that_had_demonstrations_in_memory_asks_for_them_again(task: Path, tmp_path: Path) -> None:
    found = experts(NAMES)
    run = grace_irl.fit(method="random", programs=1, task=task, demos=found, out=tmp_path / "run")
    with pytest.raises(InputError, match=r"began with demonstrations in memory; expected them again"):
        grace_irl.fit(resume=run.folder)
    assert grace_irl.fit(resume=run.folder, demos=found).programs == 1


def test_scrambled_copies_are_refused(task: Path, tmp_path: Path, capsys: Capture) -> None:
    """Their numbers are in another order and of another size than those that the task's programs read."""
    for name, names in (("named", NAMES), ("unnamed", ())):
        path, copy = written(tmp_path, experts(names)), tmp_path / f"{name}.parquet"
        assert main(["demos", "scramble", path, str(copy)]) == 0
        capsys.readouterr()
        words = ["--method", "random", "--task", str(task), "--demos", str(copy), "--out", str(tmp_path / "run")]
        assert main(["fit", *words]) == 2
        error = capsys.readouterr().err
        assert "demonstrations with view scrambled, and task pole has vector; expected the same" in error
