"""The evaluator that trains policies: scores, cascade, components, failures, limits, and going on."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")

from grace_irl.demos.labels import Problem
from grace_irl.errors import InputError, SandboxError
from grace_irl.evaluate.evaluation import Evaluation, Evaluator
from grace_irl.evaluate.rewards import MemoryCache
from grace_irl.methods.map_elites import niche_of
from grace_irl.methods.policy_account import PolicyAccount, panels
from grace_irl.propose.material import Workbench
from grace_irl.rewards.runner import SandboxedRunner
from grace_irl.rl.curve import Point, from_json
from grace_irl.sandbox import open_sandbox
from grace_irl.sandbox.protocol import Limits
from grace_irl.search.ranks import Scored
from grace_irl.tasks.policy_evaluator import PolicyEvaluator, PolicySettings, components
from grace_irl.tasks.random_episodes import random_episodes
from grace_irl.tasks.task import Task
from grace_irl.tasks.training import TRAININGS
from grace_irl.testing.evaluators import EvaluatorSuite, program

TASK = Task(
    "tiny",
    "CartPole-v1",
    "Balance a pole.",
    "tests.tasks.scores:length",
    steps=256,
    evaluations=2,
    episodes=4,
    ppo={"n_envs": 2, "n_steps": 32},
)
UP = """
class Reward:
    def reward_fn(self, state, action, next_state):
        self.up = 1.0 - abs(float(next_state[2]))
        return self.up - 0.001 * abs(float(next_state[0]))

    def terms_fn(self, state):
        return {"up": self.up, "tiny": 0.00004}
"""
FAILS_LATER = """
class Reward:
    def reward_fn(self, state, action, next_state):
        if abs(float(next_state[0])) > 0.35:
            raise ValueError("too far")
        return 1.0
"""
SLOW = """
class Reward:
    def reward_fn(self, state, action, next_state):
        return float(sum(range(20000)))
"""


@contextmanager
def opened(folder: Path, task: Task = TASK, limits: Limits = Limits(), **settings: object) -> Iterator[PolicyEvaluator]:
    with open_sandbox(workers=1) as sandbox:
        problem = Problem(task.metadata, "all", ())
        bench = Workbench(problem, sandbox, limits=limits, rewards=MemoryCache(), folder=folder)
        found = PolicyEvaluator(task, bench, PolicySettings(**settings), random_episodes(task, 3), 20.0)  # type: ignore[arg-type]
        try:
            yield found
        finally:
            found.close()


def judged(folder: Path, source: str, task: Task = TASK, limits: Limits = Limits(), **settings: object) -> Evaluation:
    with opened(folder, task, limits, **settings) as evaluator:
        return evaluator.evaluate([program(source)])[0]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Evaluation]:
    folder = tmp_path_factory.mktemp("up")
    return folder, judged(folder, UP, seeds=2)


def test_a_score_is_that_of_the_best_evaluation_of_each_training(up: tuple[Path, Evaluation]) -> None:
    folder, found = up
    assert found.valid
    runs = found.evidence["policy"]["runs"]
    scores = [[point["score"] for point in run["curve"]] for run in runs]
    assert [len(each) for each in scores] == [2, 2]
    assert found.score == found.metrics["best"] == pytest.approx(sum(max(each) for each in scores) / 2)
    assert found.metrics["last"] == pytest.approx(sum(each[-1] for each in scores) / 2)
    assert found.metrics["steps"] == 2 * 256
    bests = [run["curve"][int(np.argmax(each))] for run, each in zip(runs, scores, strict=True)]
    assert found.metrics["length"] == pytest.approx(np.mean([point["length"] for point in bests]))
    assert found.metrics["return"] == pytest.approx(np.mean([point["mean"] for point in bests]))
    assert runs[0]["seed"] != runs[1]["seed"]
    assert len(list((folder / TRAININGS).glob("*/full-*/result.json"))) == 2
    json.dumps(found.evidence)


def test_the_docstring_of_a_program_is_free_text(tmp_path: Path) -> None:
    """In an exported file such lines are facts about the states that the reward reads."""
    said = '"""Balance.\n\nparts: a term of distance, and one of effort\nfields: distance to 0\nactions: (7,)\n"""\n'
    found = judged(tmp_path, said + UP)
    assert (found.status, found.message) == ("ok", "")


SWITCHES = """
import gymnasium
import numpy as np


