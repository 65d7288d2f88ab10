"""The scripts for SLURM and Kubernetes, run by stand-ins for `sbatch` and for the kubelet."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from grace_irl.testing.executors import TASKS, until
from grace_irl.work import FolderExecutor, Job
from grace_irl.work.folder import jobs_of

ROOT = Path(__file__).parents[2]
SLURM, KUBERNETES = ROOT / "examples" / "slurm", ROOT / "examples" / "kubernetes"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A search path with the command `grace-irl` of this checkout."""
    command = tmp_path / "bin" / "grace-irl"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT / "cli.py"} "$@"\n')
    command.chmod(0o755)
    return f"{command.parent}:{os.environ['PATH']}"


def sbatch(script: Path, arguments: Sequence[str], array: Sequence[int], path: str) -> list[int]:
    """Run the tasks of an array as SLURM does: a copy of the script, its options read, one number for each task."""
    options = [line.split()[1] for line in script.read_text().splitlines() if line.startswith("#SBATCH")]
    cores = next(option.partition("=")[2] for option in options if option.startswith("--cpus-per-task"))
    tasks = [
        subprocess.Popen(
            ["bash", str(script), *arguments],
            env={**os.environ, "PATH": path, "SLURM_ARRAY_TASK_ID": str(number), "SLURM_CPUS_PER_TASK": cores},
        )
        for number in array
    ]
    return [task.wait(300) for task in tasks]


def test_workers_of_an_array_share_the_jobs(tmp_path: Path, path: str) -> None:
    jobs, codes = tmp_path / "jobs", list[int]()
    with FolderExecutor(jobs, 6) as executor:
        thread = threading.Thread(
            target=lambda: codes.extend(sbatch(SLURM / "workers.sbatch", [str(jobs)], [0, 1], path))
        )
        futures = [executor.submit(Job(f"{TASKS}:add", {"first": n, "second": 0})) for n in range(6)]
        until(lambda: len(jobs_of(jobs)) == 6)
        # What a user types while workers run: the scripts wait ten minutes for more, so the test ends them itself.
        thread.start()
        assert [future.result(120) for future in futures] == list(range(6))
    subprocess.run(["pkill", "-TERM", "-f", f"cli.py work {jobs}"], check=False)
    thread.join(60)
    assert codes == [130, 130]


@pytest.mark.slow
def test_an_array_of_seeds_and_a_task_that_is_requeued(tmp_path: Path, path: str) -> None:
    demos, runs = tmp_path / "demos", tmp_path / "runs"
    shutil.copytree(ROOT / "datasets" / "babyai-go-to-obj", demos)
    assert sbatch(SLURM / "seeds.sbatch", [str(demos), str(runs)], [0, 1], path) == [0, 0]
    rewards = [(runs / f"seed-{seed}" / "reward.py").read_text() for seed in (0, 1)]
    assert sbatch(SLURM / "seeds.sbatch", [str(demos), str(runs)], [0], path) == [0]
    assert (runs / "seed-0" / "reward.py").read_text() == rewards[0]


def test_the_pods_of_a_job_share_the_jobs(tmp_path: Path, path: str) -> None:
    spec = yaml.safe_load((KUBERNETES / "workers.yaml").read_text())["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert {each["name"] for each in pod["volumes"]} == set(mounts)
    jobs = tmp_path / "jobs"
    command = [each.replace(mounts["shared"], str(tmp_path)) for each in container["command"]]
    with FolderExecutor(jobs, 4) as executor:
        pods = [subprocess.Popen(command, env={**os.environ, "PATH": path}) for _ in range(2)]
        futures = [executor.submit(Job(f"{TASKS}:add", {"first": n, "second": 0})) for n in range(4)]
        assert [future.result(120) for future in futures] == list(range(4))
        for each in pods:
            each.terminate()
        codes = {each.wait(pod["terminationGracePeriodSeconds"]) for each in pods}
        assert 130 in codes
        assert codes <= {130, -signal.SIGTERM}  # on a busy machine, one does all jobs before the other has begun
