"""For all tests."""

import os
import signal
from collections.abc import Iterator

import hypothesis
import pytest

# No example has a time limit, since other work may hold the machine up.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

# A background job of a shell ignores Ctrl-C, and so would everything that a test starts or interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# As in the jobs of comparisons and trainings: threads that wait for one another burn more than they save on small nets.
os.environ.setdefault("OMP_NUM_THREADS", "1")

pytest_plugins = ["tests.propose.vllm"]

# Helpers outside test modules say what was compared, too.
pytest.register_assert_rewrite("tests.demos.equality", "tests.fakes", "tests.hostile")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Number of processes for `-n auto`: one for each core that this one may use, and none beside it for one core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if cores > 1 else 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest tests first, so that no process waits for them at the end: whoever is done takes others."""
    items.sort(key=lambda item: "vllm" not in item.keywords and "test_plain_user.py" not in item.nodeid)


@pytest.fixture(autouse=True, scope="session")
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Which runs are this user's is noted in a folder of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True, scope="session")
def _zygotes() -> Iterator[None]:
    """Pools of this process hand on more zygotes than elsewhere, since most tests that run programs open one."""
    from grace_irl.sandbox import host

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "MOST_SPARE", 4)
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_fork_server() -> Iterator[None]:
    """The server of this process waits for further trainings, however long the tests between them take.

    A new one imports torch again, which takes five seconds.
    """
    from grace_irl.work import fork_server

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fork_server, "IDLE_S", 3600.0)
        yield
