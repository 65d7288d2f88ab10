"""Faults of a task's own parts: its file, its code and its environment. None of them is a program's."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")

import gymnasium

from grace_irl.cli import main
from grace_irl.errors import InputError
from grace_irl.methods.trained import TASK_FILE, resumes
from grace_irl.rl.curve import Point, to_json
from grace_irl.rl.environments import registration
from grace_irl.rl.evaluation import Rollout
from grace_irl.runs.config import resolve
from grace_irl.runs.run import opened
from grace_irl.tasks.environment import TaskEnvironment
from grace_irl.tasks.random_episodes import RANDOM_FILE, kept_random_score, random_episodes
from grace_irl.tasks.recorded import changes
from grace_irl.tasks.task import Task, read_task
from grace_irl.tasks.training import RESULT, REWARD, TRAININGS, result_of
from tests.tasks.test_policy_evaluator import TASK, UP, judged
from tests.tasks.test_task import WHOLE, written

OWN = '''
from pathlib import Path

import gymnasium


class Late(gymnasium.Wrapper):
    """A pole whose simulator is gone after some steps, while a file says so."""

    steps = 0

    def step(self, action):
        self.steps += 1
        if self.steps > 100 and Path(__file__).with_name("broken").exists():
            raise RuntimeError("license\\nlost")
        return super().step(action)


def make():
    return Late(gymnasium.make("CartPole-v1"))


def length(rollout):
    return float(rollout.length)
'''
SMALL = "[training]\nsteps = 128\nevaluations = 2\nepisodes = 2\n[ppo]\nn_envs = 2\nn_steps = 32\n"
Capture = pytest.CaptureFixture[str]


SCORED = to_json([Point(1, 1, 0.0, 0.0, None, 1.0, {}, score=1.5)])


def own_task(folder: Path, env: str = "own.py:make", score: str = "own.py:length") -> Path:
    (folder / "own.py").write_text(OWN)
    path = folder / "own.toml"
    path.write_text(f'env = "{env}"\ntext = "Balance."\nscore = "{score}"\n{SMALL}')
    return path


def test_an_environment_that_fails_in_training_is_not_the_programs_fault(tmp_path: Path) -> None:
    own_task(tmp_path)
    task = replace(TASK, env=f"{tmp_path / 'own.py'}:make")
    (tmp_path / "broken").touch()
    with pytest.raises(
        InputError, match=r"RuntimeError: license lost \(own.py, line \d+\); expected one .* begin a new run\)$"
    ):
        judged(tmp_path / "run", UP, task)
    (tmp_path / "broken").unlink()
    assert judged(tmp_path / "run", UP, task).valid


def interrupted(folder: Path) -> tuple[Task, bytes]:
    """A task whose environment is in `folder / "here"`, and the checkpoint of a training that its fault has ended."""
    here = folder / "here"
    here.mkdir()
    own_task(here)
    task = replace(TASK, env=f"{here / 'own.py'}:make")
    (here / "broken").touch()
    with pytest.raises(InputError, match="license lost"):
        judged(folder / "run", UP, task)
    (here / "broken").unlink()
    return task, checkpoint(folder)


def checkpoint(folder: Path) -> bytes:
    (path,) = (folder / "run" / TRAININGS).glob("*/full-0/training.pt")
    return path.read_bytes()


def test_a_training_goes_on_with_other_comments_in_its_program(tmp_path: Path) -> None:
    task, before = interrupted(tmp_path)
    assert judged(tmp_path / "run", UP.replace("class", "# Another thought.\nclass"), task).valid
    assert checkpoint(tmp_path) != before


def test_a_training_whose_program_was_edited_is_refused(tmp_path: Path) -> None:
    task, _ = interrupted(tmp_path)
    (kept,) = (tmp_path / "run" / TRAININGS).glob(f"*/full-0/{REWARD}")
    kept.write_text(kept.read_text().replace("return", "return 2.0 *"))
    with pytest.raises(InputError, match=r"reward.py: another program than that of this training; expected it unch"):
        judged(tmp_path / "run", UP, task)
    kept.unlink()
    assert judged(tmp_path / "run", UP, task).valid


def test_a_training_goes_on_after_its_task_has_moved(tmp_path: Path) -> None:
    task, before = interrupted(tmp_path)
    (tmp_path / "here").rename(tmp_path / "there")
    moved = replace(task, env=task.env.replace("here", "there"))
    assert judged(tmp_path / "run", UP, moved).valid
    assert checkpoint(tmp_path) != before


def test_an_environment_that_fails_before_a_training_is_named(tmp_path: Path, capsys: Capture) -> None:
    path = own_task(tmp_path)
    (tmp_path / "own.py").write_text(OWN.replace("self.steps > 100", "self.steps > 5"))
    (tmp_path / "broken").touch()
    assert main(["fit", "--method", "random", "--task", str(path), "--out", str(tmp_path / "run")]) == 2
    line = next(number for number, text in enumerate(OWN.splitlines(), 1) if "raise " in text)
    error = capsys.readouterr().err
    assert f"task own: its environment fails: RuntimeError: license lost (own.py, line {line}); expected" in error


def test_an_environment_without_an_end_is_named(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grace_irl.tasks.environment.ENDLESS", 20)
    (tmp_path / "own.py").write_text(OWN.replace('make("CartPole-v1")', 'make("Pendulum-v1")'))
    path = tmp_path / "own.toml"
    path.write_text(f'env = "own.py:make"\ntext = "Swing."\nscore = "own.py:length"\n{SMALL}')
    assert main(["fit", "--method", "random", "--task", str(path), "--out", str(tmp_path / "run")]) == 2
    assert "task own: an episode has not ended after 20 steps; expected" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


STEPS = {
    "a reward of None": ("(*found[:1], None, *found[2:])", "TypeError"),
    "a reward of nan": ("(*found[:1], float('nan'), *found[2:])", "ValueError: a step is paid nan"),
    "four parts": ("found[:4]", "ValueError"),
    "no info": ("(*found[:4], None)", "TypeError: info is NoneType, expected a dict"),
    "success in words": ("(*found[:4], {'is_success': 'no'})", "TypeError: info['is_success'] is str"),
}


@pytest.mark.parametrize(("step", "said"), STEPS.values(), ids=STEPS.keys())
def test_a_step_of_another_form_is_named(step: str, said: str, tmp_path: Path, capsys: Capture) -> None:
    path = own_task(tmp_path)
    changed = OWN.replace("return super().step(action)", f"found = super().step(action)\n        return {step}")
    (tmp_path / "own.py").write_text(changed)
    assert main(["fit", "--method", "random", "--task", str(path), "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert f"task own: its environment fails: {said}" in error
    assert "line" not in error  # the environment raises no error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_digests_of_code_have_no_order() -> None:
    """Older versions stored them in the order of the files' paths."""
    assert changes({"code": ["b", "a"], "fields": ["x"]}, {"code": ["a", "b"], "fields": ["x"]}) == []
    assert changes({"code": ["b"], "fields": ["x", "y"]}, {"code": ["a"], "fields": ["y", "x"]}) == ["code", "fields"]


