"""Configuration: precedence, errors, the file, and that every field is read."""

from __future__ import annotations

import os
import threading
import tomllib
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pydantic import BaseModel

from grace_irl import config as configs
from grace_irl.cli import main
from grace_irl.config import Config
from grace_irl.demos import save
from grace_irl.errors import GraceError, InputError
from grace_irl.methods import grace
from grace_irl.methods.registry import METHODS
from grace_irl.rl.matching import EnvironmentSpec
from grace_irl.runs.config import method_named, resolve, to_toml
from grace_irl.runs.expand import expansion
from grace_irl.runs.expand.learner import PpoLearner
from grace_irl.runs.fit import start
from grace_irl.settings import Section
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.fakes.scripted_proposer import SOURCE
from tests.propose.client.server import ChatServer
from tests.runs import test_online_shaping as online_shaping
from tests.runs.expansions import FLAGS, FakeLearner
from tests.runs.expansions import parts as expansion_parts


def test_the_defaults_are_those_of_table_6() -> None:
    search = resolve().search
    assert (search.population, search.elite, search.generations) == (20, 4, 100)
    assert (search.include_expert, search.incorrect_only, search.expert_only) == (0.25, 0.5, 0.75)


@pytest.mark.parametrize("name", METHODS)
def test_only_methods_that_say_so_end_at_a_plateau_by_default(name: str, tmp_path: Path) -> None:
    own = {"grace": 15, "map-elites": 15}.get(name)
    assert resolve(flags={"method": name}).stop.plateau == own
    assert resolve(flags={"method": name, "stop.plateau": 4}).stop.plateau == 4
    file = tmp_path / "c.toml"
    file.write_text(to_toml(resolve(flags={"method": "map-elites"})))
    assert resolve(file, flags={"method": name}).stop.plateau == own
    assert resolve(file, ["stop.plateau=15"], {"method": name}).stop.plateau == 15
    file.write_text(to_toml(resolve(flags={"method": "eureka", "stop.plateau": 15})))
    assert resolve(file).stop.plateau == 15


def test_file_yields_to_set_and_set_yields_to_flags(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("seed = 1\n[search]\npopulation = 30\nelite = 3\ngenerations = 5\n")
    found = resolve(file, ["search.elite=2", "search.generations=6"], {"search.generations": 7, "seed": None})
    assert (found.seed, found.search.population, found.search.elite, found.search.generations) == (
        1,
        30,
        2,
        7,
    )


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("data.label=last", "data.label", "last"),
        ('data.label="last"', "data.label", "last"),
        ("stop.max_seconds=1.5", "stop.max_seconds", 1.5),
        ("stop.plateau=none", "stop.plateau", None),
        ("fitness.calibrate=false", "fitness.calibrate", False),
        ('data.demos=["a", "b"]', "data.demos", ("a", "b")),
    ],
)
def test_set_takes_toml_values_and_plain_text(text: str, key: str, value: object) -> None:
    section, name = key.split(".")
    assert getattr(getattr(resolve(sets=[text]), section), name) == value


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["search.popultion=3"], "'search.popultion' is unknown; did you mean search.population? expected one of"),
        (["nothing=3"], "'nothing' is unknown"),
        (["search.population"], "no '='"),
        (["search.population=0"], "greater than or equal to 1"),
        (["search.population=many"], "'many'"),
        (["data.held_out=1"], "less than 1"),
        (["fitness.log_pi=other"], "constant"),
        (["seed.x=1"], "seed"),
    ],
)
def test_what_does_not_fit_is_one_line(settings: list[str], said: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve(sets=settings)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["inf", "nan", "1e308", "-1"])
def test_a_weight_of_exploration_is_a_number_that_compares_with_scores(value: str) -> None:
    with pytest.raises(InputError, match=r"^setting 'tree.exploration' is "):
        resolve(sets=[f"tree.exploration={value}"], flags={"method": "rf-agent"})


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("a = [")
    for file in (tmp_path / "absent.toml", broken):
        with pytest.raises(InputError, match=file.name):
            resolve(file)


def test_the_written_file_reads_back_the_same(tmp_path: Path) -> None:
    config = resolve(
        sets=['data.demos=["a \\"b\\"", "c\\\\d", "é\\u007f"]', "stop.max_seconds=2.5", "stop.plateau=none"],
        flags={"seed": 2**40, "fitness.calibrate": False},
    )
    file = tmp_path / "config.toml"
    file.write_text(to_toml(config), encoding="utf-8")
    tomllib.loads(file.read_text(encoding="utf-8"))
    assert resolve(file) == config


