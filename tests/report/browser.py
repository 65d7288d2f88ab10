"""A real Chromium, driven over its debugging pipe: no driver has to be installed, and no port is opened.

It is the one that `GRACE_IRL_BROWSER` names, else one on PATH. Debian: `apt-get install chromium`, or `make browser`.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

NAMES = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome", "chrome")
PROGRAM = os.environ.get("GRACE_IRL_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    "--no-first-run",
)
PATIENCE = 60.0  # seconds for one answer

needs_browser = pytest.mark.skipif(
    PROGRAM is None, reason="no Chromium: make browser, or say where it is with GRACE_IRL_BROWSER"
)


def _pipe() -> tuple[int, int]:
    """Both ends of a pipe, at descriptors that the browser has no use for."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


class Browser:
    """One browser with one page.

    Args:
        profile: a folder for what it keeps.

    Attributes:
        requests: addresses that the page asked for, but for `data:` ones.
        complaints: what the console, the page's policy and its scripts reported.
    """

    def __init__(self, profile: Path) -> None:
        assert PROGRAM is not None
        commands, self._commands = _pipe()
        self._answers, answers = _pipe()
        # The browser reads commands from descriptor 3 and writes answers to 4.
        script = f'exec "$0" "$@" 3<&{commands} 4>&{answers} {commands}<&- {answers}>&-'
        arguments = [*FLAGS, f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            ["bash", "-c", script, PROGRAM, *arguments],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._number = 0
        self._rest = b""
        self._events: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._session = ""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._commands)
        os.close(self._answers)

    def open(self, path: Path, *, width: int = 1280, height: int = 800, dark: bool = False, media: str = "") -> None:
        """Loads a file as its user would, and waits until it stands.

        Args:
            width, height: of the window, in pixels.
            dark: the user's preference.
            media: "print", or "" for a screen.
        """
        self.requests.clear()
        self.complaints.clear()
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self._call("Page.navigate", url=path.absolute().as_uri())
        end = time.monotonic() + PATIENCE
        while self.evaluate("document.readyState") != "complete" or not self.evaluate(
            "location.href.startsWith('file')"
        ):
            assert time.monotonic() < end, "the page does not load"
            time.sleep(0.02)

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG file."""
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16_000), "scale": 1}
        shown = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shown["data"]))

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer.get("method", ""), answer.get("params", {}))

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._answers], [], [], max(end - time.monotonic(), 0.0))
            part = os.read(self._answers, 1 << 20) if ready else b""
            assert part, "the browser does not answer"
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _note(self, event: str, about: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent" and not about["request"]["url"].startswith("data:"):
            self.requests.append(about["request"]["url"])
        elif event == "Log.entryAdded":
            self.complaints.append(about["entry"]["text"])
        elif event == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(about["args"]))
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(about["exceptionDetails"]))
        elif event == "Page.javascriptDialogOpening":
            self.complaints.append(f"dialog: {about['message']}")
            raise AssertionError(f"a dialog opened: {about['message']}")
