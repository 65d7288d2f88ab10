"""The executor of a Ray cluster, by the suite of executors, and what a dead node costs. One cluster serves all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError, SandboxError
from grace_irl.sandbox.cluster import RaySandbox
from grace_irl.sandbox.protocol import Sandbox
from grace_irl.testing.executors import TASKS, ExecutorSuite, there, until
from grace_irl.testing.sandboxes import SandboxSuite
from grace_irl.version import __version__
from grace_irl.work import Executor, Job
from grace_irl.work.cluster import RayExecutor, connected, cores_of

pytest.importorskip("ray", reason="needs Ray: pip install '.[ray]'")
pytestmark = pytest.mark.slow


STEPS = """
class Reward:
    def __init__(self, extra_info=None):
        self.n = 0

    def reward_fn(self, state):
        self.n += 1
        return self.n + float(state[0])
"""


def walk(seed: int, steps: int) -> Trajectory:
    """A trajectory of random vectors."""
    return Trajectory(states=np.random.default_rng(seed).normal(size=(steps + 1, 2)))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from tests.work.cluster import started

    with started() as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _address(cluster: Any, request: pytest.FixtureRequest) -> None:
    if request.instance is not None:
        request.instance.address = cluster.address


class TestRayExecutor(ExecutorSuite):
    address: str

    def make(self, workers: int, services: Mapping[str, Callable[..., Any]]) -> Executor:
        return RayExecutor(workers, services, address=self.address)


class TestRaySandbox(SandboxSuite):
    address: str

    def make(self) -> Sandbox:
        return RaySandbox(2, address=self.address)


def test_a_run_goes_on_when_its_worker_dies(cluster: Any) -> None:
    trajectories = [walk(number, 6) for number in range(4)]
    with RaySandbox(address=cluster.address) as sandbox:
        assert sandbox.workers == 2
        handle = sandbox.put(trajectories)
        first = sandbox.run(STEPS, handle, range(4))
        assert first.status == "ok"
        for pid in workers():
            os.kill(pid, 9)
        again = sandbox.run(STEPS, handle, range(4))
        assert [list(each) for each in again.rewards] == [list(each) for each in first.rewards]
        sandbox.drop(handle)
        with pytest.raises(ValueError, match="is unknown; expected a handle from `put`"):
            sandbox.run(STEPS, handle, range(4))
    with pytest.raises(SandboxError, match="closed"):
        sandbox.inspect(STEPS)


def test_what_a_sandbox_refuses_the_cluster_refuses(cluster: Any) -> None:
    with RaySandbox(1, address=cluster.address) as sandbox:
        mixed = [walk(0, 3), replace(walk(1, 3), states=np.zeros((4, 2, 2, 3), dtype=np.int64), kind="grid")]
        with pytest.raises(InputError, match="states of kinds"):
            sandbox.put(mixed)
        with pytest.raises(ValueError, match="order contains index 7"):
            sandbox.run(STEPS, sandbox.put([walk(0, 3)]), [7])
    with pytest.raises(InputError, match="0 workers"):
        RaySandbox(0, address=cluster.address)


def workers() -> list[int]:
    """Process ids of the cluster's sandbox workers."""
    found = subprocess.run(["pgrep", "-f", "ray::SandboxWorker"], capture_output=True, text=True, check=False)
    return [int(each) for each in found.stdout.split()]


def test_workers_are_the_cores_of_the_nodes(cluster: Any) -> None:
    with RayExecutor(None, address=cluster.address) as executor:
        assert executor.workers == 2
    assert cores_of(connected(cluster.address)) == 2