def test_an_environment_may_tell_of_episodes_what_it_likes(tmp_path: Path) -> None:
    """Stable-Baselines3 expects its own dict there."""
    own_task(tmp_path)
    counted = "found = super().step(action)\n        return (*found[:4], {'episode': self.steps})"
    (tmp_path / "own.py").write_text(OWN.replace("return super().step(action)", counted))
    task = replace(TASK, env=f"{tmp_path / 'own.py'}:make", score="info:episode")
    assert judged(tmp_path / "run", UP, task).score > 1


@pytest.mark.parametrize("told", [None, True, np.bool_(0), np.array(False), 1])
def test_success_may_be_told_in_several_forms(told: Any) -> None:
    environment, _ = Task("own", "CartPole-v1", "Balance.", "info:x").make()
    environment.reset(seed=0)
    step = environment.env.step
    environment.env.step = lambda action: (*step(action)[:4], {"is_success": told, "success": told})
    assert environment.step(0)[4]["success"] is told


def test_a_policy_that_lives_on_without_a_time_limit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random actions end CartPole's episodes, and a trained policy may not."""
    monkeypatch.setattr("grace_irl.tasks.environment.ENDLESS", 3)
    environment, _ = Task("own", "CartPole-v1", "Balance.", "info:x").make()
    for _ in range(2):
        environment.reset(seed=0)
        for step in range(3):
            environment.step(step % 2)
    with pytest.raises(InputError, match="task own: an episode has not ended after 3 steps"):
        environment.step(0)


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"score": NaN, "episodes": 3}', '{"score": 1.0, "episodes": -3}', "[]"]
)
def test_a_damaged_score_of_random_actions_is_played_again(text: str, tmp_path: Path) -> None:
    (tmp_path / RANDOM_FILE).write_text(text)
    score, played = kept_random_score(replace(TASK, max_steps=20), 0, tmp_path)
    assert 0 < score <= 20
    assert played > 0
    assert kept_random_score(TASK, 0, tmp_path) == (score, played)


