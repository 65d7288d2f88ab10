"""Folders of runs: paths, addresses and trust count if this user made them on this machine, else they are named."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.errors import InputError
from grace_irl.pages import page
from grace_irl.runs import fit as fits
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.expand import expansion
from tests.hostile_files.traps import ANSWER, SMALL, changed, demos, line, loaded, run, stranger, trap
from tests.propose.client.server import Behaviour, ChatServer

KEY = "sk-the-users-own-key"
MORE = ("--generations", "2", "--max-calls", "6")


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("GRACE_IRL_API_KEY", KEY)
    return KEY


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(answer=lambda _: f"```python\n{ANSWER}```\n") as found:
        yield found


def asked_of(server: ChatServer, folder: Path, *more: str) -> Path:
    """A run whose programs a server wrote."""
    url = ("--llm-url", server.url, "--answer-format", "code", "--samples-per-call", "1")
    return run(folder, demos(folder), *url, *more)


def test_the_key_goes_to_no_server_that_a_folder_names(
    tmp_path: Path, server: ChatServer, key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = asked_of(server, tmp_path)
    before = len(server.authorizations)
    stranger(monkeypatch, tmp_path)
    assert main(["fit", "--resume", str(folder), *MORE]) == 2
    said = line(capsys)
    assert f"--llm-url {server.url}" in said
    assert "--demos" in said
    assert len(server.authorizations) == before


@pytest.mark.parametrize("changes", [{"model__url": ""}, {"model__context": "/etc/hostname"}])
def test_what_was_changed_in_ones_own_folder_does_not_count(
    tmp_path: Path, server: ChatServer, key: str, changes: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = asked_of(server, tmp_path)
    with ChatServer() as evil:
        changed(folder, **{name: value or evil.url for name, value in changes.items()})
        asked = len(server.payloads)
        assert main(["fit", "--resume", str(folder), *MORE]) == 2
        assert "are not trusted; expected on the command line: --" in line(capsys)
        assert not evil.authorizations
        assert len(server.payloads) == asked


def test_what_is_named_again_counts_and_needs_no_naming_after_that(
    tmp_path: Path, server: ChatServer, key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = asked_of(server, tmp_path)
    stranger(monkeypatch, tmp_path)
    (tmp_path / "elsewhere").mkdir()
    data = shutil.move(tmp_path / "set.parquet", tmp_path / "elsewhere" / "set.parquet")
    with ChatServer(answer=server.answer) as mine:
        named = ("--demos", str(data), "--llm-url", mine.url)
        assert main(["fit", "--resume", str(folder), *MORE, *named]) == 0
        assert mine.authorizations
        assert set(mine.authorizations) == {f"Bearer {KEY}"}
        said = capsys.readouterr()
        assert f"prompts go to {mine.url}, with the key in GRACE_IRL_API_KEY" in said.err
        assert KEY not in said.err + said.out
        assert main(["fit", "--resume", str(folder), "--generations", "3", "--max-calls", "8"]) == 0


def test_a_label_that_asks_the_model_asks_no_server_that_a_folder_names(
    tmp_path: Path, server: ChatServer, key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal states are asked of a model before anything else; a run that goes on has the labels that it began with."""
    folder = asked_of(server, tmp_path)
    asked = len(server.authorizations)
    stranger(monkeypatch, tmp_path)
    resumed = ["fit", "--resume", str(folder), *MORE, "--label", "goal"]
    assert main(resumed) == 2
    assert f"--llm-url {server.url}" in line(capsys)
    with ChatServer() as mine:
        assert main([*resumed, "--demos", str(tmp_path / "set.parquet"), "--llm-url", mine.url]) == 2
        assert "setting 'data.label' was 'all' when the run began and is 'goal' now" in line(capsys)
        assert not mine.authorizations
    assert len(server.authorizations) == asked