def test_what_a_node_lacks_is_told(cluster: Any, tmp_path: Path) -> None:
    with RayExecutor(1, address=cluster.address) as executor:
        job = Job(f"{TASKS}:add", {"first": 1, "second": 1}, tmp_path / "absent" / "log.txt")
        with pytest.raises(InputError, match=r"absent: no such folder on .*; expected the files of the run"):
            executor.submit(job).result(60)
        (tmp_path / "folder").mkdir()
        with pytest.raises(InputError, match=r"cannot begin jobs \(IsADirectoryError: .*/folder'\)"):
            executor.submit(replace(job, log=tmp_path / "folder")).result(60)


def test_nodes_of_another_version_are_refused(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("work", "sandbox"):
        monkeypatch.setattr(f"grace_irl.{place}.cluster.__version__", "9.9")
    said = rf"a node with grace-irl {re.escape(__version__)}, and this run is of 9\.9; expected the same version on all"
    with RayExecutor(1, address=cluster.address) as executor, pytest.raises(InputError, match=said):
        executor.submit(Job(f"{TASKS}:add", {"first": 1, "second": 1})).result(60)
    with pytest.raises(InputError, match=said):
        RaySandbox(1, address=cluster.address)


def test_jobs_of_a_node_that_dies_are_done_by_another(cluster: Any, tmp_path: Path) -> None:
    """Each task writes its process id; the one that waits is killed with its node, and runs again elsewhere."""
    lost = cluster.add_node(num_cpus=1, object_store_memory=80_000_000, resources={"third": 1})
    cluster.wait_for_nodes()
    begun: list[str] = []
    with RayExecutor(3, address=cluster.address) as executor:
        paths = [str(tmp_path / name) for name in "abc"]
        futures = [
            executor.submit(Job(f"{TASKS}:wait_for", {"path": path}), lambda _, path=path: begun.append(path))  # type: ignore[misc]
            for path in paths
        ]
        until(lambda: len(begun) == 3)
        cluster.remove_node(lost, allow_graceful=False)
        until(lambda: not cluster_has(lost))
        for path in paths[:2]:
            Path(path).touch()
        Path(paths[2]).touch()
        assert [future.result(120) for future in futures] == paths
    assert len(begun) >= 3


def cluster_has(node: Any) -> bool:
    import ray

    return any(each["Alive"] and each["NodeID"] == node.unique_id for each in ray.nodes())


def test_the_job_of_a_killed_worker_begins_again(cluster: Any, tmp_path: Path) -> None:
    begun: list[str] = []
    out = tmp_path / "pids"
    with RayExecutor(1, address=cluster.address) as executor:
        future = executor.submit(Job(f"{TASKS}:begin_and_stay", {"out": str(out)}), begun.append)
        until(out.exists)
        first = [int(pid) for pid in out.read_text().split()]
        out.unlink()
        worker = int(Path(f"/proc/{first[0]}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(worker, 9)
        until(lambda: not there(first[0]))
        until(out.exists)
        assert future.cancel()
        second = [int(pid) for pid in out.read_text().split()]
        until(lambda: not any(map(there, second)))


def test_jobs_end_with_the_process_that_submitted_them(cluster: Any, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    waits = "import sys\nfrom grace_irl.work import Job\nfrom grace_irl.work.cluster import RayExecutor\n"
    waits += "RayExecutor(1, address=sys.argv[1]).submit(Job(sys.argv[2], {'out': sys.argv[3]})).result()"
    submitter = subprocess.Popen(
        [sys.executable, "-c", waits, cluster.address, f"{TASKS}:begin_and_stay", str(pids)], stderr=subprocess.DEVNULL
    )
    until(pids.exists)
    submitter.kill()
    submitter.wait()
    number = int(pids.read_text().split()[0])
    until(lambda: not there(number))


def test_no_cluster_is_one_line() -> None:
    """In a process of its own, because this one is connected."""
    asks = "from grace_irl.work.cluster import connected\nconnected('127.0.0.1:1')"
    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, timeout=120)
    assert "InputError: no Ray cluster at '127.0.0.1:1'" in done.stderr
    assert "expected a cluster: start one with `ray start --head`" in done.stderr
