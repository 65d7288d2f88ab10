"""The terminal: what a user sees of a run, of help and of the way to a model."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .robot import said, shell, write_states


def test_the_example(here):
    """Write the demonstrations that ship, without a clone of the repository, and look at them."""
    done = shell("example")
    assert done.returncode == 0, said(done)
    command = re.search(r"grace-irl fit --demos (\S+)", said(done))
    assert command is not None
    assert (here / command[1]).is_dir()
    looked = shell("demos", "inspect", command[1])
    assert looked.returncode == 0
    assert "expert" in looked.stdout
    assert "negative" in looked.stdout


def test_following_a_run(here, experts, negatives):
    """Follow a run from a second terminal, until it ends."""
    write_states(here / "expert.parquet", experts)
    write_states(here / "negative.parquet", negatives)
    words = ["fit", "--demos", "expert.parquet", "negative.parquet", "--out", "run"]
    first = subprocess.Popen(
        [sys.executable, "-m", "grace_irl", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + 60
        while not (here / "run/run.db").exists() and first.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        followed = shell("show", "run", "--follow")
        assert followed.returncode == 0, said(followed)
        assert "generation" in said(followed)
        assert "accuracy" in said(followed)
        assert first.wait(60) == 0
    finally:
        first.kill()
        first.wait()


def screen(*words):
    """The lines that a terminal of 80 columns gets, without colours; a redrawn line counts each time."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "grace_irl", *map(str, words)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**env, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    text = b""
    try:
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            text += part
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07", "", text.decode())
    return [line.rstrip() for line in re.split(r"[\r\n]+", plain)]


def test_eighty_columns(here, experts, negatives):
    """Fit and show in a terminal of 80 columns, where nothing is cut away."""
    write_states(here / "expert.parquet", experts)
    write_states(here / "negative.parquet", negatives)
    progress = screen("fit", "--demos", "expert.parquet", "negative.parquet", "--out", "run")
    assert any("generation" in line for line in progress)
    assert [line for line in progress if re.search(r"\bgener\w*…", line)] == []
    shown = screen("show", "run")
    assert any("best programs" in line for line in shown)
    assert [line for line in shown if len(line) > 80 or "…" in line] == []


def test_completion():
    """Ask for the completion of commands in bash."""
    text = said(shell("--help"))
    assert "completion" in text
    words = ("--show-completion", "bash") if "--show-completion" in text else ("completion", "bash")
    done = shell(*words, env={"SHELL": "/bin/bash"})
    assert done.returncode == 0, said(done)
    assert "complete " in done.stdout


def test_a_message_leads_to_a_page(here):
    """Bring a Parquet file of another shape, and click on the page that the message names."""
    pq.write_table(pa.table({"words": ["nothing", "of", "use"]}), here / "expert.parquet")
    done = shell("fit", "--demos", "expert.parquet")
    assert done.returncode == 2
    assert re.search(r"https://\S+demonstrations", said(done))


def test_a_server_named_by_the_environment(here, experts, negatives):
    """Let a model write the programs, whose server `OPENAI_BASE_URL` names as for other tools."""
    pytest.importorskip("openai")
    write_states(here / "expert.parquet", experts)
    write_states(here / "negative.parquet", negatives)
    asked = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.answer(200, b'{"object": "list", "data": [{"id": "tiny", "object": "model", "owned_by": "us"}]}')

        def do_POST(self):
            asked.append(self.path)
            self.answer(401, b'{"error": {"message": "no such key", "type": "invalid_request_error"}}')

        def answer(self, status, body):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            pass

    server = HTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        env = {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1", "OPENAI_API_KEY": "none"}
        demos = ("--demos", "expert.parquet", "negative.parquet")
        done = shell("fit", *demos, "--proposer", "llm", "--llm-patience", 1, "--out", "run", env=env)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert any(path.startswith("/v1/") for path in asked), said(done)
