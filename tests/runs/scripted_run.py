"""A process to kill: a small run with scripted answers, begun or resumed. Usage: FOLDER start|resume."""

from __future__ import annotations

import sys
from pathlib import Path

from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.fit import resume, start
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.fakes.scripted_proposer import ScriptedProposer

CONFIG = resolve(
    flags={
        "search.population": 6,
        "search.elite": 2,
        "search.generations": 12,
        "search.lag": 5,
        "stop.plateau": 100,
    }
)


def work(folder: Path, verb: str, delay: float = 0.004) -> str:
    """Runs to the end; returns the best program's id."""
    parts = Parts(vector_set(noise=0.05), ScriptedProposer(delay=delay), InProcessSandbox())
    if verb == "start":
        return start(CONFIG, folder, parts).best.program.id
    return resume(folder, parts=parts).best.program.id


if __name__ == "__main__":
    print(work(Path(sys.argv[1]), sys.argv[2]))