def test_a_flag_unsets_an_optional_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(vector_set(), tmp_path / "set.parquet")
    words = ["fit", "--demos", str(tmp_path / "set.parquet"), "--out", str(tmp_path / "run"), "--max-calls"]
    assert main([*words, "few"]) == 2
    assert "Invalid value for '--max-calls'" in (said := capsys.readouterr().err)
    assert "'few'; expected a whole number, or none" in said
    assert main([*words, "1", "--target-accuracy", "none", "--plateau", "None"]) == 0
    stop = resolve(tmp_path / "run" / "config.toml").stop
    assert (stop.max_calls, stop.target_accuracy, stop.plateau) == (1, None, None)


def test_paths_of_files_and_variables_may_begin_in_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    save(vector_set(), home / "set.parquet")
    (home / "own.toml").write_text('[data]\ndemos = ["~/set.parquet"]\n[stop]\nmax_calls = 1\n')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GRACE_IRL_CONFIG", "~/own.toml")
    monkeypatch.setenv("GRACE_IRL_OUT", "~/run")
    monkeypatch.setenv("GRACE_IRL_GOALS", "~/goals.toml")
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "--label", "goal"]) == 2
    assert f"{home}/goals.toml: cannot be read" in capsys.readouterr().err
    monkeypatch.delenv("GRACE_IRL_GOALS")
    assert main(["fit"]) == 0
    assert resolve(home / "run" / "config.toml").data.demos == (str(home / "set.parquet"),)
    assert main(["fit", "--resume", str(home / "run")]) == 0
    assert [each.name for each in tmp_path.iterdir()] == ["home"]


def test_an_unset_stop_rule_stays_unset_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    config = resolve(sets=["stop.target_accuracy=none"])
    file.write_text(to_toml(config), encoding="utf-8")
    assert resolve(file) == config


def _expand(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Expansions by learners that are none, one of which stalls, and the beginning of one by PPO."""
    pytest.importorskip("stable_baselines3")
    config = resolve(flags={**FLAGS, "expand.rounds": 1})
    expansion.start(config, folder / "expansion", expansion_parts(), FakeLearner())
    shaping = {**online_shaping.FLAGS, "expand.rounds": 2}
    expansion.start(resolve(flags=shaping), folder / "shaping", online_shaping.parts(), online_shaping.Walker())
    monkeypatch.setattr("grace_irl.rl.matching.environment_for", lambda *_: EnvironmentSpec("CartPole-v1"))
    monkeypatch.setattr("grace_irl.rl.observed.acts_continuously", lambda *_: True)
    monkeypatch.setattr("grace_irl.work.workplace.LocalExecutor", Mock(side_effect=GraceError("no training here")))
    with pytest.raises(GraceError, match="no training here"):
        expansion.start(config, folder / "ppo", expansion_parts())
    learner = PpoLearner(config.expand, note=print)
    learner.check(expansion_parts().demonstrations or vector_set())
    assert learner.carries


def test_every_field_is_read_by_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: set[tuple[str, str]] = set()
    plain = BaseModel.__getattribute__

    def spy(self: BaseModel, name: str) -> Any:
        if type(self).__module__ in (configs.__name__, grace.__name__):
            read.add((type(self).__name__, name))
        return plain(self, name)

    monkeypatch.setattr(Section, "__getattribute__", spy)
    monkeypatch.setattr("grace_irl.sandbox.open_sandbox", lambda **_: InProcessSandbox())
    monkeypatch.setattr("grace_irl.runs.data.load", lambda *_, **__: vector_set())
    program = SOURCE.format(index=1, threshold=0.37)
    with ChatServer(answer=lambda _: f"```python\n{program}```") as server:
        flags = {"search.generations": 0, "search.population": 2, "data.demos": ("x",), "model.url": server.url}
        start(resolve(flags=flags), tmp_path / "run")
    with pytest.raises(InputError, match="recording"):
        start(resolve(flags={"proposer.name": "replay", "data.demos": ("x",)}), tmp_path / "other")
    _expand(tmp_path, monkeypatch)
    models = {type(value) for value in resolve().__dict__.values() if isinstance(value, BaseModel)} | {Config}
    fields = {(model.__name__, name) for model in models for name in model.model_fields}
    assert fields - read == set()


def test_settings_through_a_pipe_are_read_once(tmp_path: Path) -> None:
    """As `--config <(command)` gives them: whoever looks for the method does not take them away."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert method_named(pipe) == ""
    writer = threading.Thread(target=pipe.write_text, args=('method = "grace"\nseed = 7\n',))
    writer.start()
    assert resolve(pipe).seed == 7
    writer.join()
