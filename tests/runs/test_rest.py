"""Runs on a sample of their demonstrations, and the test of their result on the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grace_irl
from grace_irl.audit.rest import of_rest
from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Trajectory
from grace_irl.errors import InputError
from grace_irl.evaluate.rest import Rest
from grace_irl.evaluate.separation import EpisodeMetrics, Metrics, Separation
from grace_irl.runs import data, parts
from grace_irl.runs import rest as rests
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.fit import resume, start
from grace_irl.runs.rest import stored_rest
from grace_irl.runs.run import Interrupted, Run, opened
from grace_irl.runs.score import score
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.fakes.scripted_proposer import ScriptedProposer

SHORT = {"search.population": 5, "search.elite": 2, "search.generations": 2}
SAMPLE = "40K"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """160 trajectories, of which a sample has about 30."""
    save(vector_set(80, 80, 16, noise=0.05), tmp_path / "set.parquet")
    return tmp_path / "set.parquet"


def fitted(file: Path, out: Path, **flags: object) -> Run:
    config = resolve(flags={**SHORT, "data.demos": (str(file),), "data.sample": SAMPLE, **flags})
    return start(config, out, Parts(proposer=ScriptedProposer(), sandbox=InProcessSandbox()))


def digests(demonstrations: Demonstrations) -> set[str]:
    return {item.trajectory.digest for item in demonstrations}


def others(file: Path) -> Demonstrations:
    """The trajectories that are not in the sample."""
    whole = load([file])
    known = {item.trajectory.digest for item in load([file], sample=SAMPLE)}
    return replace(whole, items=tuple(item for item in whole if item.trajectory.digest not in known))


def test_the_rest_is_tested_exactly(file: Path, tmp_path: Path) -> None:
    """The figures, added up by parts, are those that `score` finds with all of them in memory."""
    run = fitted(file, tmp_path / "run")
    assert run.rest is not None
    left = others(file)
    found = score(run.reward_path, left, sandbox=InProcessSandbox())
    assert (run.rest.trajectories, run.rest.states) == (len(left), sum(len(i.trajectory.states) for i in left))
    assert run.rest.accuracy == pytest.approx(found.metrics.accuracy, abs=1e-12)
    assert run.rest.fitness == pytest.approx(found.metrics.fitness, abs=1e-9)
    assert (run.rest.experts, run.rest.negatives) == (found.metrics.experts, found.metrics.negatives)
    assert run.rest.separated == found.metrics.separated
    assert run.rest.episodes == found.metrics.episodes
    assert run.rest.copies == run.rest.unlabelled == 0
    assert not run.rest.failure


def test_the_rest_is_tested_exactly_in_many_parts(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = fitted(file, tmp_path / "one")
    monkeypatch.setattr(parts, "PART", 1000)
    again = fitted(file, tmp_path / "two")
    assert run.rest is not None
    assert again.rest is not None
    assert again.rest.fitness == pytest.approx(run.rest.fitness, abs=1e-12)
    assert replace(again.rest, fitness=run.rest.fitness) == run.rest


def test_several_tasks_and_goals_are_tested_exactly(tmp_path: Path) -> None:
    given = vector_set(40, 40, 12, tasks=("one", "two"))
    items = tuple(replace(item, goals=(10, 11) if item.role == "expert" else None) for item in given)
    file = tmp_path / "goals.parquet"
    save(replace(given, items=items), file)
    run = fitted(file, tmp_path / "run", **{"data.label": "goal"})
    assert run.rest is not None
    assert run.rest.episodes.hit is not None
    found = score(run.reward_path, others(file), rule="goal", sandbox=InProcessSandbox())
    assert run.rest.episodes == found.metrics.episodes
    assert run.rest.fitness == pytest.approx(found.metrics.fitness, abs=1e-9)
    assert run.rest.accuracy == pytest.approx(found.metrics.accuracy, abs=1e-12)


def test_a_run_on_a_sample_says_so_everywhere(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = fitted(file, tmp_path / "run")
    assert run.rest is not None
    line = f"outside the sample, on {run.rest.trajectories} trajectories ({run.rest.states:,} states): accuracy "
    assert run.rest.line.startswith(line)
    assert "outranks" in run.rest.line
    assert any(note.startswith("a sample: ") for note in run.notes)
    assert main(["show", str(run.folder)]) == 0
    assert line in " ".join(capsys.readouterr().out.split())
    assert main(["show", str(run.folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rest"]["accuracy"] == run.rest.accuracy
    assert main(["report", str(run.folder)]) == 0
    assert f"Outside the sample, on {run.rest.trajectories} trajectories" in run.report_path.read_text()
    assert "no longer in the demonstrations" not in run.report_path.read_text()


def test_a_resumed_run_has_the_same_sample(file: Path, tmp_path: Path) -> None:
    """Also where the sample's size followed from a memory limit that does not hold any more."""
    config = resolve(flags={**SHORT, "data.demos": (str(file),), "data.sample": ""})
    parts = Parts(proposer=ScriptedProposer(), sandbox=InProcessSandbox())
    grown = tmp_path / "more"
    grown.mkdir()
    for number in range(20):
        save(vector_set(10, 10, 300, seed=number), grown / f"{number}.parquet")
    config = resolve(flags={**SHORT, "data.demos": (str(grown),)})
    with grace_irl.demos.memory.limited("2M"):
        run = start(config, tmp_path / "run", parts)
    assert resolve(run.folder / "config.toml").data.sample == str((2 << 20) // 5)
    again = resume(run.folder, {"search.generations": 3}, parts=replace(parts, proposer=ScriptedProposer()))
    assert again.rest is not None
    assert run.rest is not None
    assert again.rest.trajectories == run.rest.trajectories


def test_an_interrupted_test_is_done_again(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Iterator[Any]:
        raise KeyboardInterrupt
        yield

    with monkeypatch.context() as patched:
        patched.setattr(rests, "rewarded", interrupted)
        with pytest.raises(Interrupted) as stopped:
            fitted(file, tmp_path / "run")
    assert stopped.value.best is not None
    with opened(tmp_path / "run") as (store, _):
        assert stored_rest(store) is None
    run = resume(tmp_path / "run", parts=Parts(proposer=ScriptedProposer(), sandbox=InProcessSandbox()))
    with opened(tmp_path / "run") as (store, _):
        assert run.rest is not None
        assert stored_rest(store) == run.rest


def test_figures_of_an_earlier_best_program_are_not_shown(file: Path, tmp_path: Path) -> None:
    run = fitted(file, tmp_path / "run")
    with opened(run.folder) as (store, _):
        assert stored_rest(store) == run.rest
        store.set_meta("best", "a better one")
        assert stored_rest(store) is None


def test_copies_of_the_sample_do_not_count(tmp_path: Path) -> None:
    given = vector_set(60, 60, 16)
    save(replace(given, items=(*given, *given[:20])), tmp_path / "set.parquet")
    run = fitted(tmp_path / "set.parquet", tmp_path / "run")
    known = {item.trajectory.digest for item in load([tmp_path / "set.parquet"], sample=SAMPLE)}
    assert run.rest is not None
    every = [item.trajectory.digest in known for item in load([tmp_path / "set.parquet"])]
    assert run.rest.trajectories == every.count(False)
    assert run.rest.copies + run.rest.trajectories == 140 - len(load([tmp_path / "set.parquet"], sample=SAMPLE))


FAILS = """
class Reward:
    def __init__(self, extra_info=None):
        pass

    def reward_fn(self, state):
        if state[0] > 50:
            raise ValueError("a state that the sample does not have")
        return float(state[1])
"""


def test_a_program_that_fails_outside_the_sample_brings_a_warning(tmp_path: Path) -> None:
    given, file = vector_set(60, 60, 16), tmp_path / "set.parquet"
    for odd in range(20):  # until the odd one is outside the sample
        states = np.full((16, 3), 60.0 + odd)
        save(replace(given, items=(*given, Demonstration(Trajectory(states), "expert"))), file)
        if not any(item.trajectory.states[0, 0] > 50 for item in load([file], sample=SAMPLE)):
            break
    (tmp_path / "first.py").write_text(FAILS)
    one = {"search.generations": 0, "search.population": 1, "proposer.start_from": (str(tmp_path / "first.py"),)}
    config = resolve(flags={"data.demos": (str(file),), "data.sample": SAMPLE, **one})
    run = start(config, tmp_path / "run", Parts(sandbox=InProcessSandbox()))
    assert run.rest is not None
    assert "a state that the sample does not have" in run.rest.failure
    assert run.rest.copies == 0
    assert run.warnings[0].code == "rest-fails"
    assert "fit a larger sample" in run.warnings[0].line


def test_files_that_vanish_during_the_search_lose_only_the_test(file: Path, tmp_path: Path) -> None:
    class Deleting(ScriptedProposer):
        async def propose(self, *arguments: Any, **keywords: Any) -> Any:
            file.unlink(missing_ok=True)
            return await super().propose(*arguments, **keywords)

    config = resolve(flags={**SHORT, "data.demos": (str(file),), "data.sample": SAMPLE})
    run = start(config, tmp_path / "run", Parts(proposer=Deleting(), sandbox=InProcessSandbox()))
    assert run.rest is not None
    assert run.rest.failure.startswith("the demonstrations cannot be read any more")
    assert run.reward_path.exists()


def test_trajectories_that_an_earlier_run_was_trained_on_are_no_test(file: Path, tmp_path: Path) -> None:
    """The first run has all trajectories, the second a sample, and the third begins with programs of the second."""
    whole = fitted(file, tmp_path / "whole", **{"data.sample": ""})
    with opened(whole.folder) as (store, _):
        trained = {row.digest for row in store.trajectories() if row.split != "held_out"}
    seen = len(trained & digests(others(file)))
    before = whole.folder
    for name in ("second", "third"):
        run = fitted(file, tmp_path / name, **{"proposer.start_from": (str(before),)})
        assert run.rest is not None
        assert 0 < run.rest.seen == seen < run.rest.trajectories
        assert f"states), {seen} of which an earlier run was trained on: accuracy" in run.rest.line
        found = next(warning.found for warning in run.warnings if warning.code == "rest-seen")
        assert f"were training data of {whole.folder}, whose programs" in found
        before = run.folder
    plain = fitted(file, tmp_path / "plain").rest
    assert plain is not None
    assert plain.seen == 0


def test_a_fall_outside_the_sample_brings_a_warning() -> None:
    metrics = Metrics(-0.1, 1.0, 1.0, True, 10, 10)
    rest = Rest(50, 500, 0, 0, 250, 250, -0.5, 0.9, False, EpisodeMetrics(25, 25))
    separation = Separation(metrics, metrics, threshold=0.0)
    found = list(of_rest(rest, separation, ""))
    assert [each.code for each in found] == ["rest-below"]
    assert "accuracy 0.900" in found[0].line
    assert not list(of_rest(replace(rest, accuracy=0.96), separation, ""))


def test_reading_and_testing_large_sets_is_announced(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART", 1000)
    monkeypatch.setattr(rests, "EVERY", 0.0)
    monkeypatch.setattr(data, "LARGE", 1000)
    told: list[str] = []
    config = resolve(flags={**SHORT, "data.demos": (str(file.parent),), "data.sample": SAMPLE})
    run = start(
        config, tmp_path / "run", Parts(proposer=ScriptedProposer(), sandbox=InProcessSandbox(), note=told.append)
    )
    assert run.rest is not None
    assert re.fullmatch(r"reading [\d.]+ KiB of demonstrations", told[0])
    tested = f"testing the best program on the {run.rest.trajectories} trajectories outside the sample"
    assert tested in told
    assert tested in run.notes
    shown = [line for line in told if line.startswith("tested ")]
    assert shown[-1] == f"tested {run.rest.trajectories} of {run.rest.trajectories} trajectories outside the sample"
    assert not any(line.startswith("tested ") for line in run.notes)


def test_a_whole_set_has_no_rest(file: Path, tmp_path: Path) -> None:
    run = fitted(file, tmp_path / "run", **{"data.sample": "10M"})
    assert run.rest is None
    assert not any("sample" in note for note in run.notes)


def test_a_sample_of_demonstrations_in_memory_is_refused() -> None:
    arrays = [item.trajectory.states for item in vector_set()]
    with pytest.raises(InputError, match="sample=1M with demonstrations in memory; expected their files"):
        grace_irl.fit(experts=arrays[:6], negatives=arrays[6:], sample="1M")


def test_a_replay_has_the_sample_of_its_recording(file: Path, tmp_path: Path) -> None:
    run = fitted(file, tmp_path / "run")
    again = grace_irl.fit([file], replay=run.folder, out=tmp_path / "again")
    assert again.rest is not None
    assert run.rest is not None
    assert replace(again.rest, program=run.rest.program) == run.rest
