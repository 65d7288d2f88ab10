"""The sandbox of this machine and the one without walls, by the suite of sandboxes."""

from __future__ import annotations

from grace_irl.sandbox import open_sandbox
from grace_irl.sandbox.protocol import Sandbox
from grace_irl.testing.sandboxes import SandboxSuite
from tests.fakes.in_process_sandbox import InProcessSandbox


class TestPool(SandboxSuite):
    def make(self) -> Sandbox:
        return open_sandbox(1)


class TestInProcess(SandboxSuite):
    def make(self) -> Sandbox:
        return InProcessSandbox()
