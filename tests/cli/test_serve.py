"""`grace-irl serve` with a stand-in for vLLM: a real process that listens, with a child."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.frame.tree import ROOT

FAKE = ROOT / "tests" / "propose" / "client" / "fake_vllm.py"


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    """The folder of an environment with a vllm command."""
    program = tmp_path / "env" / "bin" / "vllm"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "$@"\n')
    program.chmod(0o755)
    return tmp_path / "env"


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def started(folder: Path, *arguments: str, mode: str = "") -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if name != "GRACE_IRL_VLLM"}
    return subprocess.Popen(
        [sys.executable, ROOT / "cli.py", "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=kept | {"FAKE_VLLM": mode, "FAKE_VLLM_DIR": str(folder), "TMPDIR": str(folder)},
    )


@contextlib.contextmanager
def running(folder: Path, *arguments: str, mode: str = "") -> Iterator[subprocess.Popen[str]]:
    process = started(folder, *arguments, mode=mode)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def told(folder: Path) -> dict[str, Any]:
    """What the stand-in wrote, as soon as it has."""
    until = time.monotonic() + 60
    while not (folder / "told.json").exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    found: dict[str, Any] = json.loads((folder / "told.json").read_text())
    return found


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_how_to_use_it_and_stops_with_its_children(
    vllm: Path, port: int, tmp_path: Path, number: signal.Signals
) -> None:
    with running(
        tmp_path, "--model", "some/model", "--port", str(port), "--vllm", str(vllm), "--", "--seed", "3"
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == f"grace-irl fit --demos DEMOS --llm-url http://127.0.0.1:{port} --model some/model\n"
        found = told(tmp_path)
        assert found["arguments"][1:3] == ["serve", "some/model"]
        assert found["arguments"][-2:] == ["--seed", "3"]
        assert all(map(lives, found["pids"]))
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert "stopping" in err
    assert "Traceback" not in err
    assert not any(map(lives, found["pids"]))


def test_interrupted_while_it_starts(vllm: Path, port: int, tmp_path: Path) -> None:
    arguments = ["--model", "some/model", "--port", str(port), "--vllm", str(vllm)]
    with running(tmp_path, *arguments, mode="silent") as process:
        found = told(tmp_path)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "interrupted" in err
    assert not any(map(lives, found["pids"]))


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("crash", "the server ended with code 3: ValueError: the model is not for this machine; its log: "),
        ("late", "the server ended with code 4: RuntimeError: the engine died; its log: "),
    ],
)
def test_a_server_that_ends_by_itself(mode: str, words: str, vllm: Path, port: int, tmp_path: Path) -> None:
    arguments = ["--model", "some/model", "--port", str(port), "--vllm", str(vllm)]
    with running(tmp_path, *arguments, mode=mode) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert words in err
    assert not any(map(lives, told(tmp_path)["pids"]))


def test_a_server_that_is_never_ready(vllm: Path, port: int, tmp_path: Path) -> None:
    arguments = ["--model", "m", "--port", str(port), "--vllm", str(vllm), "--start-timeout", "0.5"]
    with running(tmp_path, *arguments, mode="silent") as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "not ready after 0.5 s" in err
    assert not any(map(lives, told(tmp_path)["pids"]))


def test_the_command_alone(tmp_path: Path) -> None:
    """Also where vLLM is not installed."""
    with running(tmp_path, "--model", "Qwen/Qwen2.5-Coder-7B-Instruct", "--dry-run") as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    words = shlex.split(out)
    assert words[words.index("serve") + 1] == "Qwen/Qwen2.5-Coder-7B-Instruct"
    assert "machine: " in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no --model; expected a name on Hugging Face or a folder"),
        (["--model", "m", "--port", "0"], "--port 0; expected 1 to 65535"),
        (["--model", "m", "--max-model-len", "0"], "--max-model-len 0; expected 1 or more"),
        (["--model", "m", "--vllm", "nowhere"], "--vllm nowhere: no program there"),
        (["--model", "m", "--vllm", "."], "--vllm .: no program there"),
    ],
)
def test_bad_input(arguments: list[str], words: str, tmp_path: Path) -> None:
    with running(tmp_path, *arguments) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    (line,) = [line for line in err.splitlines() if line.startswith("grace-irl: ")]
    assert words in line


def test_a_port_that_is_taken(vllm: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        arguments = ["--model", "m", "--vllm", str(vllm), "--port", str(taken.getsockname()[1])]
        with running(tmp_path, *arguments) as process:
            _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "choose another --port" in err
    assert not (tmp_path / "told.json").exists()
