"""The executor of a Ray cluster. Each job becomes one Ray task, which runs the job in a separate process on a node.

Ray's worker process starts a `JobProcess` and waits for it, so a job can be killed alone, as on one machine. If a
worker or a node dies, Ray starts the lost tasks again elsewhere. Restarted jobs continue from their files.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_irl.errors import GraceError, InputError
from grace_irl.version import __version__
from grace_irl.work.executor import Job, JobError, Tell
from grace_irl.work.local import LocalExecutor
from grace_irl.work.process import JobProcess, as_answer, as_error
from grace_irl.work.stored import absent

if TYPE_CHECKING:
    import ray

NAMESPACE = "grace-irl"
LOOK_S = 0.2
"""Seconds between two checks for messages of a running task."""
CONNECT_S = 10.0
"""Timeout in seconds for a connection to the head of a cluster."""
END_S = 5.0
"""Seconds for a cancelled task to end its process and all descendants. Then Ray kills the task's worker."""


def connected(address: str) -> Any:
    """Connect this process to a Ray cluster, unless it is connected already. Return the module `ray`.

    Args:
        address: "auto" for the cluster of this machine, or HOST:PORT of the head.

    Raises:
        InputError: Ray is not installed, or there is no cluster at this address.
    """
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # do not hide a node's GPUs
    try:
        import ray
    except ImportError:
        raise InputError("ray is not installed, and --executor ray needs it: pip install 'grace-irl[ray]'") from None
    if not ray.is_initialized():
        try:
            host, _, port = address.rpartition(":")
            if host:  # Ray itself would try for minutes
                socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
            ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
        except (OSError, ValueError, RuntimeError) as error:
            said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise InputError(
                f"no Ray cluster at {address!r} ({said[:200]}); expected a cluster: start one with "
                "`ray start --head`, then give --ray-address auto on that machine, or its HOST:PORT on another one"
            ) from None
    return ray


def require_version(version: str) -> None:
    """Check, on a node of a cluster, that the process that submits work has this version of grace-irl.

    Raises:
        InputError: the process has another version.
    """
    if version != __version__:
        raise InputError(
            f"{socket.gethostname()}: a node with grace-irl {__version__}, and this run is of {version}; expected the "
            "same version on all machines: install it there"
        )


