"""Requests that a run has in flight (benchmarks/server_load.py measures the average)."""

from __future__ import annotations

from pathlib import Path

import pytest

from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.fit import start
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.propose.client.server import ChatServer
from tests.runs.test_model_runs import Model

SLOW = 4.0  # seconds that the first answers take, while the others come to stand beside them


@pytest.mark.parametrize(
    ("steady", "concurrency", "most"),
    [
        (True, 32, 32),
        pytest.param(True, 3, 3, marks=pytest.mark.slow),
        (False, 32, 2),  # a generation of 8 programs, 4 to a request, is all that can be asked
    ],
)
def test_most_requests_in_flight(tmp_path: Path, steady: bool, concurrency: int, most: int) -> None:
    with ChatServer(answer=Model(troubles=False)) as server:
        server.latency = lambda count: SLOW if server.most_in_flight < most else 0.0
        flags: dict[str, object] = {
            "search.population": 8,
            "search.generations": 19 if steady else 1,
            "search.steady": steady,
            "model.url": server.url,
            "model.concurrency": concurrency,
            "model.answer_format": "code",
        }
        config = resolve(flags=flags, sets=("stop.target_accuracy=none", "stop.plateau=none"))
        run = start(config, tmp_path / "run", Parts(vector_set(noise=0.05), sandbox=InProcessSandbox()))
        assert server.most_in_flight == most
    assert run.calls >= (160 if steady else 16)
