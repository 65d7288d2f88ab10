"""Handles, threads, and calls that make no sense."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from grace_irl.sandbox.protocol import DebugRequest, Sandbox
from tests.sandbox.samples import COUNTER, MODES, one, vectors


class Calls:
    """Tests of `grace_irl.sandbox.protocol.Sandbox`."""

    def test_wrong_calls_are_refused(self, sandbox: Sandbox) -> None:
        handle = sandbox.put(vectors())
        with pytest.raises(ValueError, match="order"):
            sandbox.run(COUNTER, handle, [3])
        with pytest.raises(ValueError, match="order"):
            sandbox.run(COUNTER, handle, [-1])
        with pytest.raises(ValueError, match="DebugRequest"):
            sandbox.run(COUNTER, handle, [0], debug=[DebugRequest(0, 4)])
        sandbox.drop(handle)
        sandbox.drop(handle)
        with pytest.raises(ValueError, match="handle"):
            sandbox.run(COUNTER, handle, [0])

    def test_threads(self, sandbox: Sandbox) -> None:
        handle = sandbox.put(vectors())

        def work(number: int) -> float:
            mode = MODES[number % 2]
            outcome = sandbox.run(one(f"return {number}"), handle, [0, 1, 2], mode=mode)
            assert sandbox.inspect(one(f"return {number}")).problems == ()
            return float(outcome.rewards[2][0])

        with ThreadPoolExecutor(2 * sandbox.workers + 1) as threads:
            assert list(threads.map(work, range(24))) == list(range(24))

    def test_handles_are_independent(self, sandbox: Sandbox) -> None:
        few, many = sandbox.put(vectors(1)), sandbox.put(vectors(3))
        assert few != many
        sandbox.drop(few)
        assert sandbox.run(COUNTER, many, [2]).status == "ok"