def cores_of(ray: Any) -> int:
    """Number of cores of a cluster, at least 1."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def nodes_of(ray: Any) -> int:
    """Number of living nodes of a cluster that have cores."""
    return sum(bool(each["Alive"] and each["Resources"].get("CPU")) for each in ray.nodes())


class RayExecutor(LocalExecutor):
    """An `Executor` that runs its tasks on the nodes of a Ray cluster. Services run in threads of this process.

    If an argument of a job is the path of a file, the file must have this path on all nodes.

    Args:
        workers: maximum number of jobs in parallel; None or 0 for one per core of the cluster.
        services: see `LocalExecutor`.
        name: prefix of the threads' names.
        address: address of the cluster (`connected`).

    Raises:
        InputError: a negative number of workers, or no cluster at the address.
    """

    def __init__(
        self,
        workers: int | None,
        services: Mapping[str, Callable[..., Any]] | None = None,
        *,
        name: str = "work",
        address: str = "auto",
    ) -> None:
        self._ray = connected(address)
        super().__init__(workers or cores_of(self._ray), services, name=name, start=self._sent)
        self._mailbox = _mailbox(self._ray)
        # If the worker of a task dies, another worker repeats the task. A task that raises an error is not repeated.
        self._task = self._ray.remote(num_cpus=1, max_retries=-1, retry_exceptions=False)(_work)

    def close(self) -> None:
        """See `Executor`."""
        super().close()
        self.join(2 * END_S)
        with contextlib.suppress(Exception):  # the cluster may be gone
            self._ray.kill(self._mailbox)

    def _sent(self, job: Job) -> _Sent:
        return _Sent(self._ray, self._task, self._mailbox, job)


class _Sent:
    """A job that was sent to the cluster (`Running`). It may still wait for a node."""

    def __init__(self, ray: Any, task: Any, mailbox: Any, job: Job) -> None:
        self._ray, self._mailbox = ray, mailbox
        self._ended: float | None = None
        self._box = os.urandom(8).hex()
        log = None if job.log is None else str(job.log.absolute())
        order = {
            "version": __version__,
            "task": job.task,
            "arguments": dict(job.arguments),
            "log": log,
            "environment": dict(job.environment),
            "imports": list(job.imports),
        }
        self._answer = task.remote(json.dumps(order), mailbox, self._box)

    def result(self, tell: Tell) -> Any:
        """See `Running`."""
        ray, done = self._ray, False
        try:
            while not done:
                done = bool(ray.wait([self._answer], timeout=LOOK_S)[0])
                if self._ended is not None and time.monotonic() - self._ended > END_S:
                    ray.cancel(self._answer, force=True)
                for message in ray.get(self._mailbox.taken.remote(self._box)):
                    tell(json.loads(message))
            answer = json.loads(ray.get(self._answer))
        except ray.exceptions.RayTaskError as error:  # `_work` itself raised it: the node is at fault, not the job
            if isinstance(error.cause, GraceError):
                raise error.cause from None
            raise InputError(
                f"a node of the cluster cannot begin jobs ({_line(error, -1)}); expected the same installation of "
                "grace-irl, and the files of the run, on all nodes"
            ) from None
        except ray.exceptions.RayError as error:
            raise JobError(f"its task on the cluster ended: {_line(error, 0)}") from None
        if "error" in answer:
            raise as_error(answer)
        return answer["result"]

    def end(self) -> None:
        """See `Running`. Ray interrupts `_work`, which ends the job's process with all descendants."""
        self._ended = self._ended or time.monotonic()
        with contextlib.suppress(Exception):  # the cluster may be gone
            self._ray.cancel(self._answer)


def _work(order: str, mailbox: Any, box: str) -> str:
    """Run a job on a node. Return its result or error as JSON, after all its messages are in the mailbox."""
    import ray

    found = json.loads(order)
    require_version(found["version"])
    sent: list[ray.ObjectRef[Any]] = []

    def tell(message: Any) -> None:
        sent.append(mailbox.put.remote(box, json.dumps(message)))

    log = None if found["log"] is None else Path(found["log"])
    job = Job(found["task"], found["arguments"], log, found["environment"], tuple(found["imports"]))
    try:
        process = JobProcess(job)
    except (FileNotFoundError, NotADirectoryError):
        if log is None or log.parent.is_dir():
            raise
        return json.dumps({"error": "input", "text": absent(log.parent)})
    try:
        answer = {"result": process.result(tell)}
    except GraceError as error:
        answer = as_answer(error)
    finally:
        process.end()
    ray.get(sent)
    return json.dumps(answer)


def _line(error: Exception, place: int) -> str:
    """One line of the text of a Ray error.

    Args:
        error: the error.
        place: index of the line: -1 for an error of a task, because its reason comes after its traceback, otherwise 0.
    """
    said = str(error).strip().splitlines()
    return said[place].strip() if said else type(error).__name__


class Mailbox:
    """Messages of running tasks, kept on the machine of the submitting process. Each task has its own box."""

    def __init__(self) -> None:
        self._boxes: dict[str, list[str]] = {}
        self._lock = threading.Lock()

    def put(self, box: str, message: str) -> None:
        """Add a message to a box."""
        with self._lock:
            self._boxes.setdefault(box, []).append(message)

    def taken(self, box: str) -> list[str]:
        """Remove the messages of a box, and return them."""
        with self._lock:
            return self._boxes.pop(box, [])


def _mailbox(ray: Any) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(num_cpus=0, scheduling_strategy=here)(Mailbox).remote()
