"""`--no-field-names`: a model reads numbers, and people still read what they are called."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grace_irl.api import fit
from grace_irl.cli import main
from grace_irl.compare import comparison
from grace_irl.compare.settings import Settings
from grace_irl.demos import load, save
from grace_irl.errors import InputError
from grace_irl.rewards.file import load_reward
from tests.propose.client.server import ChatServer
from tests.propose.test_neutral import Model, two_tasks

NAMES = ("torso height", "thigh angle", "foot speed")
SIZE = ["--population", "3", "--elite", "1", "--generations", "2", "--held-out", "0", "--samples-per-call", "1"]


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(two_tasks("vector", tmp_path_factory.mktemp("sets")).paths[0])


def prompts(demos: str, out: Path, *flags: str) -> list[str]:
    """What a model was asked in a run that the synthesiser begins, so that its programs come back as parents."""
    with ChatServer(answer=(model := Model())) as server:
        seeded = ["--seed-synthesis", "2", "--llm-url", server.url, "--answer-format", "code", "--out", str(out)]
        assert main(["fit", "--demos", demos, *SIZE, *seeded, *flags]) == 0
    assert any("# The program" in prompt and "FIELDS" in prompt for prompt in model.prompts)
    return model.prompts


def test_no_prompt_holds_a_name_and_people_read_them(demos: str, tmp_path: Path) -> None:
    named = prompts(demos, tmp_path / "named")
    assert all(all(name in prompt for name in NAMES) for prompt in named)
    run = tmp_path / "run"
    for prompt in prompts(demos, run, "--no-field-names"):
        assert not [name for name in NAMES if name in prompt]
    listed = "x0 torso height, x1 thigh angle, x2 foot speed"
    for folder in (run, tmp_path / "named"):
        assert listed in (folder / "reward.py").read_text()
    assert "torso height" in (run / "report.html").read_text()


def test_a_recording_says_so_and_replays(demos: str, tmp_path: Path) -> None:
    prompts(demos, tmp_path / "run", "--no-field-names")
    recording = tmp_path / "run.jsonl"
    assert main(["export", str(tmp_path / "run"), "--recording", str(recording)]) == 0
    text = recording.read_text()
    assert json.loads(text.splitlines()[0])["config"]["data"]["field_names"] is False
    assert not [name for name in NAMES if name in text]
    again = tmp_path / "again"
    assert main(["fit", "--replay", str(recording), "--demos", demos, "--out", str(again)]) == 0
    old, new = ((folder / "reward.py").read_text() for folder in (tmp_path / "run", again))
    assert new.replace("proposer replay", "proposer llm") == old


def test_the_synthesiser_writes_neutral_names(demos: str, tmp_path: Path) -> None:
    run = fit(demos, out=tmp_path / "run", field_names=False, population=2, elite=1, generations=0, held_out=0.0)
    assert not [name for name in NAMES if name in run.best.source]
    assert "'x0'" in run.best.source.replace('"', "'")
    with pytest.raises(InputError, match=r"'data.field_names' was False when the run began and is True now"):
        fit(resume=run.folder, field_names=True)


def test_compare_hands_it_to_its_search(demos: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[Settings] = []

    def start(settings: Settings, *rest: Any) -> None:
        given.append(settings)
        raise InputError("enough")

    monkeypatch.setattr(comparison, "start", start)
    for flags in (["--no-field-names"], []):
        assert main(["compare", "--demos", demos, "--out", str(tmp_path / "out"), *flags]) == 2
    assert [settings.fit.data.field_names for settings in given] == [False, True]


@pytest.mark.slow
def test_a_whole_comparison_holds_no_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the prompts of every seed to the reward that a later seed is trained on."""
    pytest.importorskip("stable_baselines3", reason="the extra rl is not installed: pip install 'grace-irl[rl]'")
    from tests.compare.corridor import MAKE, SEARCH, write_demonstrations

    names, listed = ("torso height", "foot speed"), "x0 torso height, x1 foot speed"
    found = load([str(write_demonstrations(tmp_path / "plain"))])
    save(replace(found, metadata=replace(found.metadata, fields=names)), tmp_path / "set.parquet")
    words = ["--demos", str(tmp_path / "set.parquet"), "--env", MAKE, "--methods", "grace", "--seeds", "2", *SEARCH]
    words += ["--steps", "30", "--episodes", "2", "--looks", "1", "--set", "search.samples=1", "--trust-reward"]
    words += ["--set", "model.answer_format=code", "--set", "search.generations=2"]
    for flags in ([], ["--no-field-names"]):
        folder = tmp_path / f"out{len(flags)}"
        with ChatServer(answer=(model := Model())) as server:
            asked = ["compare", *words, *flags, "--out", str(folder), "--llm-url", server.url, "--json"]
            assert main(asked) == 0, capsys.readouterr().err
            assert main(["compare", "--resume", str(folder), "--seeds", "3", "--json"]) == 0
        results = json.loads(capsys.readouterr().out.strip().splitlines()[-1])["results"]
        assert [each["failure"] for each in results] == [""] * 3
        assert model.prompts
        assert {all(name in prompt for name in names) for prompt in model.prompts} == {not flags}
        assert {any(name in prompt for name in names) for prompt in model.prompts} == {not flags}
        for seed in range(3):
            job = folder / "jobs" / f"grace-{seed}"
            assert listed in (job / "fit" / "reward.py").read_text()  # people read them
            assert load_reward(job / "reward.py").source
    table = (tmp_path / "out1" / "table.md").read_text()
    assert not [name for name in names if name in table]
