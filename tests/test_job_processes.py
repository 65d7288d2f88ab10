"""The forked processes of jobs do what new ones do: the suite of executors, with them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from grace_irl.testing.executors import ExecutorSuite
from grace_irl.work import Executor, LocalExecutor, process


@pytest.mark.skipif(sys.platform != "linux", reason="orphans of a process go to its parent on Linux only")
class TestForkedProcesses(ExecutorSuite):
    def make(self, workers: int, services: Mapping[str, Callable[..., Any]]) -> Executor:
        assert process.subprocess is not subprocess
        return LocalExecutor(workers, services)
