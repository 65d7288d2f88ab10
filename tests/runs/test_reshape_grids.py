"""Runs that reshape without a model: of their own best program, and of another run's and nothing else."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from grace_irl.cli import main
from grace_irl.demos.trajectory import Demonstrations, LabelRule, Metadata
from grace_irl.errors import InputError
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.fit import resume, start
from grace_irl.runs.record import candidate
from grace_irl.runs.run import Interrupted, Run, opened
from grace_irl.search.ranks import ranked
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.runs.test_resume import memory
from tests.synthesis.worlds import go_to_set

FLAGS: dict[str, object] = {"search.population": 4, "search.generations": 1}
ONLY: dict[str, object] = {"search.population": 1, "search.generations": 0, "search.reshape": 3}
"""Reshapes what it is given, and does nothing else."""


def walks(more: int = 0, label: LabelRule = "last") -> Demonstrations:
    """Walks to a thing, a third of them held out; and more negatives, as an expansion adds them."""
    items = [*go_to_set(0, 6, 6), *go_to_set(1, 3, 3, "held_out"), *go_to_set(2, 0, more)]
    return Demonstrations(Metadata("grid", label=label), tuple(items))


def run_in(folder: Path, flags: dict[str, object], data: Demonstrations | None = None) -> Run:
    parts = Parts(data or walks(), sandbox=InProcessSandbox())
    return start(resolve(flags={**FLAGS, **flags}), folder, parts)


def told(run: Run) -> list[tuple[str, str]]:
    """What was asked for and what came of it."""
    with opened(run.folder) as (store, _):
        failures = {result.index: result.failure for result in store.told().values()}
        requests = store.requests()
        return [(requests[index][1], failure) for index, failure in sorted(failures.items())]


def test_the_best_program_is_reshaped(tmp_path: Path) -> None:
    run = run_in(tmp_path / "run", {"search.reshape": 11})
    asked = told(run)
    assert [operator for operator, _ in asked[-11:]] == ["reshape"] * 11
    assert [failure for _, failure in asked[-11:]] == [""] * 9 + [
        "cannot reshape further: there are only 9 versions"
    ] * 2
    assert run.best.program.operator == "reshape"
    with opened(run.folder) as (store, _):
        fates = [row.fate for row in store.fates() if row.fate.reason.startswith("reshaped")]
        parent = store.records()[run.best.program.parents[0]].evaluation
    assert [fate.verdict for fate in fates] == ["kept"] * 9
    after = run.best.metrics
    assert after["separated"] == after["held_out_separated"] == 1.0
    assert after["monotonicity"] > parent.metrics["monotonicity"] + 0.2


def test_the_best_programs_of_a_reshaped_run_begin_with_the_reshaped_reward(tmp_path: Path) -> None:
    run = run_in(tmp_path / "run", {"search.reshape": 3})
    assert main(["export", str(run.folder), "--best", "2", "--out", str(tmp_path / "best")]) == 0
    first, second = csv.DictReader((tmp_path / "best" / "scores.csv").open())
    assert (tmp_path / "best" / first["file"]).read_text() == run.reward_path.read_text()
    assert first["program"] == run.best.program.id != second["program"]
    with opened(run.folder) as (store, _):
        fittest = ranked(map(candidate, store.records().values()))[0]
    assert fittest.program.id != run.best.program.id  # what the search looks for is not what was reshaped


def test_another_runs_best_program_is_reshaped_and_nothing_else_is_asked(tmp_path: Path) -> None:
    """It knows no more of the program than its text, and learns from more data than the program came from."""
    one = run_in(tmp_path / "one", {})
    two = run_in(tmp_path / "two", {**ONLY, "proposer.start_from": (str(one.folder),)}, walks(4))
    assert told(two) == [("initialise", ""), ("reshape", ""), ("reshape", ""), ("reshape", "")]
    assert two.best.program.parents == (one.best.program.id,)
    assert two.best.program.operator == "reshape"
    # A reshaped reward can be begun with, too: from its file, and in other ways than it was.
    three = run_in(tmp_path / "three", {**ONLY, "proposer.start_from": (str(two.reward_path),)}, walks(4))
    assert [failure for _, failure in told(three)] == [""] * 4
    with opened(three.folder) as (store, _):
        sources = [proposal.source for _, _, proposal in store.proposals()]
    assert len(set(sources)) == 4
    assert sources[0].split() == two.best.source.split()


def test_a_program_that_somebody_wrote_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Reward:\n    def __init__(self, extra_info=None): self.n = 0\n\n"
        "    def reward_fn(self, state):\n        self.n += 1\n        return float(self.n == 3)\n"
    )
    run = run_in(tmp_path / "run", {**ONLY, "proposer.start_from": (str(tmp_path / "mine.py"),)})
    said = "cannot reshape: the program is not a synthesised program over grids"
    assert told(run) == [("initialise", ""), *[("reshape", said)] * 2]  # in a row: no more are asked for
    assert run.best.program.operator == "initialise"


def test_interrupted_while_it_reshapes(tmp_path: Path) -> None:
    whole = run_in(tmp_path / "whole", {"search.reshape": 5})
    stopped: list[bool] = []

    def stop(snapshot: object) -> None:
        asked = snapshot.progress.calls  # type: ignore[attr-defined]
        if snapshot.told and asked == len(told(whole)) - 3 and not stopped:  # type: ignore[attr-defined]
            stopped.append(True)
            raise KeyboardInterrupt

    parts = Parts(walks(), sandbox=InProcessSandbox(), listener=stop)
    with pytest.raises(Interrupted):
        start(resolve(flags={**FLAGS, "search.reshape": 5}), tmp_path / "run", parts)
    run = resume(tmp_path / "run", parts=Parts(walks(), sandbox=InProcessSandbox()))
    assert memory(run.folder) == memory(whole.folder)


def test_a_finished_run_is_reshaped_later(tmp_path: Path) -> None:
    whole = run_in(tmp_path / "whole", {"search.reshape": 2})
    plain = run_in(tmp_path / "run", {})
    later = resume(plain.folder, {"search.reshape": 2}, parts=Parts(walks(), sandbox=InProcessSandbox()))
    assert later.best.program.id == whole.best.program.id


def test_grids_whose_experts_are_right_in_every_state_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="cannot reshape rewards for grids labelled 'all'; expected a model") as caught:
        run_in(tmp_path / "run", {"search.reshape": 2}, walks(label="all"))
    assert "\n" not in str(caught.value)
    shipped = Path(__file__).resolve().parents[2] / "datasets" / "babyai-go-to-obj"
    argv = ["fit", "--demos", str(shipped), "--label", "all", "--reshape", "2", "--out", str(tmp_path / "run")]
    assert main(argv) == 2
    assert "--reshape 2 with proposer 'synthesis', which cannot reshape" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
