"""A server process on this machine, for `grace-irl serve`: its start, the wait until it is ready, and its end."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

from grace_irl.errors import GraceError, InputError
from grace_irl.propose.client.serve_command import ServeCommand

VARIABLE = "GRACE_IRL_VLLM"  # environment variable with the path of vLLM
_ERROR = re.compile(r"[Ee]rror[:,] ")
GENTLE = 30.0  # seconds from SIGTERM to SIGKILL
TAIL = 20_000  # bytes at the end of the log that are searched for the reason of a failure


def find_vllm(given: str, environment: Mapping[str, str] = os.environ) -> str:
    """Find vLLM's program: at the path `given`, else at the path in the variable GRACE_IRL_VLLM, else on the PATH.

    Args:
        given: path of the program or of its Python environment; "" for none.
        environment: environment variables.

    Raises:
        InputError: the named path has no program, or the PATH has none. The second message says how to install vLLM.
    """
    named = given or environment.get(VARIABLE, "")
    if named:
        path = Path(named).expanduser()
        for each in (path, path / "bin" / "vllm", path / "vllm"):
            if each.is_file() and os.access(each, os.X_OK):
                return str(each)
        raise InputError(f"{'--vllm' if given else VARIABLE} {named}: no program there; expected vLLM's command")
    found = shutil.which("vllm", path=environment.get("PATH"))
    if found is None:
        raise InputError(
            "vLLM is not installed; it needs an environment of its own: python3 -m venv ENV && ENV/bin/pip install "
            f"vllm, then grace-irl serve --vllm ENV (or {VARIABLE}=ENV); any other server that speaks OpenAI's "
            "protocol does as well: grace-irl fit --llm-url"
        )
    return found


def check_port(host: str, port: int) -> None:
    """Raise InputError if the port cannot be used. The usual cause is another process that listens on it."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise InputError(f"cannot listen on {host}:{port} ({error.strerror}); choose another --port") from None


class LocalServer:
    """A context manager that runs a server process. On exit it stops the process and all its children.

    Args:
        command: the command that starts the server.
        log: file for the output of the process; by default a new temporary file.
    """

    def __init__(self, command: ServeCommand, log: Path | None = None) -> None:
        self.command = command
        if log is None:
            handle, name = tempfile.mkstemp(prefix="grace-irl-serve-", suffix=".log")
            os.close(handle)
            log = Path(name)
        self.log = log

    def __enter__(self) -> LocalServer:
        with self.log.open("wb") as out:
            # The server gets its own session, so that Ctrl-C reaches only our process. `stop` then ends the server.
            self._process = subprocess.Popen(
                self.command.arguments,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.command.environment},
                start_new_session=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def wait_until_ready(self, seconds: float, on_wait: Callable[[float, str], None]) -> None:
        """Wait until the server is healthy and lists its models.

        Args:
            seconds: maximum time to wait.
            on_wait: callback, called about once a second with the seconds so far and the last line of the log.

        Raises:
            GraceError: the process ended, or is not ready in time.
        """
        started = time.monotonic()
        while not (_answers(f"{self.command.url}/health") and _answers(f"{self.command.url}/v1/models")):
            self.check()
            waited = time.monotonic() - started
            if waited > seconds:
                raise GraceError(f"the server is not ready after {seconds:g} s ({self.reason()}); its log: {self.log}")
            on_wait(waited, self.last_line())
            time.sleep(min(1.0, max(0.05, seconds - waited)))
        self.check()  # the answers may have come from another process

    def check(self) -> None:
        """Raise GraceError if the process has ended."""
        code = self._process.poll()
        if code is not None:
            raise GraceError(f"the server ended with code {code}: {self.reason()}; its log: {self.log}")

    def wait(self) -> None:
        """Wait for the end of the process, then raise GraceError."""
        self._process.wait()
        self.check()

    def stop(self) -> None:
        """Stop the process and all its children: SIGTERM first, then SIGKILL."""
        for number, patience in ((signal.SIGTERM, GENTLE), (signal.SIGKILL, 10.0)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
            until = time.monotonic() + patience
            while time.monotonic() < until:
                self._process.poll()
                if not _group_lives(self._process.pid):
                    return
                time.sleep(0.05)

    def last_line(self) -> str:
        """The last line of the log."""
        lines = self._tail()
        return lines[-1] if lines else ""

    def reason(self) -> str:
        """The last error message in the log. If no line names an error, the last line of the log."""
        lines = self._tail()
        errors = [line for line in lines if _ERROR.search(line)]
        return (errors or lines or ["it printed nothing"])[-1]

    def _tail(self) -> list[str]:
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - TAIL))
            text = log.read().decode("utf-8", "replace")
        return [line.strip()[-300:] for line in text.splitlines() if line.strip()]


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError as error:
        return error.code in (401, 403)  # the server requires a key, so it is there
    except OSError:
        return False


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
