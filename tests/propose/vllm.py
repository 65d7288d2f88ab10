"""A real vLLM server for tests: with random weights (for the protocol, not for the answers).

Where it comes from, first that applies:

- GRACE_IRL_TEST_LLM_URL: a vLLM server that runs already;
- ../shared/tools/local_vllm.sh, beside the project: installs vLLM for CPUs into an environment of its own, once (2 GB
  in the user's cache folder, or in GRACE_IRL_TEST_VLLM_DIR), and starts it, which takes about a minute;
- nowhere: the tests that want one are skipped, and say why.

Tests that use the fixture carry the marker `vllm`: `-m "not vllm"` leaves them out.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from grace_irl.errors import GraceError
from grace_irl.propose.client.local_server import LocalServer
from grace_irl.propose.client.serve_command import ServeCommand
from tests.frame.tree import ROOT

SCRIPT = ROOT.parent / "shared" / "tools" / "local_vllm.sh"
MEMORY = 5.0  # GiB that the server takes while it starts, and some
START = 400.0  # seconds; a minute is usual


class Unavailable(Exception):  # noqa: N818  a reason, no defect
    """Why there is no server, for people."""


@pytest.fixture(scope="module")
def vllm_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real vLLM server that serves one model with a context of 8192 tokens."""
    running = os.environ.get("GRACE_IRL_TEST_LLM_URL", "")
    if running:
        yield running.rstrip("/")
        return
    try:
        command = _installed()
    except Unavailable as reason:
        pytest.skip(f"no vLLM server: {reason}")
    with LocalServer(command, tmp_path_factory.mktemp("vllm") / "server.log") as server:
        try:
            server.wait_until_ready(START, lambda seconds, line: None)
        except GraceError as error:
            pytest.skip(f"no vLLM server: {error}")
        yield command.url


def metric(url: str, name: str) -> float:
    """A counter of vLLM's, summed over its labels; where another server is behind the address the test is skipped."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    values = [float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name}{{", f"{name} "))]
    if not values:
        pytest.skip(f"the server at {url} has no counter {name}")
    return sum(values)


def _installed() -> ServeCommand:
    if not SCRIPT.is_file():
        raise Unavailable("GRACE_IRL_TEST_LLM_URL is not set, and ../shared/tools/local_vllm.sh is not there")
    available = _available_gib()
    if available < MEMORY:
        raise Unavailable(f"{available:.1f} GiB of memory are free, and it takes {MEMORY:g}")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get("GRACE_IRL_TEST_VLLM_DIR") or cache / "grace-irl" / "vllm")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # of two sessions at a time one installs
            _install(folder)
    except OSError as error:
        raise Unavailable(f"{folder}: {error.strerror}") from None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ("bash", str(SCRIPT), "serve", str(folder), "dummy", str(port))
    environment = {"VLLM_CPU_KVCACHE_SPACE": os.environ.get("VLLM_CPU_KVCACHE_SPACE", "1")}
    return ServeCommand(words, environment, "dummy", f"http://127.0.0.1:{port}")


def _install(folder: Path) -> None:
    """Into the folder, unless this version of the script has done so."""
    done, version = folder / "installed", hashlib.sha256(SCRIPT.read_bytes()).hexdigest()
    if done.is_file() and done.read_text() == version:
        return
    done.unlink(missing_ok=True)
    path = os.environ.get("PATH", "")
    if shutil.which("uv") is None:
        _run(folder, 300, sys.executable, "-m", "venv", "--clear", str(folder / "uv"))
        _run(folder, 300, str(folder / "uv" / "bin" / "python"), "-m", "pip", "install", "--quiet", "uv")
        path = f"{folder / 'uv' / 'bin'}{os.pathsep}{path}"
    _run(folder, 1200, "bash", str(SCRIPT), "env", str(folder), path=path)
    _run(folder, 300, "bash", str(SCRIPT), "dummy", str(folder), path=path)
    done.write_text(version)


def _run(folder: Path, seconds: float, *command: str, path: str | None = None) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=seconds,
            cwd=folder,
            env={**os.environ, "PATH": path or os.environ.get("PATH", "")},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{' '.join(command)}: {error}") from None
    if done.returncode:
        said = " / ".join(done.stderr.strip().splitlines()[-3:])[-500:]
        raise Unavailable(f"{' '.join(command)} ended with code {done.returncode}: {said}")


def _available_gib() -> float:
    lines = Path("/proc/meminfo").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return float(fields["MemAvailable"].split()[0]) / 2**20
