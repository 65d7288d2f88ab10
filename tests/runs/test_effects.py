"""Settings without effect: refused in one line if the user gives them, however; defaults and a run's own never are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import grace_irl
from grace_irl.cli import main
from grace_irl.compare.effects import require_effect_on_searches
from grace_irl.compare.settings import Settings, comparison_of
from grace_irl.config import Config
from grace_irl.demos import save
from grace_irl.errors import InputError
from grace_irl.methods.registry import METHODS
from grace_irl.runs.config import resolve, settings_of, to_toml
from grace_irl.runs.effects import NEEDS, require_effect, words
from grace_irl.runs.proposers import settled
from tests.fakes.data import vector_set
from tests.fakes.scripted_proposer import ScriptedProposer

URL = "http://127.0.0.1:9"


@pytest.fixture
def demos(tmp_path: Path) -> Path:
    path = tmp_path / "demos.parquet"
    save(vector_set(), path)
    return path


def refusal(capsys: pytest.CaptureFixture[str], arguments: Sequence[object]) -> str:
    """The line that refuses a command."""
    assert main([str(each) for each in arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--temperature", "0.8"], "--temperature: no effect, since this run has no model (proposer 'synthesis')"),
        (["--model", "m"], "expected --llm-url URL, or this setting left out"),
        (["--model", "m", "--repair", "--concurrency", "2"], "--model, --concurrency: no effect"),
        (["--llm-url", URL, "--proposer", "synthesis"], "expected --proposer llm, or this setting left out"),
        (["--llm-url", URL, "--proposer", "manual"], "--llm-url: no effect"),
        (["--concurrency", "3", "--proposer", "manual"], "--concurrency: no effect"),
        (["--images"], "--images: no effect, since this run has no prompts"),
        (["--no-repair"], "--repair: no effect"),
        (["--expert-only", "0.1"], "expected --llm-url URL or --proposer manual"),
        (["--max-tokens", "9"], "--max-tokens: no effect, since this run has no model"),
        (["--max-cost", "9"], "--max-cost: no effect, since this run has no model with a price"),
        (["--max-cost", "9", "--llm-url", URL], "expected a model and --price-in or --price-out"),
        (["--set", "model.price_in=1"], "--set model.price_in: no effect"),
        (["--seed-synthesis", "3"], "--seed-synthesis: no effect, since this run has no other author"),
        (["--env", "CartPole-v1"], "--env: no effect, since this run has no expansion; expected --expand M"),
        (["--env-steps", "5", "--rollouts", "3"], "--env-steps, --rollouts: no effect"),
        (["--expand", "0", "--trust-reward"], "--trust-reward: no effect"),
        (["--set", "expand.growth=2"], "--set expand.growth: no effect"),
        (["--goals", "g.toml", "--label", "last"], "--goals: no effect, since this run has no goal labels"),
        (["--set", "proposer.recording=x"], "expected --replay RUN"),
        (["--max-tokens", "9", "--proposer", "drafts"], "--max-tokens: no effect, since this run has no model"),
        (["--max-cost", "9", "--proposer", "drafts"], "--max-cost: no effect"),
        (
            ["--method", "random", "--samples-per-call", "4", "--llm-url", URL],
            "--samples-per-call has no effect with this method; expected it with --method grace or map-elites, or left",
        ),
        (["--method", "eureka", "--set", "search.samples=1", "--llm-url", URL], "no effect with method 'eureka'"),
        (
            ["--method", "eureka", "--programs", "3"],
            "expected it with --method map-elites, random, revolve or rf-agent, or left out",
        ),
        (["--prompt-tokens", "5000", "--images", "--proposer", "drafts"], "--prompt-tokens, --images: no effect"),
        (
            ["--method", "rf-agent", "--task", "reacher", "--llm-url", URL, "--images", "--prompt-scale", "0.5"],
            "--prompt-scale, --images: no effect, since this run has a task, so that trained policies judge programs",
        ),
    ],
)
def test_what_changes_nothing_is_refused_before_anything_is_written(
    arguments: list[str], said: str, demos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert said in refusal(capsys, ["fit", "--demos", demos, "--out", out, *arguments])
    assert not out.exists()


def test_a_variable_is_named_as_one(
    demos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRACE_IRL_TEMPERATURE", "0.3")
    assert "GRACE_IRL_TEMPERATURE: no effect" in refusal(capsys, ["fit", "--demos", demos])
    assert ": --temperature: no effect" in refusal(capsys, ["fit", "--demos", demos, "--temperature", "0.4"])


def test_a_file_is_refused_for_values_that_are_not_the_defaults(
    demos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[model]\ntemperature = 0.8\ntimeout = 7\n[expand]\nsteps = 100000\n")
    said = refusal(capsys, ["fit", "--demos", demos, "--config", file])
    assert f"model.timeout in {file}: no effect" in said
    assert "temperature" not in said


def test_a_keyword_is_refused(demos: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^temperature: no effect"):
        grace_irl.fit(demos, temperature=0.8, out=tmp_path / "run")
    with pytest.raises(InputError, match=r"no model \(a proposer of the caller's own\)"):
        grace_irl.fit(demos, temperature=0.8, proposer=ScriptedProposer(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_repeats_and_goes_on_with_all_that_it_wrote(
    demos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    few = ["--generations", "0", "--max-calls", "2"]
    assert main(["fit", "--demos", str(demos), "--out", str(first), *few]) == 0
    assert main(["fit", "--config", str(first / "config.toml"), "--out", str(again)]) == 0
    assert main(["fit", "--resume", str(first), "--max-calls", "3"]) == 0
    capsys.readouterr()
    assert "--max-tokens: no effect" in refusal(capsys, ["fit", "--resume", first, "--max-tokens", "3"])
    assert "--trust-reward: no effect" in refusal(capsys, ["fit", "--resume", first, "--trust-reward"])
    replay = ["fit", "--replay", first, "--out", tmp_path / "replayed"]
    assert "--temperature: no effect" in refusal(capsys, [*replay, "--temperature", "0.3"])
    assert "expected no --replay" in refusal(capsys, [*replay, "--start-from", first])
    assert main([str(each) for each in replay]) == 0


@pytest.mark.parametrize("method", ["random", "eureka"])
def test_the_file_of_a_run_serves_another_method(method: str, tmp_path: Path) -> None:
    """What the run chose by itself is no setting of the user, and none other is lost."""
    file, flags = tmp_path / "config.toml", {"method": method}
    file.write_text(to_toml(settled(resolve())))
    require_effect(resolve(file, flags=flags), words(resolve(file, flags=flags), file, (), flags))
    file.write_text(to_toml(settled(resolve(flags={"expand.rounds": 2}))))
    with pytest.raises(InputError, match=rf"^expand.rounds in {file}: no effect with method '{method}'"):
        require_effect(resolve(file, flags=flags), words(resolve(file, flags=flags), file, (), flags))
    file.write_text("[search]\nsamples = 4\n")
    with pytest.raises(InputError, match=r"^search.samples in .*: no effect"):
        require_effect(resolve(file, flags=flags), words(resolve(file, flags=flags), file, (), flags))
    sets = ("search.samples=none",)
    require_effect(resolve(file, sets, flags), words(resolve(file, sets, flags), file, sets, flags))


def accepted(*sets: str, author: str | None = None, **flags: Any) -> None:
    values = {key.replace("__", "."): value for key, value in flags.items()}
    config = resolve(sets=sets, flags=values)
    require_effect(config, words(config, None, sets, values), author)


def test_what_has_an_effect_is_accepted() -> None:
    model = {"model__url": URL}
    accepted("model.temperature=0.1", "stop.max_tokens=9", "proposer.seed_synthesis=4", **model)
    accepted("stop.max_cost=1", "model.price_out=2", **model)
    accepted("model.repair=false", "model.context=x", "search.expert_only=0.1", proposer__name="manual")
    accepted("expand.steps=9", "expand.trust=true", expand__rounds=1)
    accepted("search.elite=2", "search.samples=3", "search.lag=2", "data.field_names=false", "sandbox.workers=1")
    accepted("proposer.start_from=[]", "data.goals=x")
    accepted("model.temperature=0.1", proposer__name="replay", expand__rounds=2, **model)  # later rounds ask it
    accepted("stop.max_cost=1", "model.price_out=2", proposer__name="replay")  # recorded tokens have prices, too
    accepted("model.price_out=2", "stop.max_tokens=5", author="")


def test_every_need_is_known_and_used() -> None:
    needs = {each.needs for name in METHODS for each in settings_of(name).values()}
    assert {name for some in needs for name in some.split(", ")} == {"", *NEEDS}


@pytest.mark.parametrize(
    ("comparison", "fit", "said"),
    [
        ({}, {"expand.steps": 5}, "--env-steps has no effect in a comparison; expected --steps"),
        ({}, {"expand.env": "x"}, "expected --env"),
        ({}, {"seed": 3}, "expected --seeds"),
        ({"methods": ("gail", "bc")}, {"search.population": 3, "expand.trust": True}, ""),
        ({"reward": "r.py"}, {"search.population": 3}, "--reward takes the place of the search"),
        ({"reward": "r.py"}, {"expand.trust": True, "expand.form": "soft"}, ""),
        ({}, {"expand.growth": 2.0}, "expected --expand M"),
        ({}, {"expand.growth": 2.0, "expand.rounds": 2}, ""),
        ({}, {"model.temperature": 2.0}, "expected --llm-url URL"),
        ({"methods": ("gail", "bc")}, {"model.url": URL, "data.label": "goal"}, ""),
        ({"methods": ("grace", "eureka"), "task": "reacher"}, {"model.url": URL, "model.images": True}, ""),
        ({"methods": ("map-elites", "forge")}, {"expand.form": "soft"}, ""),
        ({"methods": ("grace", "eureka"), "task": "reacher"}, {"expand.form": "soft"}, ""),
        (
            {"methods": ("eureka", "ppo-true"), "task": "reacher"},
            {"expand.form": "soft"},
            "judge the rewards of eureka",
        ),
    ],
)
def test_comparisons(comparison: dict[str, object], fit: dict[str, object], said: str) -> None:
    config = resolve(flags=fit, base=Config())
    settings, given = Settings(comparison_of(comparison), config), words(config, None, (), fit)
    if not said:
        require_effect_on_searches(settings, given)
        return
    with pytest.raises(InputError) as caught:
        require_effect_on_searches(settings, given)
    assert said in str(caught.value)


def test_compare_refuses_in_one_line(demos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--reward", "reward.py", "--set", "search.population=3"]
    said = refusal(capsys, ["compare", "--demos", demos, "--env", "CartPole-v1", *words])
    assert "--set search.population: no effect, since --reward takes the place of the search" in said


@pytest.mark.parametrize("author", ["synthesis", "drafts", "manual", "llm"])
def test_a_replay_has_no_other_author(
    author: str, demos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fit", "--demos", str(demos), "--out", str(tmp_path / "run"), "--max-calls", "2", "--workers", "1"]
    assert main(words) == 0
    capsys.readouterr()
    said = refusal(capsys, ["fit", "--replay", tmp_path / "run", "--proposer", author, "--out", tmp_path / "again"])
    assert f"--replay beside --proposer {author}; expected one or the other" in said
    assert not (tmp_path / "again").exists()