@pytest.mark.parametrize("curve", ["[]", SCORED.replace("1.5", "null"), SCORED.replace("1.5", "NaN")], ids=len)
def test_a_damaged_training_is_refused_in_one_line(curve: str, tmp_path: Path) -> None:
    (tmp_path / RESULT).write_text(SCORED)
    assert len(result_of(tmp_path) or ()) == 1
    (tmp_path / RESULT).write_text(curve)
    with pytest.raises(InputError, match=r"damaged .*delete its folder"):
        result_of(tmp_path)


@pytest.mark.parametrize("text", [b"\xff\xfe", b"[" * 200_000, b"[]", b"{"], ids=len)
def test_a_damaged_task_of_a_run_is_another_task(text: bytes, tmp_path: Path) -> None:
    (tmp_path / TASK_FILE).write_bytes(text)
    config = resolve(flags={"method": "random", "policy.task": str(own_task(tmp_path))})
    with pytest.raises(InputError, match=r"not as it was when the run began \(different: all"):
        resumes(config, tmp_path)


@pytest.mark.slow
def test_a_task_may_move_and_its_code_may_not_change(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "here").mkdir()
    run, path = tmp_path / "run", own_task(tmp_path / "here")
    assert main(["fit", "--method", "random", "--task", str(path), "--programs", "1", "--out", str(run)]) == 0
    (tmp_path / "here").rename(tmp_path / "there")
    moved = tmp_path / "there" / path.name
    more = ["fit", "--resume", str(run), "--task", str(moved)]
    assert main([*more, "--programs", "2"]) == 0
    with opened(run) as (store, _):
        assert len(store.records()) == 2
    (tmp_path / "there" / "own.py").write_text(OWN.replace("float(", "2 * float("))
    capsys.readouterr()
    assert main(more) == 2
    assert "not as it was when the run began (different: code)" in capsys.readouterr().err


def test_code_in_a_module_counts_as_code_in_a_file_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = own_task(tmp_path, "own_pole:make", "own_pole:length")
    (tmp_path / "own.py").rename(tmp_path / "own_pole.py")
    monkeypatch.syspath_prepend(tmp_path)
    before = read_task(str(path))
    assert [*before.modules] == ["own_pole"]
    assert not before.code
    digest, content = before.digest, json.loads(before.content)
    older = {name: each for name, each in content.items() if name != "modules"}  # as earlier versions wrote it
    (tmp_path / "own_pole.py").write_text(OWN.replace("float(", "2 * float("))
    assert read_task(str(path)).digest != digest
    assert "own_pole" not in sys.modules  # to name code is not to run it
    now = json.loads(read_task(str(path)).content)
    assert changes(content, now) == ["modules"]
    assert changes(older, now) == []
    assert not read_task("reacher").modules


def test_code_that_this_process_alone_finds_reaches_a_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(gymnasium, "registry", dict(gymnasium.registry))
    monkeypatch.setattr("gymnasium.envs.registration.registry", gymnasium.registry)
    gymnasium.register("Pole-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=30)
    task = replace(TASK, env="Pole-v0", score="only_here:length", steps=64, evaluations=1)
    assert 0 < judged(tmp_path / "run", UP, task).score <= 30


def test_an_environment_that_no_training_can_make_is_refused_at_once(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gymnasium, "registry", dict(gymnasium.registry))
    monkeypatch.setattr("gymnasium.envs.registration.registry", gymnasium.registry)
    gymnasium.register("Pole-v0", entry_point=lambda: gymnasium.make("CartPole-v1"))  # type: ignore[arg-type,return-value]
    path = own_task(tmp_path, "Pole-v0")
    assert main(["fit", "--method", "random", "--task", str(path), "--out", str(tmp_path / "run")]) == 2
    assert "Pole-v0: registered with a function of this process" in capsys.readouterr().err
    assert not (tmp_path / "run" / "trainings").exists()
    gymnasium.register("Mine-v0", entry_point="__main__:Mine")
    with pytest.raises(InputError, match="Mine-v0: registered with __main__"):
        registration("Mine-v0")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WHOLE + "[short]\nfloor = 0.5\n", "floor = 0.5; expected steps and a finite floor"),
        (WHOLE + "[short]\nsteps = 100\n", "steps = 100; expected steps and a finite floor"),
        (WHOLE + "[short]\nsteps = 100\nfloor = nan\n", "floor = nan; expected steps and a finite floor"),
        (WHOLE + 'fields = ["x", "v", "x", "w"]\n', "fields has 'x' 2 times; expected names that differ"),
        (WHOLE.replace("CartPole-v1", "own.py:make") + "[options]\nspeed = 3\n", "a function of yours"),
        (WHOLE.replace("tests.tasks.scores:length", ":length"), "expected info:KEY, package.module:function"),
        (WHOLE.replace("tests.tasks.scores:length", "info:"), "expected info:KEY, package.module:function"),
    ],
)
def test_what_would_have_no_effect_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as found:
        read_task(written(tmp_path, text))
    assert said in str(found.value)