class Switches(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (3,), np.float32)
    action_space = gymnasium.spaces.MultiBinary(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.lamps = np.zeros(3, np.int8)
        return self.lamps.astype(np.float32), {}

    def step(self, action):
        self.lamps = self.lamps ^ action
        return self.lamps.astype(np.float32), 0.0, False, False, {}


make = Switches
"""


def test_actions_reach_the_environment_in_the_type_of_its_space(tmp_path: Path) -> None:
    (tmp_path / "switches.py").write_text(SWITCHES)
    made = f"{tmp_path / 'switches.py'}:make"
    task = replace(TASK, env=made, score="tests.tasks.scores:whole", text="Switch lamps on.", max_steps=8)
    found = judged(
        tmp_path / "run", "class Reward:\n    def reward_fn(self, state):\n        return state.sum()\n", task
    )
    assert (found.status, found.score) == ("ok", 8.0)


def test_components_have_their_course(up: tuple[Path, Evaluation]) -> None:
    parts = up[1].evidence["components"]
    assert set(parts) == {"up", "tiny"}
    assert parts["tiny"]["values"] == pytest.approx([0.00004] * 2)
    assert 0.8 < parts["up"]["min"] <= parts["up"]["mean"] <= parts["up"]["max"] <= 1.0


def test_a_finished_training_is_not_repeated(up: tuple[Path, Evaluation]) -> None:
    folder, found = up
    results = sorted((folder / TRAININGS).glob("*/full-*/result.json"))
    curve = [replace(point, score=(point.score or 0.0) + 1000.0) for point in from_json(results[0].read_text())]
    before = results[0].read_text()
    try:
        results[0].write_text(json.dumps([vars(point) for point in curve]))
        again = judged(folder, UP, seeds=2)
    finally:
        results[0].write_text(before)
    assert again.score == pytest.approx(found.score + 500.0)
    assert replace(judged(folder, UP, seeds=2), seconds=0.0) == replace(found, seconds=0.0)


def test_the_last_evaluation_counts_if_asked(up: tuple[Path, Evaluation]) -> None:
    found = judged(up[0], UP, seeds=2, checkpoint="last")
    assert found.score == found.metrics["last"] == up[1].metrics["last"]
    account, settings = PolicyAccount(), {"policy.task": "tiny", "policy.checkpoint": "last"}
    said = dict(account.facts(found, settings))["score"]
    assert "(last evaluation of each of 2 trainings of 256 steps; their mean)" in said
    assert "(last evaluation, mean of 2 trainings in the search; random actions: 20)" in account.verdict(found)
    assert "(best evaluation, mean of 2 trainings in the search; random actions: 20)" in account.verdict(up[1])


def test_the_share_of_episodes_that_reach_a_goal_is_kept(tmp_path: Path) -> None:
    task = replace(TASK, env="MiniGrid-Empty-5x5-v0", score="grace_irl.tasks.scores:success", steps=64, evaluations=1)
    source = "class Reward:\n    def reward_fn(self, state, action, next_state):\n        return 0.0\n"
    found = judged(tmp_path, source, task)
    (point,) = found.evidence["policy"]["runs"][0]["curve"]
    assert found.metrics["success"] == found.score == point["success"] == point["score"]
    assert "success" not in judged(tmp_path / "none", UP, replace(TASK, steps=64, evaluations=1)).metrics


def test_a_training_that_dies_is_that_programs_failure(tmp_path: Path) -> None:
    found = judged(tmp_path, UP, replace(TASK, score="tests.tasks.scores:dies"))
    assert (found.status, found.valid) == ("killed", False)
    assert found.message.startswith("its training ended: ")
    assert "\n" not in found.message


def test_what_fails_in_a_dry_run_is_not_trained(tmp_path: Path) -> None:
    found = judged(
        tmp_path, "class Reward:\n    def reward_fn(self, state, action, next_state):\n        return 1 / 0\n"
    )
    assert (found.status, found.valid) == ("runtime", False)
    assert "ZeroDivisionError" in found.traceback
    assert not (tmp_path / TRAININGS).exists()


def test_a_task_may_show_states_alone(tmp_path: Path) -> None:
    found = judged(tmp_path, UP, replace(TASK, sees="state"))
    assert (found.status, found.message.startswith("the task shows programs states only")) == ("contract", True)


def test_what_fails_in_training_is_that_programs_failure(tmp_path: Path) -> None:
    found = judged(tmp_path, FAILS_LATER, replace(TASK, steps=4096))
    assert found.status == "runtime"
    assert "too far" in found.message
    assert "\n" not in found.message


@pytest.mark.slow
def test_a_module_that_a_worker_lacks_is_not_the_programs_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks = "raise ModuleNotFoundError(\"No module named 'stable_baselines3'\", name='stable_baselines3')"
    (tmp_path / "lacks").mkdir()
    (tmp_path / "lacks" / "stable_baselines3.py").write_text(lacks)
    with opened(tmp_path / "run") as evaluator:
        with monkeypatch.context() as patch:
            patch.setenv("PYTHONPATH", str(tmp_path / "lacks"))
            with pytest.raises(InputError, match=r"stable_baselines3 cannot be imported on .*; expected the same inst"):
                evaluator.evaluate([program(UP)])
        assert evaluator.evaluate([program(UP)])[0].valid


def test_a_training_ends_at_its_limit(tmp_path: Path) -> None:
    before = set(psutil.Process().children(recursive=True))
    with opened(tmp_path, replace(TASK, steps=10**7), limit=4.0) as evaluator:
        (found,) = evaluator.evaluate([program(SLOW)])
        assert found.status == "timeout"
        assert "more than 4 seconds" in found.message
        assert evaluator.evaluate([program(SLOW.replace("20000", "20001"))])[0].status == "timeout"
    _, alive = psutil.wait_procs([each for each in psutil.Process().children(recursive=True) if each not in before], 5)
    assert not alive  # neither the training nor its sandbox


def test_the_memory_of_a_run_is_that_of_its_trainings(tmp_path: Path) -> None:
    large = UP.replace("    def reward_fn", "    table = np.empty(70_000_000)\n\n    def reward_fn")
    task = replace(TASK, steps=64, evaluations=1)
    found = judged(tmp_path, f"import numpy as np\n{large}", task, Limits(memory_mb=16384))
    assert found.valid, found.message


def test_a_short_training_with_a_floor_saves_the_full_one(tmp_path: Path) -> None:
    task = replace(TASK, short_steps=128, floor=400.0)
    found = judged(tmp_path, UP, task)
    assert found.valid
    assert "below 400" in found.message
    assert found.score == found.evidence["policy"]["short"][-1]["score"] < 400
    assert found.metrics["steps"] == 128
    assert niche_of(Scored(program(UP), found, 0), 5)[1] == 1  # the column of two components
    assert [each.name for each in (tmp_path / TRAININGS).glob("*/*")] == ["short-0"]
    account, settings = PolicyAccount(), {"policy.task": "/home/someone/mine/line.toml", "policy.checkpoint": "best"}
    assert "below 400" in account.verdict(found)
    (training, _) = panels(Scored(program(UP), found, 0), ())
    _, curves, table = training.parts
    assert [row[0] for row in table.rows] == ["short training"]  # type: ignore[union-attr]
    assert curves.lines == (("short training", ((128.0, found.score),)),)  # type: ignore[union-attr]
    known = dict(account.facts(found, settings))
    assert known["task"] == "mine/line.toml"
    assert "no full training: score" in known["score"]
    low = judged(tmp_path, UP, replace(task, floor=1.0))
    assert "(best evaluation of its training of 256 steps)" in dict(account.facts(low, settings))["score"]
    assert low.score == low.metrics["best"]
    assert low.metrics["steps"] == 128 + 256


@pytest.mark.parametrize(("floor", "full"), [(1.0, True), (math.nextafter(1.0, 2.0), False)])
def test_a_score_at_the_floor_reaches_it(floor: float, full: bool, tmp_path: Path) -> None:
    task = replace(TASK, score="tests.tasks.scores:constant", short_steps=64, steps=128, floor=floor)
    assert judged(tmp_path, UP, task).metrics["steps"] == 64 + 128 * full


def test_a_score_that_fails_is_not_the_programs_fault(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="its score fails"):
        judged(tmp_path, UP, replace(TASK, score="tests.tasks.scores:raises"))


TERMS = """
class Reward:
    steps = 0

    def reward_fn(self, state, action, next_state):
        self.steps += 1
        return 1.0

    def terms_fn(self, state):
        return {{"a": {value}}}
"""


@pytest.mark.parametrize("value", ["1.0 / (self.steps < 4)", "float('nan') if self.steps == 3 else 0.0"])
def test_components_that_fail_are_found_before_a_training(value: str, tmp_path: Path) -> None:
    found = judged(tmp_path, TERMS.format(value=value))
    assert found.status == "runtime"
    assert str(tmp_path) not in found.message
    assert "reward.py" not in found.message
    assert not (tmp_path / TRAININGS).exists()


@pytest.mark.slow
def test_the_wait_for_a_worker_is_no_training_time(tmp_path: Path) -> None:
    """Four programs, one worker: the last one waits for three trainings, which together take longer than the limit."""
    task = replace(TASK, steps=1024)
    with opened(tmp_path / "alone", task) as evaluator:
        alone = evaluator.evaluate([program(UP)])[0].seconds
    with opened(tmp_path / "queue", task, limit=2.5 * alone) as evaluator, ThreadPoolExecutor(4) as threads:
        sources = [UP.replace("0.001", f"0.00{number}") for number in range(2, 6)]
        found = list(threads.map(lambda source: evaluator.evaluate([program(source)])[0], sources))
    assert [each.status for each in found] == ["ok"] * 4


def test_a_policy_is_evaluated_only_after_new_steps(tmp_path: Path) -> None:
    found = judged(tmp_path, UP, replace(TASK, steps=100, evaluations=10))
    steps = [point["steps"] for point in found.evidence["policy"]["runs"][0]["curve"]]
    assert steps == [64, 128]


def test_components_of_unequal_trainings() -> None:
    one = [Point(1, 1, 0.0, 0.0, None, 1.0, {}, terms={"a": float(n)}) for n in range(30)]
    other = [replace(point, terms={"a": point.terms["a"] + 2, "b": 0.0}) for point in one[:20]]
    found = components([one, other])
    assert set(found) == {"a", "b"}
    assert found["b"]["values"] == [0.0] * 10
    assert len(found["a"]["values"]) == 10
    assert (found["a"]["min"], found["a"]["max"]) == (1.0, 20.0)


class TestPolicyEvaluator(EvaluatorSuite):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> Iterator[None]:
        self.folder = tmp_path
        with open_sandbox(workers=1) as self.sandbox:
            yield

    def make(self) -> Evaluator:
        task = replace(TASK, steps=64, evaluations=1, episodes=2)
        problem = Problem(task.metadata, "all", ())
        bench = Workbench(problem, self.sandbox, folder=self.folder, rewards=MemoryCache())
        return PolicyEvaluator(task, bench, PolicySettings(), random_episodes(task, 2), 20.0)


def test_a_sandbox_that_does_not_start_is_no_failure_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second dry run, step by step, opens a sandbox of its own."""

    def broken(*_: object) -> None:
        raise SandboxError("the sandbox did not start: no memory")

    with opened(tmp_path) as evaluator:
        monkeypatch.setattr(SandboxedRunner, "turn", broken)
        with pytest.raises(SandboxError, match="did not start"):
            evaluator.evaluate([program(UP)])
