"""A run that was killed, at any point and by any means, ends as one that was not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.runs.config import located, resolve
from grace_irl.runs.folder import create
from grace_irl.runs.loading import new_labelling
from grace_irl.runs.proposers import settled
from grace_irl.runs.store import Store
from tests.fakes.data import vector_set
from tests.runs.scripted_run import work

ROOT = Path(__file__).parents[2]


def memory(folder: Path) -> tuple[object, ...]:
    """Everything that a run remembers but times."""
    store = Store(folder / "run.db")
    try:
        told = [(t.index, t.program_id, t.failure) for t in store.told().values()]
        records = [(name, r.program, r.evaluation.score, r.index) for name, r in store.records().items()]
        return told, records, store.requests(), store.fates(), store.meta("best"), store.functions()
    finally:
        store.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, tuple[object, ...], str]:
    """An uninterrupted run: its best program, its memory, its reward file."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    best = work(folder, "start")
    return best, memory(folder), (folder / "reward.py").read_text()


def spawn(folder: Path, verb: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.runs.scripted_run", str(folder), verb],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(folder: Path) -> int:
    if not (folder / "run.db").exists():
        return 0
    store = Store(folder / "run.db")
    try:
        return len(store.told())
    finally:
        store.close()


def test_timing_changes_nothing(tmp_path: Path, whole: tuple[str, tuple[object, ...], str]) -> None:
    assert work(tmp_path / "run", "start", delay=0.0) == whole[0]
    assert memory(tmp_path / "run") == whole[1]


@pytest.mark.slow
def test_killed_at_random_points(tmp_path: Path, whole: tuple[str, tuple[object, ...], str]) -> None:
    folder, draw = tmp_path / "run", random.Random(5)
    total, kills, verb = len(whole[1][0]), 0, "start"  # type: ignore[arg-type]
    targets = sorted(draw.sample(range(1, total - 1), 4))
    for target in targets:
        process = spawn(folder, verb)
        while told(folder) < target and process.poll() is None:
            time.sleep(0.002)
        time.sleep(draw.uniform(0, 0.01))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
        verb = "resume"
    assert kills >= 3
    assert 0 < told(folder) < total
    process = spawn(folder, "resume")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.strip() == whole[0]
    assert memory(folder) == whole[1]
    assert (folder / "reward.py").read_text() == whole[2]


def test_interrupted_by_ctrl_c(tmp_path: Path, whole: tuple[str, tuple[object, ...], str]) -> None:
    folder = tmp_path / "run"
    process = spawn(folder, "start")
    while told(folder) < 20 and process.poll() is None:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "Interrupted" in err
    assert "can be resumed" in err
    assert (folder / "reward.py").exists()
    assert 20 <= told(folder) < len(whole[1][0])  # type: ignore[arg-type]
    assert work(folder, "resume") == whole[0]
    assert memory(folder) == whole[1]


def test_a_finished_run_ends_the_same_again(tmp_path: Path, whole: tuple[str, tuple[object, ...], str]) -> None:
    assert work(tmp_path / "run", "start", delay=0.0) == whole[0]
    assert work(tmp_path / "run", "resume", delay=0.0) == whole[0]
    assert memory(tmp_path / "run") == whole[1]


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """The folder of a run of Eureka over demonstrations, without any program so far."""
    save(vector_set(), tmp_path / "set.parquet")
    flags = {"method": "eureka", "data.demos": (str(tmp_path / "set.parquet"),), "proposer.name": "manual"}
    config = settled(located(resolve(flags=flags)))
    labelling = new_labelling(config)
    create(tmp_path / "run", config, labelling.problem(), labelling.answers, labelling.choice.reason)
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--method", "forge"], "setting 'method' was 'eureka' when the run began and is 'forge' now"),
        (["--task", "reacher"], "setting 'policy.task' was '' when the run began and is 'reacher' now"),
    ],
)
def test_a_run_goes_on_with_its_method_and_its_judge(
    flags: list[str], said: str, begun: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "--resume", str(begun), *flags]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_a_setting_of_a_variable_that_must_not_change_names_the_variable(
    begun: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRACE_IRL_SEED", "3")
    assert main(["fit", "--resume", str(begun)]) == 2
    assert "was 0 when the run began and is 3 now (GRACE_IRL_SEED is '3'); expected" in capsys.readouterr().err
    monkeypatch.setenv("GRACE_IRL_SEED", "0")
    assert main(["fit", "--resume", str(begun), "--seed", "3"]) == 2
    assert "is 3 now; expected" in capsys.readouterr().err


def test_the_recording_of_a_run_without_answers_names_the_run(
    begun: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(begun), "--recording", str(tmp_path / "answers.jsonl")]) == 2
    assert f"{begun}: no recorded answers" in capsys.readouterr().err
