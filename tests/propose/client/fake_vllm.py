#!/usr/bin/env python3
"""Stands in for vLLM's command: listens as told on the command line, and behaves as FAKE_VLLM says.

"" answers after a moment; "crash" ends before; "late" ends after it has answered; "stubborn" ignores SIGTERM, and so
does its child; "silent" never answers. It writes its process ids and arguments into the folder FAKE_VLLM_DIR.
"""

from __future__ import annotations

import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

MODE = os.environ.get("FAKE_VLLM", "")
FOLDER = pathlib.Path(os.environ["FAKE_VLLM_DIR"])
SLEEP = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        served = sys.argv[sys.argv.index("--served-model-name") + 1]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"data": [{"id": served}]}).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", SLEEP if MODE == "stubborn" else "import time; time.sleep(600)"],
        stdout=subprocess.PIPE if MODE == "stubborn" else None,
    )
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        assert child.stdout is not None
        child.stdout.readline()
    told = {"pids": [os.getpid(), child.pid], "arguments": sys.argv, "cache": os.environ.get("VLLM_CPU_KVCACHE_SPACE")}
    (FOLDER / "part").write_text(json.dumps(told))
    (FOLDER / "part").rename(FOLDER / "told.json")
    print("loading weights", flush=True)
    if MODE == "crash":
        print("ValueError: the model is not for this machine", flush=True)
        print("closing down", flush=True)
        child.kill()
        sys.exit(3)
    if MODE == "silent":
        time.sleep(600)
    port = int(sys.argv[sys.argv.index("--port") + 1])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    if MODE == "late":
        threading.Timer(1.5, server.shutdown).start()
    server.serve_forever()
    print("RuntimeError: the engine died", flush=True)
    child.kill()
    sys.exit(4)


main()
