"""Task files: what they say, and what is refused in one line."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")

from grace_irl.cli import main
from grace_irl.errors import InputError
from grace_irl.rl.evaluation import Rollout
from grace_irl.rl.rollouts import play
from grace_irl.tasks.random_episodes import ENOUGH, FEWEST, MOST_STEPS, STATES, random_episodes, scored_episodes
from grace_irl.tasks.task import Task, read_task, shipped

WHOLE = 'env = "CartPole-v1"\ntext = "Balance."\nscore = "tests.tasks.scores:length"\n'


def written(folder: Path, text: str) -> str:
    path = folder / "task.toml"
    path.write_text(text)
    return str(path)


def test_the_tasks_that_ship_are_whole() -> None:
    assert {"reacher", "snake", "flappy-bird", "acrobot", "lunar-lander", "doorkey"} <= set(shipped())
    for name in shipped():
        task = read_task(name)
        assert task.name == name
        assert len(task.text) > 100
        assert task.scored
        assert task.shows_score, name  # in all of them, a step shows a part of the score
        task.scorer()


PACKAGES = {"flappy-bird": "flappy_bird_gymnasium", "lunar-lander": "Box2D"}
"""Packages that a task needs beside the extra `rl`."""


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_task_plays_and_is_scored(name: str) -> None:
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name], reason=f"task {name} needs {PACKAGES[name]}")
    task = read_task(name)
    episodes = random_episodes(task, 2)
    assert all(2 <= len(each.states) <= STATES for each in episodes)
    assert len(task.metadata.fields) in (0, *(each.states.shape[-1] for each in episodes))
    rollouts = [Rollout(each, 0.0, success=False, final={"apples": 1.0, "score": 1.0}) for each in episodes]
    assert all(0.0 <= task.scorer()(each) <= 1.0 for each in rollouts)


def test_episodes_of_random_actions_depend_on_the_seed_alone() -> None:
    task = read_task("snake")
    one, again, other = (random_episodes(task, 3, seed) for seed in (0, 0, 9))
    assert [each.digest for each in one] == [each.digest for each in again]
    assert [each.digest for each in one] != [each.digest for each in other]


def test_random_episodes_with_scores_are_whole_and_depend_on_the_seed_alone() -> None:
    """They are as many as it takes until enough of them score something else than most do."""
    task = read_task("snake")
    (one, scores), (again, same), (other, _) = (scored_episodes(task, seed) for seed in (0, 0, 9))
    assert [each.digest for each in one] == [each.digest for each in again]
    assert scores == same
    assert [each.digest for each in one] != [each.digest for each in other]
    assert all(each.terminated or each.truncated for each in one)
    assert FEWEST < len(one) < 1_000
    assert sum(score > 0 for score in scores) == ENOUGH
    lengths = [each.states[-1, 4] - each.states[0, 4] for each in one]
    assert lengths == scores  # the snake is longer by what it ate


def test_random_episodes_end_where_random_actions_never_score(tmp_path: Path) -> None:
    path = tmp_path / "never.py"
    path.write_text("def never(rollout):\n    return 0.0\n", encoding="utf-8")
    task = read_task(
        written(tmp_path, WHOLE.replace("tests.tasks.scores:length", f"{path}:never") + "[training]\nmax_steps = 400\n")
    )
    found, scores = scored_episodes(task)
    assert len(found) == 1_000 or sum(each.num_steps for each in found[:-1]) < MOST_STEPS
    assert {*scores} == {0.0}


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    text = WHOLE + (
        'scored = "steps"\nsees = "state"\nshows_score = true\nfields = ["x", "v", "a", "w"]\n'
        "[training]\nsteps = 1000\nevaluations = 2\nepisodes = 3\nmax_steps = 30\n"
        "[short]\nsteps = 100\nfloor = 9.5\n[ppo]\nn_steps = 64\nlearning_rate = 1e-3\nnet_arch = [8, 8]\n"
    )
    task = read_task(written(tmp_path, text))
    assert (task.steps, task.evaluations, task.episodes, task.max_steps) == (1000, 2, 3, 30)
    assert (task.short_steps, task.floor) == (100, 9.5)
    assert (task.settings.n_steps, task.settings.learning_rate, task.settings.net_arch) == (64, 1e-3, (8, 8))
    assert task.metadata.fields == ("x", "v", "a", "w")
    assert max(each.num_steps for each in random_episodes(task, 8)) <= 30


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no 'env'"),
        (WHOLE.replace('text = "Balance."', 'text = " "'), "no 'text'"),
        (WHOLE + "more = 1\n", "more = 1"),
        (WHOLE + 'feilds = ["x"]\n', "did you mean fields? expected the keys env (str)"),
        (WHOLE + "[training]\nstep = 9\n", "[training]: step = 9; did you mean steps?"),
        (WHOLE + 'sees = "all"\n', "sees = 'all'"),
        (WHOLE + "[training]\nsteps = 0\n", "steps = 0"),
        (WHOLE + '[training]\nsteps = "many"\n', "'many'"),
        (
            WHOLE + "[training]\nsteps = 500\n[short]\nsteps = 500\nfloor = 1.0\n",
            "a full training has 500; expected fewer",
        ),
        (WHOLE.replace("tests.tasks.scores:length", "length"), "expected info:KEY, package.module:function or"),
        ("env = [", "not TOML"),
    ],
)
def test_what_is_no_task(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as found:
        read_task(written(tmp_path, text))
    assert said in str(found.value)
    assert "\n" not in str(found.value)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"no such file; expected a file that ends in .toml, or one of .*reacher"):
        read_task("nowhere.toml")


@pytest.mark.parametrize(
    ("score", "said"),
    [
        ("nowhere:score", "does not import"),
        ("/nowhere/own.py:score", "no file /nowhere/own.py; expected a function of an episode as file.py:function"),
        ("tests.tasks.scores:NUMBER", "is no function"),
    ],
)
def test_scores_that_cannot_be_used(score: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Task("t", "CartPole-v1", "Balance.", score).scorer()


@pytest.mark.parametrize(
    ("score", "said"),
    [
        ("raises", r"its score fails on an episode: ValueError: it broke badly \(scores.py, line \d+\)"),
        ("infinite", "its score of an episode is inf; expected a finite number"),
        ("spelt", "its score of an episode is '0.5'; expected a finite number"),
        ("nothing", "its score of an episode is None; expected a finite number"),
    ],
)
def test_scores_that_fail_name_the_task(score: str, said: str) -> None:
    episode = Rollout(random_episodes(read_task("snake"), 1)[0], 0.0)
    with pytest.raises(InputError, match=f"task t: {said}"):
        Task("t", "CartPole-v1", "Balance.", f"tests.tasks.scores:{score}").scorer()(episode)


def test_a_number_that_info_lacks_lists_those_that_it_has() -> None:
    episode = Rollout(random_episodes(read_task("snake"), 1)[0], 0.0, final={"apples": 2.0})
    with pytest.raises(InputError, match="expected one of its numbers: apples"):
        Task("t", "CartPole-v1", "Balance.", "info:pears").scorer()(episode)


@pytest.mark.parametrize(
    ("ppo", "said"), [({"steps": 3}, "steps"), ({"n_steps": "x"}, "n_steps"), ({"source": "x"}, "source")]
)
def test_settings_of_ppo_are_checked(ppo: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=rf"\[ppo\].*{said}"):
        _ = Task("t", "CartPole-v1", "Balance.", "info:x", ppo=ppo).settings


def test_fields_have_to_fit_the_states() -> None:
    with pytest.raises(InputError, match="2 fields for states of shape"):
        _ = Task("t", "CartPole-v1", "Balance.", "info:x", fields=("a", "b")).metadata


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ("Discrete(2, start=1)", "Discrete(2, start=1); expected actions from 0"),
        ("Box(-1, 1, (2, 3))", "Box(-1.0, 1.0, (2, 3), float32); expected a Box of one dimension: flatten it"),
        ("Box(np.float32([-1, 10]), np.float32([1, 20]))", "expected bounds around 0, where a policy begins: rescale"),
        ("Box(-9, -3, (1,))", "expected bounds around 0"),
        ("Box(-np.inf, np.inf, (1,))", "expected finite bounds"),
    ],
)
def test_ppo_has_to_be_able_to_learn_the_actions(space: str, said: str, tmp_path: Path) -> None:
    own = "import gymnasium\nimport numpy as np\ndef make():\n    made = gymnasium.make('CartPole-v1')\n"
    own += f"    made.action_space = gymnasium.spaces.{space}\n    return made\n"
    (tmp_path / "own.py").write_text(own)
    with pytest.raises(InputError, match=re.escape(said)):
        _ = Task("t", f"{tmp_path / 'own.py'}:make", "Balance.", "info:x").metadata


def test_the_last_info_of_an_episode_is_kept() -> None:
    from grace_irl.rl.observed import observed
    from grace_irl.rl.trained import TrainedPolicy, build_network

    task = read_task("snake")
    first = observed(task.make)
    network = build_network(first.observer, first.action_space, task.settings)
    policy = TrainedPolicy(network, first.observer, task.settings, task.env)
    assert all("apples" in each.final for each in play(policy, task.make, 2))


def test_code_beside_the_file_is_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    own = "import gymnasium\ndef make():\n    return gymnasium.make('CartPole-v1')\ndef score(rollout):\n    return 7\n"
    (tmp_path / "mine" / "own.py").write_text(own)
    file = written(tmp_path / "mine", 'env = "own.py:make"\ntext = "Balance."\nscore = "own.py:score"\n')
    monkeypatch.chdir(tmp_path)
    task = read_task(file)
    assert task.env == f"{tmp_path / 'mine' / 'own.py'}:make"
    assert task.metadata.kind == "vector"
    assert task.scorer()(Rollout(random_episodes(task, 1)[0], 0.0)) == 7.0
    before = task.code
    assert list(before) == [str(tmp_path / "mine" / "own.py")]
    (tmp_path / "mine" / "own.py").write_text(own + "\n# changed\n")
    assert read_task(file).code != before


def test_a_task_with_code_in_two_folders_may_move(tmp_path: Path) -> None:
    """The order of the digests does not follow the names of the folders."""
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "own.py").write_text(
        "import gymnasium\ndef make():\n    return gymnasium.make('CartPole-v1')\n"
    )
    digests = []
    for name in ("tasks", "a-tasks"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "scores.py").write_text("def score(rollout):\n    return 7\n")
        file = written(tmp_path / name, 'env = "../envs/own.py:make"\ntext = "x"\nscore = "scores.py:score"\n')
        digests.append(read_task(file).digest)
    assert digests[0] == digests[1]


def test_a_number_of_info_has_to_be_finite() -> None:
    episode = Rollout(random_episodes(read_task("snake"), 1)[0], 0.0, final={"g": float("nan")})
    with pytest.raises(InputError, match="expected a finite number"):
        Task("t", "CartPole-v1", "Balance.", "info:g").scorer()(episode)


@pytest.mark.parametrize(
    ("env", "options", "said"),
    [
        ("CartPole-v1", {"foo": 3}, r"CartPole-v1 with \[options\] .*foo"),
        ("Reacher-v5", {"frame_skip": 0}, r"with \[options\] .*frame_skip.* cannot be made: .*Error"),
        ("Reacher-v5", {"xml_file": "nosuch.xml"}, "cannot be made: OSError: .*nosuch.xml"),
        ("MiniGrid-DoorKey-5x5-v0", {"size": 2}, "cannot be made: AssertionError"),
        (
            "CartPole-v1",
            {"max_episode_steps": 0},
            r"with \[options\] .*; expected .*, and an environment, and \[option",
        ),
        ("own.py", {}, "no such environment .* or the function of a file, such as own.py:make"),
    ],
)
def test_environments_that_cannot_be_made(env: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Task("t", env, "Balance.", "info:x", options=options).make()


CORNER = """
import gymnasium
from dataclasses import replace
from grace_irl.demos.trajectory import Metadata
from grace_irl.rl.environments import FunctionView


