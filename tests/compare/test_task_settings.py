"""Settings and refusals of comparisons in the environment of a task."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")

from grace_irl.cli import main
from grace_irl.compare.contest import Contest
from grace_irl.compare.fitted import Fitted
from grace_irl.compare.settings import Settings, comparison_of, read_settings, told_apart
from grace_irl.errors import InputError
from grace_irl.methods.eureka import EurekaConfig
from grace_irl.runs.config import resolve
from tests.compare.short import QUICK, TASK
from tests.hostile_files.traps import stranger, trap

Capture = pytest.CaptureFixture[str]

REFUSED: list[tuple[list[str], str]] = [
    (["--methods", "grace,eureka"], "method 'grace' needs demonstrations; expected --demos PATH…, or only methods"),
    (["--methods", "bc"], "method 'bc' needs demonstrations"),
    (["--methods", "random", "--env", "CartPole-v1"], "--env with --task; expected --task alone"),
    (["--methods", "random", "--horizon", "9"], "--horizon with --task"),
    (["--methods", "ppo-true", "--expand", "2"], "--expand with --task"),
    (["--methods", "ppo-true", "--draw-demos", "2"], "--draw-demos without demonstrations; expected --demos"),
    (["--methods", "random", "--transfer-env", "Acrobot-v1"], "Acrobot-v1: states of 6 numbers"),
    (
        ["--methods", "random", "--set", "policy.task=snake"],
        "--set policy.task has no effect in a comparison; expected",
    ),
    (["--methods", "random", "--set", "eureka.rounds=2"], "no effect with the methods random; expected eureka among"),
    (["--methods", "random", "--set", "search.population=4"], "--set search.population: no effect with the methods"),
    (["--methods", "random", "--set", "fitness.none=4"], "setting 'fitness.none' is unknown"),
    (["--methods", "eureka", "--set", "eureka.sample=4"], "'eureka.sample' is unknown; did you mean eureka.samples?"),
    (["--methods", "random", "--set", "random.programs=0"], "setting 'random.programs' is 0"),
    (["--methods", "random", "--set", "model.temperature=0.1"], "no effect, since this run has no model"),
    (["--methods", "random", "--held-out", "0.3"], "--held-out: no effect with a task; expected no --"),
    (["--methods", "random", "--tune", "random.programs=1"], "expected --set or --config for how it searches"),
]


@pytest.mark.parametrize(("words", "said"), REFUSED, ids=[" ".join(words[1:]) for words, _ in REFUSED])
def test_what_cannot_be_compared_is_refused_before_anything_is_written(
    words: list[str], said: str, task: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["compare", "--task", str(task), *words, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_search_that_cannot_write_for_a_task_says_so(tmp_path: Path, capsys: Capture) -> None:
    """Without a model no programs are written for grids. That is no lack of demonstrations."""
    words = ["--task", "doorkey", "--methods", "ppo-true,random", "--out", str(tmp_path / "out")]
    assert main(["compare", *words]) == 2
    error = capsys.readouterr().err
    assert "task doorkey" in error
    assert "needs demonstrations" not in error


def test_a_task_may_lie_in_the_home_folder(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(task.parent))
    found = comparison_of({"task": f"~/{task.name}", "reward": "~/r.py", "transfer": ("~/own.py:make", "Hopper-v5")})
    assert (found.task, found.reward) == (str(task), str(task.parent / "r.py"))
    assert found.transfer == (f"{task.parent / 'own.py'}:make", "Hopper-v5")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("[training]", 'sees = "state"\n[training]', "expected sees = 'transition', or a model"),
        (":length", ":absent", "score"),
        ("n_envs", "envs", "[ppo] envs; expected one of"),
    ],
)
def test_a_task_that_cannot_be_trained_on_is_refused(
    before: str, after: str, said: str, task: Path, tmp_path: Path, capsys: Capture
) -> None:
    task.write_text(TASK.replace(before, after))
    words = ["--methods", "random,ppo-true", "--out", str(tmp_path / "out")]
    assert main(["compare", "--task", str(task), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_demonstrations_of_another_environment_are_refused(cart_pole: Path, tmp_path: Path, capsys: Capture) -> None:
    words = ["--demos", str(cart_pole), "--task", "acrobot", "--methods", "bc,random"]
    assert main(["compare", *words, "--out", str(tmp_path / "out")]) == 2
    assert "task acrobot: states of 6 numbers beside the demonstrations with 4" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_file_of_settings_names_no_task(task: Path, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "settings.toml"
    for method, said in (("grace", "setting 'policy' has no effect"), ("random", "policy.task = ")):
        file.write_text(f'method = "{method}"\n[policy]\ntask = "{task}"\n')
        words = ["--methods", "random", "--config", str(file), "--out", str(tmp_path / "out")]
        assert main(["compare", "--task", str(task), *words]) == 2
        assert said in capsys.readouterr().err
        assert not (tmp_path / "out").exists()


def begun(task: Path, folder: Path) -> Path:
    """A comparison that ends at once, since its only job failed."""
    words = ["--methods", "random", *QUICK, "--set", "random.programs=1", "--out", str(folder)]
    assert main(["compare", "--task", str(task), *words]) == 1
    return folder


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch, in_process: None) -> None:
    """Jobs that fail at once."""
    del in_process

    def train(self: Fitted, *_: object) -> None:
        raise InputError("not today")

    monkeypatch.setattr(Fitted, "train", train)


@pytest.mark.usefixtures("failing")
def test_a_strangers_comparison_names_its_task_again(
    task: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, evil = begun(task, tmp_path / "out"), trap(tmp_path)
    stranger(monkeypatch, tmp_path)
    theirs = shutil.copytree(folder, tmp_path / "theirs")
    written = theirs / "compare.toml"
    capsys.readouterr()
    assert main(["compare", "--resume", str(theirs)]) == 2
    assert f"expected on the command line: --task {task}" in capsys.readouterr().err
    bad = tmp_path / "bad.toml"
    bad.write_text(TASK.replace('"CartPole-v1"', f'"{evil.name}"'))
    text = written.read_text()
    for changed in (
        text.replace(str(task), str(bad)),
        text.replace('"random.programs=1"', f'"policy.task={bad}", "model.url=http://192.0.2.1"'),
    ):
        written.write_text(changed)
        assert main(["compare", "--resume", str(theirs)]) == 2
        assert "expected on the command line: --task" in capsys.readouterr().err
    settings = read_settings(theirs)  # the second one
    found = Settings(settings.comparison, settings.fit).search("random")
    assert (found.model.url, found.policy.task) == ("", str(task))
    assert not evil.sprung
    written.write_text(text)
    assert main(["compare", "--resume", str(theirs), "--task", str(task)]) == 1
    capsys.readouterr()
    assert main(["compare", "--resume", str(theirs)]) == 1  # from then on it is this user's
    assert "tests.tasks.scores:length" in capsys.readouterr().err  # the terminal names the code of the task


@pytest.mark.usefixtures("failing")
def test_a_comparison_goes_on_with_its_own_task_and_settings(task: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = begun(task, tmp_path / "out")
    again = ["compare", "--resume", str(folder)]

    def said(*words: str) -> str:
        capsys.readouterr()
        assert main([*again, *words]) == 2
        return capsys.readouterr().err

    assert "is not the one that the comparison began with" in said("--task", "snake")
    assert "random.programs = 2 on --resume, and it began with 1" in said("--set", "random.programs=2")
    assert "expected forge among --methods" in said("--set", "forge.rounds=1")
    task.write_text(TASK.replace("n_steps = 32", "n_steps = 64"))
    assert "is not the one that the comparison began with" in said()
    moved = tmp_path / "moved" / "pole.toml"
    moved.parent.mkdir()
    moved.write_text(TASK)
    words = ["--task", str(moved), "--methods", "random,eureka", "--set", "random.programs=1"]
    assert main([*again, *words, "--set", "eureka.rounds=3"]) == 1
    found = read_settings(folder)
    assert found.comparison.task == str(moved)
    assert found.search("eureka").own(EurekaConfig).rounds == 3


@pytest.mark.usefixtures("failing")
def test_every_search_has_the_stop_rules_that_it_has_alone(task: Path, tmp_path: Path) -> None:
    """Its own defaults, or what the user gives, even if that is the default of another search."""
    for words, plateaus in (
        ([], (15, 15, None)),
        (["--set", "stop.plateau=15"], (15, 15, 15)),
        (["--set", "stop.plateau=7"], (7, 7, 7)),
        (["--set", "stop.plateau=none"], (None, None, None)),
        (["--set", "method=random", "--set", "stop.plateau=none"], (None, None, None)),
        (["--set", "method=random"], (15, 15, None)),
    ):
        folder = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        command = ["compare", "--task", str(task), "--methods", "random,map-elites", *QUICK, *words]
        assert main([*command, "--out", str(folder)]) == 1
        found = read_settings(folder)
        known = tuple(found.search(name).stop.plateau for name in ("grace", "map-elites", "random"))
        assert known[found.fit.method == "random" :] == plateaus[found.fit.method == "random" :]  # `fit` is grace's
    assert main(["compare", "--resume", str(folder), "--methods", "eureka", "--set", "eureka.samples=16"]) == 1
    assert read_settings(folder).search("eureka").stop.plateau is None
    assert main(["compare", "--resume", str(folder), "--set", "stop.plateau=none"]) == 1  # as it began
    assert read_settings(folder).search("map-elites").stop.plateau == 15


def test_settings_go_to_the_searches_that_have_them() -> None:
    sets = ("eureka.rounds=2", "search.population=7", "policy.train_steps=64", "model.temperature=0.5")
    shared, own = told_apart(("grace", "eureka", "random", "bc"), sets)
    assert (shared, own) == (sets[1::2], sets[::2])
    fit = resolve(sets=shared, flags={"expand.rounds": 3, "expand.trust": True, "stop.max_seconds": 9})
    comparison = comparison_of({"methods": ("grace", "eureka", "random", "bc"), "searches": own})
    searches = Settings(comparison, fit).searches
    assert [*searches] == ["grace", "eureka", "random"]
    assert searches["grace"] == fit
    eureka, chance = searches["eureka"], searches["random"]
    assert (eureka.method, eureka.own(EurekaConfig).rounds, chance.policy.train_steps) == ("eureka", 2, 64)
    assert (eureka.model.temperature, eureka.expand.rounds, eureka.expand.trust) == (0.5, 0, True)
    assert (eureka.stop.max_seconds, eureka.stop.plateau, fit.stop.plateau) == (9, None, 15)


def test_a_search_in_the_place_of_graces_shares_its_settings() -> None:
    fit = resolve(flags={"method": "random", "policy.train_steps": 64, "stop.max_calls": 3})
    eureka = Settings(comparison_of({"methods": ("grace", "eureka")}), fit).search("eureka")
    assert (eureka.method, eureka.stop.max_calls, eureka.policy.train_steps) == ("eureka", 3, 64)


def test_a_search_has_no_more_processes_than_its_job(task: Path, tmp_path: Path) -> None:
    settings = Settings(comparison_of({"methods": ("random",), "task": str(task), "steps": 64}), resolve())
    made = Contest.of(settings, 3).method("random", tmp_path / "fit")
    assert isinstance(made, Fitted)
    assert (made.config.sandbox.workers, made.config.policy.trainings) == (3, 3)
