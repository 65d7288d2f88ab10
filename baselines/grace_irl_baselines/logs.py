"""The logger that `imitation`'s trainers write to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from imitation.util.logger import HierarchicalLogger, configure

from grace_irl.rl.method import PolicyProblem


@contextmanager
def logger(problem: PolicyProblem) -> Iterator[HierarchicalLogger]:
    """Writes TensorBoard's files into the problem's folder for logs, or nothing if it has none."""
    with TemporaryDirectory() as nowhere:
        found = configure(problem.log or Path(nowhere), ["tensorboard"] if problem.log else [])
        try:
            yield found
        finally:
            found.close()  # type: ignore[no-untyped-call]