def test_a_floor_may_be_a_whole_number(tmp_path: Path) -> None:
    assert read_task(written(tmp_path, WHOLE + "[short]\nsteps = 100\nfloor = 2\n")).floor == 2.0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("gamma = 2.0", "a number above 0 and at most 1"),
        ("gae_lambda = 7.0", "at least 0 and at most 1"),
        ("ent_coef = -5.0", "at least 0"),
        ("learning_rate = nan", "a number above 0"),
        ("n_envs = 0", "at least 1"),
        ('n_envs = "4"', "a number"),
        ("norm_reward = 1", "true or false"),
        ("log_std_init = inf", "a finite number"),
        ("batch_size = 1", "at least 2"),
        ("net_arch = [8, -4]", "layers of at least 1"),
    ],
)
def test_settings_of_ppo_have_ranges(line: str, said: str, tmp_path: Path) -> None:
    task = read_task(written(tmp_path, f"{WHOLE}[ppo]\n{line}\n"))
    with pytest.raises(InputError) as found:
        assert task.settings
    assert f"[ppo] {line.split(' = ')[0]} = " in str(found.value)
    assert f"expected {said}" in str(found.value)


def test_a_rollout_of_one_step_has_nothing_to_normalise(tmp_path: Path) -> None:
    task = read_task(written(tmp_path, f"{WHOLE}[ppo]\nn_envs = 1\nn_steps = 1\n"))
    with pytest.raises(InputError, match=r"\[ppo\] n_envs \* n_steps = 1; expected at least 2"):
        assert task.settings


def test_a_goal_that_an_environment_does_not_have_is_no_score() -> None:
    task = replace(TASK, score="grace_irl.tasks.scores:success")
    episode = random_episodes(task, 1)[0]
    with pytest.raises(InputError, match=r"info has neither 'is_success' nor 'success' .*expected a finite number"):
        task.scorer()(Rollout(episode, 0.0))
    assert [task.scorer()(Rollout(episode, 0.0, success=each)) for each in (True, False)] == [1.0, 0.0]


def test_an_environment_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def make(name):\n    pass\n", encoding="utf-8")
    for task in (replace(TASK, env=f"{tmp_path / 'own.py'}:make"), replace(TASK, options={"speed": 3})):
        with pytest.raises(InputError, match="; expected ") as found:
            task.make()
        assert ("[options]" in str(found.value)) is bool(task.options)


def test_episodes_of_a_wrapped_environment_are_those_of_its_own(tmp_path: Path) -> None:
    own_task(tmp_path)
    one, other = (random_episodes(replace(TASK, env=env), 2) for env in ("CartPole-v1", f"{tmp_path / 'own.py'}:make"))
    assert [each.digest for each in one] == [each.digest for each in other]


def test_views_see_what_the_environment_has_and_a_diverged_policy_is_its_rewards_fault(tmp_path: Path) -> None:
    class Box(gymnasium.Env[Any, Any]):
        observation_space = action_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
        place = 7

        def step(self, action: Any) -> Any:
            raise OverflowError("too far")

    environment = TaskEnvironment(Box(), "boxes")
    assert environment.place == 7
    with pytest.raises(AttributeError):
        _ = environment.elsewhere
    with pytest.raises(InputError, match="task boxes: its environment fails: OverflowError: too far"):
        environment.step(np.array([3.0]))
    for action in (1e9, np.nan, -np.inf):
        with pytest.raises(OverflowError):
            environment.step(np.array([action]))


def test_a_task_alone_names_its_environment(tmp_path: Path, capsys: Capture) -> None:
    words = ["fit", "--method", "random", "--task", "reacher", "--out", str(tmp_path / "run")]
    assert main([*words, "--env", "Reacher-v5"]) == 2
    assert capsys.readouterr().err.startswith("grace-irl: --env with --task; expected --task alone, which names the")