def test_goal_states_that_are_still_to_be_asked_for_are_not_asked_of_a_folders_server(
    tmp_path: Path, server: ChatServer, key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that was stopped before the model had named them."""
    server.rule = lambda _: Behaviour(status=401, body=b"{}")
    words = ("--label", "goal", "--llm-url", server.url, "--answer-format", "code")
    folder = run(tmp_path, demos(tmp_path), *words, code=2)
    asked = len(server.authorizations)
    stranger(monkeypatch, tmp_path)
    resumed = ["fit", "--resume", str(folder), *MORE]
    assert main(resumed) == 2
    assert f"--llm-url {server.url}" in line(capsys)
    assert len(server.authorizations) == asked
    with ChatServer(answer=lambda _: "none of this is a goal") as mine:
        assert main([*resumed, "--demos", str(tmp_path / "set.parquet"), "--llm-url", mine.url]) in (1, 2)
        assert mine.authorizations
    assert len(server.authorizations) == asked


def test_reshaping_asks_no_server_that_a_folder_names(
    tmp_path: Path, server: ChatServer, key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = asked_of(server, tmp_path)
    asked = len(server.authorizations)
    stranger(monkeypatch, tmp_path)
    resumed = ["fit", "--resume", str(folder), "--reshape", "2", "--max-calls", "12"]
    assert main(resumed) == 2
    assert f"--llm-url {server.url}" in line(capsys)
    with ChatServer(answer=server.answer) as mine:
        assert main([*resumed, "--demos", str(tmp_path / "set.parquet"), "--llm-url", mine.url]) == 0
        assert any("steadily" in json.dumps(payload) for payload in mine.payloads)
        assert set(mine.authorizations) == {f"Bearer {KEY}"}
    assert len(server.authorizations) == asked


def test_a_line_that_is_copied_into_a_shell_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = changed(run(tmp_path, demos(tmp_path)), model__url="http://h/$(touch x); touch y", expand__env="a b:$(z)")
    stranger(monkeypatch, tmp_path)
    assert main(["fit", "--resume", str(folder)]) == 2
    said = line(capsys).partition("command line: ")[2].removesuffix(f" ({page('security')})")
    words = shlex.split(said.replace(", --", " --"))
    assert words[2:] == ["--llm-url", "http://h/$(touch x); touch y", "--env", "a b:$(z)"]


def test_other_demonstrations_named_again_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run(tmp_path, demos(tmp_path))
    assert main(["demos", "scramble", str(tmp_path / "set.parquet"), str(tmp_path / "scrambled.parquet")]) == 0
    stranger(monkeypatch, tmp_path)
    capsys.readouterr()
    assert main(["fit", "--resume", str(folder), *MORE, "--demos", str(tmp_path / "scrambled.parquet")]) == 2
    assert "not those that the run began with" in line(capsys)


def test_ones_own_folder_needs_no_naming_and_may_move(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run(tmp_path, demos(tmp_path))
    assert main(["fit", "--resume", str(folder), *MORE]) == 0
    folder.rename(tmp_path / "moved")
    assert main(["fit", "--resume", str(tmp_path / "moved"), "--max-calls", "8"]) == 0
    shutil.copytree(tmp_path / "moved", tmp_path / "copy")  # somebody may have changed it on the way
    assert main(["fit", "--resume", str(tmp_path / "copy"), "--max-calls", "9"]) == 2
    assert "expected on the command line: --demos" in line(capsys)


def test_files_of_ones_own_run_may_be_named_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = demos(tmp_path)
    folder = run(tmp_path, given)
    monkeypatch.setenv("GRACE_IRL_OUT", str(tmp_path / "other"))  # for new runs
    file = tmp_path / "set.parquet"
    file.rename(tmp_path / "moved.parquet")
    capsys.readouterr()
    for flag in ("--resume", "--replay"):
        assert main(["fit", flag, str(folder), *(MORE if flag == "--resume" else ())]) == 2
        assert "or name moved demonstrations again: --demos PATH" in line(capsys)
    assert main(["fit", "--resume", str(folder), *MORE, "--demos", str(tmp_path / "moved.parquet")]) == 0
    held = resolve(folder / "config.toml").data
    assert (held.demos, held.experts) == ((str(tmp_path / "moved.parquet"),), ())
    whole = load([str(tmp_path / "moved.parquet")])
    apart = [str(tmp_path / "experts.parquet"), str(tmp_path / "negatives.parquet")]
    for name, role in zip(apart, ("expert", "negative"), strict=True):
        save(replace(whole, items=tuple(item for item in whole.items if item.role == role)), Path(name))
    capsys.readouterr()
    assert main(["fit", "--resume", str(folder), *MORE, "--experts", apart[0], "--negatives", apart[1]]) == 0
    held = resolve(folder / "config.toml").data
    assert (held.demos, held.experts, held.negatives) == ((), (apart[0],), (apart[1],))


def test_without_a_state_directory_runs_work_and_are_named_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a container whose home is lost with it."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    data = demos(tmp_path)
    folder = run(tmp_path, data)
    assert main(["fit", "--resume", str(folder), *MORE]) == 2
    assert f"--demos {data}" in line(capsys)
    assert main(["fit", "--resume", str(folder), *MORE, "--demos", str(data)]) == 0


def test_a_state_directory_that_others_write_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = run(tmp_path, demos(tmp_path))
    records = tmp_path / "state" / "grace-irl" / "runs"
    assert [path.stat().st_mode & 0o777 for path in (records, records.parent)] == [0o700, 0o700]
    assert main(["fit", "--resume", str(folder), *MORE]) == 0
    records.chmod(0o777)
    assert main(["fit", "--resume", str(folder), "--max-calls", "8"]) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be in the home of somebody else")
def test_root_keeps_nothing_in_the_home_of_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with sudo: a folder of root's there would be one in which the user keeps nothing any more."""
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 12345, 12345)
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ".local" / "state"))
    run(tmp_path, demos(tmp_path))
    assert not list(home.iterdir())


