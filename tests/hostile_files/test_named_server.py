"""`OPENAI_BASE_URL`, which other tools read, too: it names a server only if the command itself asks for a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grace_irl.cli import main
from grace_irl.config import Config
from grace_irl.errors import InputError
from grace_irl.runs.acting import worded
from tests.hostile_files.traps import ANSWER, changed, demos, line, run, stranger
from tests.propose.client.server import ChatServer

THEIRS, MINE = "http://127.0.0.1:9/v1", "http://127.0.0.1:8000"
LLM = {"proposer.name": "llm"}


@pytest.fixture(autouse=True)
def variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GRACE_IRL_API_KEY", "GRACE_IRL_LLM_URL", "GRACE_IRL_PROPOSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", THEIRS)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-users-own-key")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(answer=lambda _: f"```python\n{ANSWER}```\n") as found:
        yield found


def test_it_counts_if_the_command_asks_for_a_model() -> None:
    assert worded(None, (), LLM).model.url == THEIRS
    assert worded(None, ("proposer.name=llm",), None).model.url == THEIRS


@pytest.mark.parametrize(
    "flags", [{}, {"proposer.name": "manual"}, {"proposer.name": "synthesis"}, {"model.name": "x"}]
)
def test_it_alone_sends_nothing_anywhere(flags: dict[str, object]) -> None:
    assert worded(None, (), flags).model.url == ""


def test_what_the_user_says_of_a_server_goes_before_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert worded(None, (), {**LLM, "model.url": MINE}).model.url == MINE
    assert worded(None, (f"model.url={MINE}",), LLM).model.url == MINE
    said = []
    monkeypatch.setattr("grace_irl.runs.fit.start", lambda config, *_: said.append(config.model.url) or 1 / 0)
    monkeypatch.setenv("GRACE_IRL_LLM_URL", MINE)
    monkeypatch.chdir(tmp_path)  # a folder of its own is reserved here
    main(["fit", "--demos", str(tmp_path), "--proposer", "llm"])
    assert said == [MINE]


def test_an_empty_one_names_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "  ")
    assert worded(None, (), LLM).model.url == ""


def test_a_file_neither_asks_for_it_nor_hides_behind_it(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[proposer]\nname = "llm"\n')
    assert worded(file, (), None).model.url == ""
    file.write_text('[model]\nurl = "http://stranger.example"\n')
    with pytest.raises(InputError, match="a settings file must not give"):
        worded(file, (), LLM)


def test_a_recording_does_not_ask_for_it() -> None:
    recorded = Config().model_copy(update={"proposer": Config().proposer.model_copy(update={"name": "llm"})})
    assert worded(None, (), None, recorded).model.url == ""


def test_the_run_says_where_prompts_go_and_goes_on_without_the_variable(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    small = ("--answer-format", "code", "--samples-per-call", "1")
    folder = run(tmp_path, demos(tmp_path), "--proposer", "llm", *small)
    assert f"prompts go to {server.url}, with the key in OPENAI_API_KEY" in capsys.readouterr().err
    assert set(server.authorizations) == {"Bearer sk-the-users-own-key"}
    monkeypatch.setenv("OPENAI_BASE_URL", THEIRS)
    assert main(["fit", "--resume", str(folder), "--generations", "2", "--max-calls", "6"]) == 0
    assert f"prompts go to {server.url}" in capsys.readouterr().err


def test_a_strangers_run_does_not_use_it(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = demos(tmp_path)
    folder = changed(run(tmp_path, data), proposer__name="llm")
    stranger(monkeypatch, tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    capsys.readouterr()
    assert main(["fit", "--resume", str(folder), "--demos", str(data)]) == 2
    assert "grace-irl: " in line(capsys)
    assert server.authorizations == []
