"""Finding vLLM, and stopping what does not want to stop."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from grace_irl.errors import InputError
from grace_irl.propose.client import local_server
from grace_irl.propose.client.local_server import LocalServer, find_vllm
from grace_irl.propose.client.serve_command import ServeCommand
from tests.cli.test_serve import FAKE, lives, told


def test_vllm_is_found_as_given_by_the_environment_or_on_the_path(tmp_path: Path) -> None:
    program = tmp_path / "env" / "bin" / "vllm"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    env = str(tmp_path / "env")
    assert find_vllm(str(program), {}) == str(program)
    assert find_vllm(env, {"GRACE_IRL_VLLM": "elsewhere"}) == str(program)
    assert find_vllm("", {"GRACE_IRL_VLLM": env}) == str(program)
    assert find_vllm("", {"PATH": str(program.parent)}) == str(program)
    with pytest.raises(InputError, match=r"GRACE_IRL_VLLM elsewhere: no program there"):
        find_vllm("", {"GRACE_IRL_VLLM": "elsewhere"})
    with pytest.raises(InputError, match=r"vLLM is not installed; .*pip install vllm, then grace-irl serve --vllm ENV"):
        find_vllm("", {"PATH": str(tmp_path)})


def test_what_ignores_a_polite_request_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_server, "GENTLE", 0.2)
    monkeypatch.setenv("FAKE_VLLM", "stubborn")
    monkeypatch.setenv("FAKE_VLLM_DIR", str(tmp_path))
    words = (sys.executable, str(FAKE), "serve", "m", "--served-model-name", "m", "--port", "0")
    with LocalServer(ServeCommand(words, {}, "m", "http://127.0.0.1:9"), tmp_path / "log"):
        pids = told(tmp_path)["pids"]
        assert all(map(lives, pids))
    assert not any(map(lives, pids))


def test_the_log_names_the_reason(tmp_path: Path) -> None:
    server = LocalServer(ServeCommand((), {}, "m", ""), tmp_path / "log")
    (tmp_path / "log").write_text("start\nValueError: too large\n  at line 3\n\n")
    assert server.reason() == "ValueError: too large"
    assert server.last_line() == "at line 3"
    lines = "ValidationError: 1 error\n  Value error, no such model\n  further information: errors\n"
    (tmp_path / "log").write_text(lines)
    assert server.reason() == "Value error, no such model"
    (tmp_path / "log").write_text("")
    assert server.reason() == "it printed nothing"