def test_a_folder_trusts_no_reward_and_imports_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An expansion whose folder says what only the user says."""
    evil, data = trap(tmp_path), demos(tmp_path)
    folder = tmp_path / "expansion"
    inner = run(tmp_path, data)
    (folder / "rounds" / "0").mkdir(parents=True)
    inner.rename(folder / "rounds" / "0" / "run")
    changed(folder / "rounds" / "0" / "run", expand__rounds=1, expand__env=evil.name, expand__trust=True)
    stranger(monkeypatch, tmp_path)
    assert main(["fit", "--resume", str(folder), "--demos", str(data)]) == 2
    assert f"--env {evil.name}" in line(capsys)
    assert not evil.sprung
    trusted: list[bool] = []

    def learner(config: object, parts: object) -> None:
        trusted.append(config.expand.trust)  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    monkeypatch.setattr(expansion, "_learner", learner)
    assert main(["fit", "--resume", str(folder), "--demos", str(data), "--env", evil.name]) == 130
    assert trusted == [False]


def test_files_that_a_strangers_run_names_are_not_opened_for_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = demos(tmp_path)
    folder = run(tmp_path, data)
    stranger(monkeypatch, tmp_path)
    assert main(["report", str(folder), "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "files that somebody else's run names are not opened" in " ".join(page.replace("&#39;", "'").split())
    assert main(["report", str(folder), "--demos", str(data), "--out", str(tmp_path / "named.html")]) == 0
    assert "are not opened" not in (tmp_path / "named.html").read_text()
    for command in (["show", str(folder)], ["export", str(folder), "--out", str(tmp_path / "reward.py")]):
        assert main(command) == 0


def test_limits_of_the_sandbox_are_named_again_where_they_are_wider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = demos(tmp_path)
    folder = run(tmp_path, data)
    changed(folder, sandbox__memory_mb=10**6, sandbox__workers=500)
    stranger(monkeypatch, tmp_path)
    assert main(["fit", "--resume", str(folder), *MORE, "--demos", str(data)]) == 2
    assert "--sandbox-memory-mb 1000000" in line(capsys)
    said = ("--set", "sandbox.memory_mb=1000000")
    assert main(["fit", "--resume", str(folder), *MORE, "--demos", str(data), *said]) == 0
    assert resolve(folder / "config.toml").sandbox.workers is None


def test_python_that_brings_its_demonstrations_names_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = demos(tmp_path)
    folder = run(tmp_path, data)
    stranger(monkeypatch, tmp_path)
    assert fits.resume(folder, {"stop.max_calls": 6}, parts=Parts(loaded(data))).best.fitness <= 0.0


def test_a_redirect_takes_neither_key_nor_prompt_elsewhere(
    tmp_path: Path, server: ChatServer, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with ChatServer() as evil:
        server.rule = lambda _: Behaviour(status=307, headers={"Location": f"{evil.url}/v1/chat/completions"}, body=b"")
        out = ("--out", str(tmp_path / "run"), "--llm-url", server.url, "--answer-format", "code", *SMALL)
        assert main(["fit", "--demos", str(demos(tmp_path)), *out]) == 2
        assert "redirects requests (HTTP 307" in line(capsys)
        assert not evil.payloads
        assert not evil.authorizations


def test_the_settings_of_a_file_say_nothing_that_only_the_user_says(
    tmp_path: Path, server: ChatServer, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    evil, data = trap(tmp_path), demos(tmp_path)
    files = {
        f'[model]\nurl = "{server.url}"': f"--llm-url {server.url}",
        '[model]\ncontext = "/etc/passwd"': "--context /etc/passwd",
        f'[expand]\nrounds = 1\nenv = "{evil.name}"': f"--env {evil.name}",
        "[expand]\nrounds = 1\ntrust = true": "--trust-reward",
        "[sandbox]\nallow_weak = true": "--allow-weak-sandbox",
    }
    for number, (text, flag) in enumerate(files.items()):
        path = tmp_path / f"{number}.toml"
        path.write_text(text)
        for command in (["fit"], ["compare", "--methods", "bc"]):
            assert main([*command, "--demos", str(data), "--config", str(path), "--out", str(tmp_path / "x")]) == 2
            assert f"which a settings file must not give; expected {flag} on the command line" in line(capsys)
    assert not evil.sprung
    assert not server.authorizations
    assert not (tmp_path / "x").exists()
    # What the user says as well, the file may say.
    (tmp_path / "0.toml").write_text(f'[model]\nurl = "http://192.0.2.1"\n[data]\ndemos = ["{data}"]\n')
    words = ("--llm-url", server.url, "--answer-format", "code", "--samples-per-call", "1")
    assert main(["fit", "--config", str(tmp_path / "0.toml"), "--out", str(tmp_path / "y"), *words, *SMALL]) == 0


def test_the_server_of_the_whole_is_that_of_its_parts(
    tmp_path: Path, server: ChatServer, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run within an expansion is the user's own, too: it must not go on with the server that it began with."""
    data = demos(tmp_path)
    whole = resolve(flags={"data.demos": (str(data),), "model.url": "http://127.0.0.1:9", "expand.rounds": 1})
    inner = asked_of(server, tmp_path, "--set", "sandbox.wall_s=50")
    changed(inner, expand__trust=True)
    asked = len(server.authorizations)
    with pytest.raises(InputError, match=r"no server at http://127\.0\.0\.1:9"):
        fits.resume(inner, {"stop.max_calls": 9, "search.generations": 5}, vouched=whole)
    assert len(server.authorizations) == asked


def test_an_expansion_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = demos(tmp_path)
    folder = tmp_path / "expansion"
    inner = run(tmp_path, data)
    (folder / "rounds" / "0").mkdir(parents=True)
    inner.rename(folder / "rounds" / "0" / "run")
    stranger(monkeypatch, tmp_path)
    shutil.move(data, tmp_path / "moved.parquet")

    def stop(config: object, parts: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(expansion, "_learner", stop)
    resumed = ["fit", "--resume", str(folder)]
    assert main(resumed) == 2
    assert main([*resumed, "--demos", str(tmp_path / "moved.parquet")]) == 130
    assert main(resumed) == 130
