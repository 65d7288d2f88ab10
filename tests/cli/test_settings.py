"""Settings: what one declaration gives, everything that was a flag, variable, keyword or key, and unknown names."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, get_type_hints

import pytest
import typer.main

import grace_irl
from grace_irl.cli import main
from grace_irl.cli.app import COMMANDS, build
from grace_irl.compare.settings import Comparison
from grace_irl.config import Config
from grace_irl.errors import InputError
from grace_irl.keywords import FitSettings
from grace_irl.methods import registry as methods
from grace_irl.runs.config import flat, resolve, settings_of, to_toml
from grace_irl.settings import Section, declared, setting
from tests.frame.tree import ROOT

FIT = {  # flags of `fit` before settings were declared once, and the settings that they set
    "label": "data.label",
    "goals": "data.goals",
    "held-out": "data.held_out",
    "field-names": "data.field_names",
    "method": "method",
    "seed": "seed",
    "population": "search.population",
    "elite": "search.elite",
    "generations": "search.generations",
    "reshape": "search.reshape",
    "steady": "search.steady",
    "parent-temperature": "search.parent_temperature",
    "samples-per-call": "search.samples",
    "log-pi": "fitness.log_pi",
    "calibrate": "fitness.calibrate",
    "max-calls": "stop.max_calls",
    "max-seconds": "stop.max_seconds",
    "max-tokens": "stop.max_tokens",
    "max-cost": "stop.max_cost",
    "target-accuracy": "stop.target_accuracy",
    "plateau": "stop.plateau",
    "proposer": "proposer.name",
    "seed-synthesis": "proposer.seed_synthesis",
    "llm-url": "model.url",
    "model": "model.name",
    "temperature": "model.temperature",
    "answer-tokens": "model.answer_tokens",
    "context": "model.context",
    "concurrency": "model.concurrency",
    "answer-format": "model.answer_format",
    "repair": "model.repair",
    "llm-patience": "model.patience",
    "images": "model.images",
    "expand": "expand.rounds",
    "env": "expand.env",
    "env-steps": "expand.steps",
    "rollouts": "expand.episodes",
    "online-reshape": "expand.reshape",
    "trust-reward": "expand.trust",
    "workers": "sandbox.workers",
    "allow-weak-sandbox": "sandbox.allow_weak",
}
LISTS = {
    "demos": "data.demos",
    "experts": "data.experts",
    "negatives": "data.negatives",
    "start-from": "proposer.start_from",
}
SWITCHES = ("field-names", "steady", "calibrate", "repair", "images", "trust-reward")
KEYWORDS = {*FIT, "start-from"} - {"proposer"}
TYPES = {"held_out": float, "max_seconds": float, "population": int, "steady": bool, "llm_url": str}
OWN = {"out", "resume", "replay", "estimate", "config", "set", "json", "max-memory"}
COMPARE = {
    *{"demos", "negatives", "label", "goals", "held-out", "field-names", "methods", "env", "seeds", "steps", "horizon"},
    *{
        "transfer-env",
        "episodes",
        "looks",
        "keep",
        "draw-demos",
        "reward",
        "expand",
        "trust-reward",
        "llm-url",
        "model",
    },
    *{"images", "context", "start-from", "tune", "device", "workers", "allow-weak-sandbox", "max-memory", "out"},
    *{"resume", "config", "set", "json"},
}
COMPARE_VARIABLES = {
    *{"label", "goals", "field-names", "trust-reward", "llm-url", "model", "images", "context", "allow-weak-sandbox"},
    *{"max-memory", "config", "kind", "swaps", "episode-column", "sample"},
}
KEYS = {
    "method": "grace",
    "seed": 0,
    "data.demos": (),
    "data.negatives": (),
    "data.label": "",
    "data.goals": "",
    "data.held_out": 0.25,
    "data.field_names": True,
    "search.population": 20,
    "search.elite": 4,
    "search.generations": 100,
    "search.include_expert": 0.25,
    "search.incorrect_only": 0.5,
    "search.expert_only": 0.75,
    "search.parent_temperature": 1.0,
    "search.steady": False,
    "search.reshape": 0,
    "search.samples": None,
    "search.lag": None,
    "fitness.log_pi": "constant",
    "fitness.calibrate": True,
    "stop.max_calls": None,
    "stop.max_seconds": None,
    "stop.max_tokens": None,
    "stop.max_cost": None,
    "stop.target_accuracy": 1.0,
    "stop.plateau": 15,
    "proposer.name": "",
    "proposer.seed_synthesis": 0,
    "proposer.start_from": (),
    "proposer.recording": "",
    "model.url": "",
    "model.name": "",
    "model.temperature": 0.8,
    "model.answer_tokens": 4096,
    "model.concurrency": 32,
    "model.answer_format": "auto",
    "model.repair": True,
    "model.patience": 600.0,
    "model.timeout": 600.0,
    "model.prompt_tokens": 24000,
    "model.prompt_scale": 1.0,
    "model.context": "",
    "model.images": False,
    "model.price_in": 0.0,
    "model.price_out": 0.0,
    "expand.rounds": 0,
    "expand.env": "",
    "expand.steps": 100000,
    "expand.growth": 1.0,
    "expand.episodes": 20,
    "expand.enough": 0.99,
    "expand.alike": 0.6,
    "expand.form": "auto",
    "expand.reshape": 3,
    "expand.carry": "auto",
    "expand.trust": False,
    "sandbox.workers": None,
    "sandbox.allow_weak": False,
    "sandbox.wall_s": 10.0,
    "sandbox.cpu_s": 10.0,
    "sandbox.memory_mb": 512,
}
COMPARISON = {
    "methods": ("grace", "gail", "airl", "bc", "ppo-true"),
    "seeds": 5,
    "steps": 100000,
    "env": "",
    "horizon": 0,
    "transfer": (),
    "tuned": (),
    "reward": "",
    "episodes": 100,
    "looks": 10,
    "look_episodes": 20,
    "keep": 0,
    "choice_episodes": 10,
    "device": "auto",
    "draw_demos": 0,
    "data": "",
}


def options(command: str) -> dict[str, Any]:
    """The options of a command by their first flag, without its dashes."""
    group: Any = typer.main.get_command(build([command]))
    return {each.opts[0].lstrip("-"): each for each in group.commands[command].params}


def variable(flag: str) -> str:
    return f"GRACE_IRL_{flag.upper().replace('-', '_')}"


def test_every_flag_of_fit_is_still_there_and_sets_what_it_set() -> None:
    found, known = options("fit"), {each.flag: key for key, each in settings_of("grace").items()}
    assert set(found) >= {*FIT, *LISTS, *OWN}
    assert {flag: known[flag] for flag in {**FIT, **LISTS}} == {**FIT, **LISTS}
    assert [flag for flag in SWITCHES if found[flag].secondary_opts != [f"--no-{flag}"]] == []
    mirrored = {flag for flag, option in found.items() if option.envvar == variable(flag)}
    assert mirrored >= {*FIT, "out", "config", "max-memory"}
    assert not {flag for flag in (*LISTS, "resume", "replay", "estimate", "set", "json") if found[flag].envvar}
    assert [flag for flag in (*LISTS, "set") if not found[flag].multiple] == []


def test_every_flag_of_compare_is_still_there() -> None:
    found = options("compare")
    assert set(found) >= COMPARE
    assert {flag: option.envvar for flag, option in found.items() if option.envvar} == {
        flag: variable(flag) for flag in COMPARE_VARIABLES
    }
    assert {flag for flag, option in found.items() if option.multiple} >= {*LISTS, "transfer-env", "tune", "set"}
    assert not found["methods"].multiple


def test_every_key_and_its_default_is_still_there() -> None:
    assert KEYS.items() <= flat(resolve()).items()
    assert COMPARISON.items() <= Comparison().model_dump().items()


def test_every_keyword_of_python_is_still_there() -> None:
    hints = get_type_hints(FitSettings)
    assert {flag.replace("-", "_") for flag in KEYWORDS} <= set(hints)
    assert TYPES.items() <= hints.items()


def test_what_is_made_from_the_declarations_is_up_to_date() -> None:
    """If this fails: python docs/settings_page.py."""
    script = [sys.executable, str(ROOT / "docs" / "settings_page.py"), "--check"]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("section", [Config, Comparison])
def test_every_setting_is_declared_with_help_and_no_flag_twice(section: type[Section]) -> None:
    known = list(declared(section).values())
    assert [each.key for each in known if not each.help.endswith(".") or not each.panel] == []
    flags = [each.flag for each in known if each.flag]
    assert len(set(flags)) == len(flags)
    assert not OWN & set(flags)


def help_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(arguments) == 0
    return capsys.readouterr().out.splitlines()


def flags_in(lines: Sequence[str]) -> set[str]:
    return {words[0] for line in lines if line.startswith("  -") and (words := line.split())}


def test_help_shows_eleven_options_in_panels_and_help_all_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    few, every = help_of(capsys, "fit", "--help"), help_of(capsys, "fit", "--help-all")
    assert len(flags_in(few) - {"--help-all", "-h,"}) == 11
    assert {"--demos", "--llm-url", "--expand", "--out", "--resume"} <= flags_in(few) < flags_in(every)
    panels = [line for line in every if line.endswith(":") and not line.startswith(" ")]
    assert panels == [f"{name}:" for name in ("Data", "Search", "Model", "Expansion", "Stop rules", "Run", "Options")]
    assert flags_in(every) >= {f"--{flag}" for flag in {**FIT, **LISTS}}


@pytest.mark.parametrize(
    ("method", "word", "key"),
    [
        ("eureka", "train_steps=200", "policy.train_steps, the setting of --train-steps"),
        ("eureka", "eureka.round_programs=2", "eureka.samples, the setting of --round-programs"),
        ("grace", "held-out=0.1", "data.held_out, the setting of --held-out"),
    ],
)
def test_the_name_of_a_flag_leads_to_its_setting(method: str, word: str, key: str) -> None:
    with pytest.raises(InputError, match=f"is unknown; expected {key}"):
        resolve(sets=[word], flags={"method": method})


def test_help_of_a_method_shows_the_flags_of_its_search(capsys: pytest.CaptureFixture[str]) -> None:
    plain = flags_in(help_of(capsys, "fit", "--help"))
    forge = flags_in(help_of(capsys, "fit", "--method", "forge", "--help"))
    assert {"--first-programs", "--rounds", "--pairs", "--planner", "--pair-choice"} <= forge - plain
    assert not {"--lag", "--calibrate", "--checkpoint", "--max-calls"} & forge
    grace = flags_in(help_of(capsys, "fit", "--method", "grace", "--help"))
    assert {"--population", "--elite", "--generations"} <= grace - plain


def test_help_of_a_command_without_help_all_shows_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert flags_in(help_of(capsys, "score", "--help")) >= {"--demos", "--kind", "--log-pi", "--calibration", "--json"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_a_command_is_that_of_its_help(name: str) -> None:
    """Help of the program imports no command, so that its lines stand in two places."""
    group: Any = typer.main.get_command(build([name]))
    said, line = group.commands[name].help, COMMANDS[name]
    assert said.split()[:2] == line.split()[:2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--popluation", "4"], "--population"),
        (["--set", "search.popultion=4"], "did you mean search.population?"),
        (["--set", "populaton=4"], "did you mean search.population?"),
        (["--set", "serch.population=4"], "did you mean search?"),
        (["--config", "settings.toml"], "did you mean stop.max_seconds?"),
        (["--method", "grac"], "expected one of"),
    ],
)
def test_an_unknown_name_is_one_line_with_the_nearest(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("settings.toml").write_text("[stop]\nmax_second = 3\n")
    assert main(["fit", "--demos", "x", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_an_unknown_keyword_is_one_line_with_the_nearest() -> None:
    unknown: dict[str, Any] = {"popluation": 4}
    with pytest.raises(InputError, match=r"argument 'popluation' is unknown; did you mean population\?"):
        grace_irl.fit("x", **unknown)


def test_an_unknown_setting_of_a_comparison_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "compare.toml").write_text("sedes = 3\n")
    (tmp_path / "fit.toml").write_text("")
    from grace_irl.compare.settings import read_settings

    with pytest.raises(InputError, match=r"did you mean seeds\?"):
        read_settings(tmp_path)


class ToySettings(Section):
    """How the toy searches."""

    panel: ClassVar[str] = "Toy"

    tries: int = setting(10, "Programs to try.", flag="tries", ge=1)
    daring: float = setting(0.5, "Chance of a daring program.", ge=0, le=1)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    known = methods.METHODS
    made = methods.Method(
        "toy",
        "a toy",
        known["grace"].search,
        known["grace"].evaluator,
        sections={"toy": ToySettings},
        reads=("data.",),
    )
    monkeypatch.setitem(known, "toy", made)


@pytest.mark.usefixtures("toy")
class TestAMethodsOwnSection:
    """Flags, variables, keywords and keys of the chosen method, and of no other."""

    def test_its_values(self) -> None:
        config = resolve(sets=["method=toy", "toy.tries=3"], flags={"toy.daring": 1.0})
        assert config.own(ToySettings) == ToySettings(tries=3, daring=1.0)
        assert {"toy.tries", "search.lag"} <= set(flat(config))
        assert not {"search.population", "fitness.log_pi"} & set(flat(config))

    def test_they_are_unknown_to_other_methods(self) -> None:
        with pytest.raises(InputError, match="'toy' has no effect with method 'grace'; expected it with --method toy"):
            resolve(sets=["toy.tries=3"])

    def test_a_flag_of_another_method_is_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["fit", "--demos", "x", "--tries", "3"]) == 2
        assert "--tries has no effect with this method; expected it with --method toy" in capsys.readouterr().err

    def test_settings_that_it_does_not_read_are_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        toy = ["fit", "--demos", "x", "--method", "toy"]
        shown = flags_in(help_of(capsys, *toy, "--help-all"))
        assert {"--label", "--lag", "--max-calls", "--model"} <= shown
        assert not {"--elite", "--generations", "--calibrate", "--expand", "--target-accuracy"} & shown
        assert main([*toy, "--elite", "3"]) == 2
        assert "--elite has no effect with this method; expected it with --method grace" in capsys.readouterr().err
        for key, unknown in (("search.elite=3", "search.elite"), ("fitness.calibrate=true", "fitness")):
            assert main([*toy, "--set", key]) == 2
            said = capsys.readouterr().err
            assert f"{unknown!r} has no effect with method 'toy'; expected it with --method grace" in said
        assert main([*toy, "--set", "stop.target_accuracy=0.9", "--set", "expand.rounds=1"]) == 2
        said = capsys.readouterr().err
        assert "--set stop.target_accuracy, --set expand.rounds: no effect with method 'toy'; expected anoth" in said
        with pytest.raises(
            InputError, match="argument 'elite' has no effect with method 'toy'; expected it with metho"
        ):
            grace_irl.fit("x", method="toy", elite=3)

    def test_a_file_of_another_method_counts_as_far_as_it_asks_for_something(self, tmp_path: Path) -> None:
        """As runs of earlier versions wrote one: with every setting of GRACE, whatever their method."""
        file = tmp_path / "config.toml"
        file.write_text(to_toml(resolve(sets=["search.lag=3"])))
        config = resolve(file, flags={"method": "toy", "toy.tries": 4})
        assert (config.own(ToySettings).tries, config.search.lag) == (4, 3)
        assert not {"search.population", "fitness.log_pi"} & set(flat(config))
        file.write_text(to_toml(resolve(sets=["search.population=7"])))
        with pytest.raises(InputError, match=r"'search\.population' has no effect with method 'toy'"):
            resolve(file, flags={"method": "toy"})
        with pytest.raises(InputError, match=r"'search\.population' has no effect with method 'toy'"):
            resolve(sets=["method=toy", "search.population=20"])

    def test_its_flags(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert {"--tries", "--toy-daring"} <= flags_in(help_of(capsys, "fit", "--method", "toy", "--help-all"))
        assert {"--tries", "--toy-daring"} <= flags_in(help_of(capsys, "fit", "--help-all", "--set", "method=toy"))
        assert "--tries" not in flags_in(help_of(capsys, "fit", "--help-all"))
        assert main(["fit", "--demos", "x", "--method=toy", "--tries", "0"]) == 2
        assert "'toy.tries' is 0" in capsys.readouterr().err

    def test_the_method_comes_from_a_file_or_a_run(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file = tmp_path / "run" / "config.toml"
        file.parent.mkdir()
        file.write_text('method = "toy"\n')
        for words in (["--config", str(file)], ["--resume", str(file.parent)]):
            assert "--tries" in flags_in(help_of(capsys, "fit", *words, "--help-all"))

    def test_its_variables(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.setenv("GRACE_IRL_METHOD", "toy")
        monkeypatch.setenv("GRACE_IRL_TOY_DARING", "3")
        assert main(["fit", "--demos", "x"]) == 2
        assert "'toy.daring' is 3" in capsys.readouterr().err

    def test_its_keywords(self) -> None:
        own: dict[str, Any] = {"toy_daring": 3}
        with pytest.raises(InputError, match=r"'toy.daring' is 3"):
            grace_irl.fit("x", method="toy", **own)
        with pytest.raises(InputError, match="'toy_daring' has no effect with method 'grace'"):
            grace_irl.fit("x", **own)


HEAVY = """
import sys
from grace_irl.cli import main
code = main(sys.argv[1:])
print(sorted({"numpy", "scipy", "pyarrow", "torch", "lxml"} & set(sys.modules)))
sys.exit(code)
"""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["fit", "--help"], ["compare", "--help-all"], ["fti"]]
)
def test_help_imports_no_library_of_numbers(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", HEAVY, *arguments], capture_output=True, text=True, cwd=ROOT)
    assert ast.literal_eval(done.stdout.splitlines()[-1]) == []
