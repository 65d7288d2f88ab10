"""Collected demonstrations: what is kept, what is dropped and said, and the same again by the same seed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("minigrid")

import gymnasium
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Text

from grace_irl.demos import load
from grace_irl.errors import GraceError, InputError
from grace_irl.rl.actions import uniform_log_prob
from grace_irl.rl.collect import EpisodeTally, collect
from grace_irl.rl.recipe import read_recipe, run_recipe
from tests.demos.equality import assert_same

GO_TO_OBJ = "BabyAI-GoToObj-v0"
SHIPPED = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"


def test_experts_reach_the_goal() -> None:
    experts = collect(GO_TO_OBJ, "bot", 5, "expert", seed=3)
    assert len(experts) == 5
    for item in experts:
        trajectory = item.trajectory
        assert item.role == "expert"
        assert item.task == GO_TO_OBJ
        assert trajectory.terminated
        assert trajectory.rewards is not None
        assert trajectory.rewards[-1] > 0
        assert (trajectory.rewards[:-1] == 0).all()
        assert trajectory.extra_info.startswith("go to the ")
        assert trajectory.states.shape == (trajectory.num_steps + 1, 8, 8, 3)
    assert (experts.metadata.label, experts.metadata.view) == ("last", "minigrid-full")


def test_negatives_that_succeed_are_dropped_and_counted() -> None:
    tally, kept = EpisodeTally(), EpisodeTally()
    dropped = collect(GO_TO_OBJ, "random", 12, "negative", seed=0, tally=tally)
    everything = collect(GO_TO_OBJ, "random", 12, "negative", seed=0, tally=kept, keep_successes=True)
    assert not any(d.trajectory.terminated for d in dropped)
    assert tally.dropped_successes > 0
    assert kept.dropped_successes == 0
    assert any(d.trajectory.terminated for d in everything)
    failures = [d.trajectory.digest for d in everything if not d.trajectory.terminated]
    assert failures == [d.trajectory.digest for d in dropped][: len(failures)]
    (line,) = tally.lines()
    assert line.startswith(f"{tally.dropped_successes} episodes reached the goal")
    assert "--keep-successes" in line


LINE = """
import gymnasium