class Leaving(gymnasium.Wrapper):
    def close(self):
        raise RuntimeError("the door sticks")


def make():
    return gymnasium.make("CartPole-v1"), FunctionView(Metadata("vector"), of=lambda env, seen: seen[:2])


def leave():
    return Leaving(gymnasium.make("CartPole-v1"))
"""


def test_names_are_those_of_the_states_that_a_view_shows(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(CORNER)

    def named(*names: str) -> Task:
        return Task("t", f"{tmp_path / 'own.py'}:make", "Balance.", "info:x", fields=names)

    assert named("x", "velocity").metadata.fields == ("x", "velocity")
    with pytest.raises(InputError, match=r"4 fields for states of shape \(2,\)"):
        _ = named("x", "velocity", "angle", "angular velocity").metadata


def test_an_environment_that_fails_at_its_end_is_named(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(CORNER)
    with pytest.raises(
        InputError, match=r"task t: its environment fails: RuntimeError: the door sticks \(own.py, line"
    ):
        _ = Task("t", f"{tmp_path / 'own.py'}:leave", "Balance.", "info:x").metadata


@pytest.mark.slow
def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text()
    example = page.partition("A whole example")[2].partition("The function gets")[0]
    python, toml, shell = (block.partition("```")[0] for block in re.split(r"```(?:python|toml|sh)\n", example)[1:])
    (tmp_path / "tank.py").write_text(python)
    (tmp_path / "tank.toml").write_text(toml.replace("steps = 20480", "steps = 2048"))
    monkeypatch.chdir(tmp_path)
    fit, compare = (shlex.split(line.partition("#")[0])[1:] for line in shell.strip().splitlines())
    assert main([*fit[:-2], "--out", "runs/tank", "--rounds", "1", "--round-programs", "2"]) == 0
    assert "state[" in Path("runs/tank/reward.py").read_text()
    pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")
    assert main([*compare, "--steps", "2048", "--seeds", "1", "--out", "out"]) == 0
    table = Path("out/table.md").read_text()
    assert "| grace | 1 |" in table
    assert "| ppo-true | 1 |" in table