class Line(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-9, 9, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.steps = 0.0, 0
        return self.seen(), {}

    def seen(self):
        return self.observation_space.low * 0 + self.x

    def step(self, action):
        self.x, self.steps = self.x + 2 * action - 1, self.steps + 1
        reached = self.x > 1
        return self.seen(), 0.0, False, self.steps == 4, {"is_success": reached} if KNOWN or reached else {}


def make():
    return Line()
"""


@pytest.mark.parametrize("known", [True, False])
def test_an_environment_may_tell_by_info_that_its_goal_is_reached(known: bool, tmp_path: Path) -> None:
    """If it tells in no step whether the goal is missed, an expert's episode is kept."""
    (tmp_path / "line.py").write_text(f"KNOWN = {known}\n{LINE}")
    of_negatives, of_experts = EpisodeTally(), EpisodeTally()
    place = f"{tmp_path / 'line.py'}:make"
    negatives = collect(place, "random", 8, "negative", tally=of_negatives)
    experts = collect(place, "random", 8, "expert", tally=of_experts)
    assert max(item.trajectory.states[-1, 0] for item in negatives) <= 1
    assert of_negatives.dropped_successes > 0
    assert bool(min(item.trajectory.states[-1, 0] for item in experts) > 1) is known
    assert bool(of_experts.failures["goal not reached"]) is known


def test_random_log_probs() -> None:
    (grid,) = collect(GO_TO_OBJ, "random", 1, "negative", max_steps=5)
    np.testing.assert_allclose(grid.trajectory.log_probs, [-math.log(7)] * 5)
    assert grid.trajectory.truncated


def test_random_log_densities() -> None:
    pytest.importorskip("mujoco")
    (hopper,) = collect("Hopper-v5", "random", 1, "negative")
    np.testing.assert_allclose(hopper.trajectory.log_probs, -3 * math.log(2))  # three actions in [-1, 1]
    assert hopper.trajectory.actions.shape == (hopper.trajectory.num_steps, 3)


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (Discrete(5, start=2), -math.log(5)),
        (MultiDiscrete([3, 4]), -math.log(12)),
        (MultiBinary(4), -4 * math.log(2)),
        (MultiBinary([2, 2]), -4 * math.log(2)),
        (Box(-np.inf, 1), None),
        (Text(3), None),
    ],
)
def test_the_log_probability_of_a_uniform_action(space: Any, expected: float | None) -> None:
    assert uniform_log_prob(space) == (expected if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("policy", ["bot", "random"])
def test_the_same_seed_gives_the_same_set(policy: str) -> None:
    one, two = (collect(GO_TO_OBJ, policy, 3, "negative", seed=9, keep_successes=True) for _ in range(2))
    assert_same(one, two)
    other = collect(GO_TO_OBJ, policy, 3, "negative", seed=10, keep_successes=True)
    assert {d.trajectory.digest for d in one}.isdisjoint(d.trajectory.digest for d in other)


def test_the_bot_has_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bot that never answers is stopped, and the set is given up with what happened."""
    from minigrid.utils import baby_ai_bot

    def hang(*_: object) -> int:
        while True:
            pass

    monkeypatch.setattr(baby_ai_bot.BabyAIBot, "replan", hang)
    with pytest.raises(GraceError, match=r"only 0 of 2 episodes kept, and \d+ left out.*hung for 0\.02 s"):
        collect(GO_TO_OBJ, "bot", 2, "expert", alarm_s=0.02)


def test_the_bots_failures_are_skipped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from minigrid.utils import baby_ai_bot

    real, calls = baby_ai_bot.BabyAIBot.__init__, []

    def sometimes(self: object, mission: object) -> None:
        calls.append(1)
        if len(calls) % 2:
            raise AssertionError("no plan")
        real(self, mission)

    monkeypatch.setattr(baby_ai_bot.BabyAIBot, "__init__", sometimes)
    tally = EpisodeTally()
    assert len(collect(GO_TO_OBJ, "bot", 3, "expert", tally=tally)) == 3
    assert tally.failures == {"AssertionError": 3}
    assert tally.lines() == ["3 episodes failed and were skipped (AssertionError: 3)"]


def test_resets_print_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    collect("BabyAI-PutNextS5N1-v0", "random", 20, "negative", max_steps=1)
    assert capfd.readouterr().out == ""


def test_no_log_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo logs what it finds old in HalfCheetah's model to a file in the working folder."""
    pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    collect("HalfCheetah-v5", "random", 1, "negative", max_steps=2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((GO_TO_OBJ, "tutor", 1, "expert"), "--policy tutor; expected bot, random"),
        ((GO_TO_OBJ, "random", 0, "expert"), "--episodes 0"),
        (("CartPole-v1", "bot", 1, "expert"), "BabyAI levels only"),
        ((GO_TO_OBJ, "nothing.zip", 1, "expert"), "no such file"),
    ],
)
def test_what_cannot_be_collected(arguments: tuple[str, str, int, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        collect(*arguments)  # type: ignore[arg-type]


def test_a_negative_max_steps() -> None:
    with pytest.raises(InputError, match="--max-steps 0"):
        collect(GO_TO_OBJ, "random", 1, "negative", max_steps=0)


@pytest.mark.parametrize("name", ["expert.parquet", "negative.parquet"])
def test_the_recipe_makes_the_shipped_files(name: str) -> None:
    (recipe,) = [r for r in read_recipe(SHIPPED / "recipe.toml") if r.out == name]
    shipped = load([SHIPPED / name])
    made = collect(recipe.env, recipe.policy, recipe.episodes, recipe.role, recipe.seed)
    assert_same(made, shipped)


class Codes(gymnasium.Env[Any, Any]):
    """Observations of a few bytes, which may be codes of cells or pixels."""

    observation_space, action_space = Box(0, 255, (4, 4, 3), np.uint8), Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros((4, 4, 3), np.uint8), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.full((4, 4, 3), action, np.uint8), 0.0, False, False, {}


def test_a_recipe_may_name_the_task_and_the_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.envs.registration.registry))
    gymnasium.register("Codes-v0", Codes)
    file = "[[file]]\nenv = 'Codes-v0'\npolicy = 'random'\nrole = 'expert'\nepisodes = 1\nmax_steps = 3\n"
    tables = ["out = 'a.npz'\n", "out = 'b.npz'\ntask = 'wait'\nkind = 'image'\n"]
    (tmp_path / "recipe.toml").write_text("".join(file + each for each in tables))

    sets = [load([path]) for path, _ in run_recipe(tmp_path / "recipe.toml")]
    assert [(each[0].task, each.metadata.kind) for each in sets] == [("Codes-v0", "grid"), ("wait", "image")]


@pytest.mark.parametrize(
    ("fault", "message"),
    [("env = 'CartPole-v1'\nkind = 'image'", "CartPole-v1"), ("env = 'CartPole-v9'", "CartPole-v9")],
)
def test_a_fault_in_the_last_file_of_a_recipe_is_found_before_the_first_is_written(
    fault: str, message: str, tmp_path: Path
) -> None:
    table = "[[file]]\nout = '{}.npz'\n{}\npolicy = 'random'\nrole = 'expert'\nepisodes = 1\n"
    text = table.format("a", "env = 'CartPole-v1'") + table.format("b", fault)
    (tmp_path / "recipe.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        list(run_recipe(tmp_path / "recipe.toml"))
    assert [each.name for each in tmp_path.iterdir()] == ["recipe.toml"]


def test_a_place_in_a_recipe_that_cannot_be_written_is_found_before_an_episode_is_played(tmp_path: Path) -> None:
    table = "[[file]]\nout = '{}'\nenv = 'CartPole-v1'\npolicy = 'random'\nrole = 'expert'\nepisodes = 1\n"
    (tmp_path / "recipe.toml").write_text(table.format("a.npz") + table.format("file/b.npz"))
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file/b.npz: cannot be written \(Not a directory\); .* choose another place"):
        list(run_recipe(tmp_path / "recipe.toml"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "recipe.toml"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file = 3", "expected .*file"),
        ("[[file]]\nout = 3", "out = 3; expected the keys"),
        ("[[file]]\nout = 'a.parquet'", "no 'env'"),
        ("[[file]]\nextra = 1", "extra = 1"),
        ("[[file]", "not TOML"),
        ("[[file]]\nout='a'\nenv='b'\npolicy='c'\nrole='tutor'\nepisodes=1", "'tutor'"),
        (
            "[[file]]\nout='a.npz'\nenv='b'\npolicy='c'\nrole='expert'\nepisodes=1\nkind='picture'",
            "file 1: kind = 'picture'; expected one of vector, grid",
        ),
    ],
)
def test_recipes_that_cannot_be_used(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_recipe(tmp_path / "recipe.toml")
