"""MAP-Elites through the command line: it ends as it would have when it is stopped, and its recording repeats it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.methods.map_elites import MapElites, MapElitesSettings
from grace_irl.programs.program import Program
from grace_irl.runs.config import resolve
from grace_irl.runs.proposers import settled
from grace_irl.runs.run import opened
from grace_irl.search.protocol import Request, Result
from tests.fakes.data import vector_set
from tests.propose.client.server import ChatServer
from tests.runs.test_model_runs import Model

SHIPPED = Path(__file__).resolve().parents[2] / "datasets" / "babyai-go-to-obj"
ENDLESS = ("--set", "stop.target_accuracy=none", "--set", "stop.plateau=none")
Capture = pytest.CaptureFixture[str]


def done(capsys: Capture, *words: object) -> dict[str, Any]:
    """The object that a command prints last."""
    assert main([*map(str, words), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def requests(run: Path) -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(run / "run.db")) as database:
        return list(database.execute("SELECT operator, parents, seed FROM requests ORDER BY idx"))


@pytest.mark.slow
def test_fit_resume_and_replay(tmp_path: Path, capsys: Capture) -> None:
    own = ("--programs", "8", "--first-programs", "3", "--niches", "2")
    asked = ("fit", "--demos", SHIPPED, "--method", "map-elites", *own, *ENDLESS)
    whole = done(capsys, *asked, "--out", tmp_path / "whole")
    assert whole["train"]["separated"]
    done(capsys, *asked, "--out", tmp_path / "parts", "--max-calls", "4")
    assert done(capsys, "fit", "--resume", tmp_path / "parts", "--max-calls", "100")["program"] == whole["program"]
    assert main(["export", str(tmp_path / "whole"), "--recording", str(tmp_path / "r.jsonl")]) == 0
    for number, source in enumerate((tmp_path / "whole", tmp_path / "r.jsonl")):
        again = tmp_path / f"again-{number}"
        replayed = done(capsys, "fit", "--replay", source, "--demos", SHIPPED, "--out", again)
        assert replayed["program"] == whole["program"]
        asked_again = requests(again)  # a recording holds the method's own settings
        assert asked_again == requests(tmp_path / "whole")[: len(asked_again)]
        assert len(asked_again) == whole["calls"]
    fates = done(capsys, "show", tmp_path / "whole")["fates"]
    assert any("niche" in fate["reason"] for fate in fates)
    assert main(["report", str(tmp_path / "whole")]) == 0
    page = (tmp_path / "whole" / "report.html").read_text(encoding="utf-8")
    assert "Columns (2): Kendall" in page
    assert page.count(">tau from ") == 2


@pytest.mark.parametrize(("samples", "groups"), [(8, [8, 8, 4, 8, 2]), (1, [1] * 30)])
def test_no_more_new_programs_are_asked_for_than_the_first(samples: int, groups: list[int]) -> None:
    search = MapElites(MapElitesSettings(programs=30, first=20), samples, 0)
    asked: list[Request] = []
    while request := search.ask():
        asked.append(request)
        program = Program(f"p{request.index}", "", 10)
        search.tell(Result(request, program, Evaluation("ok", score=float(request.index))))
    assert [each.operator for each in asked] == ["initialise"] * 20 + ["mutate"] * 10
    assert [each.samples for each in asked if each.sample == 0] == groups


def test_decisions_in_a_generation_without_requests_are_counted(tmp_path: Path, capsys: Capture) -> None:
    save(vector_set(noise=0.05, actions=True), tmp_path / "set.parquet")
    asked = ("fit", "--demos", tmp_path / "set.parquet", "--method", "map-elites", "--proposer", "drafts", *ENDLESS)
    done(capsys, *asked, "--max-calls", "15", "--out", tmp_path / "run")
    shown = done(capsys, "show", tmp_path / "run")
    assert max(fate["generation"] for fate in shown["fates"]) == 1
    for verdict, count in shown["verdicts"].items():
        assert sum(row[verdict] for row in shown["generations"]) == count


def test_with_a_model(tmp_path: Path, capsys: Capture) -> None:
    """Prompts of GRACE's operators; answers share calls; failures are repaired, recorded and replayed."""
    save(vector_set(noise=0.05), tmp_path / "set.parquet")
    model = Model()
    with ChatServer(answer=model) as server:
        asked = ["fit", "--demos", tmp_path / "set.parquet", "--method", "map-elites", "--llm-url", server.url]
        own = ["--programs", "24", "--first-programs", "4", "--samples-per-call", "2", "--answer-format", "code"]
        estimate = done(capsys, *asked, *own, "--estimate")
        assert (estimate["most"]["programs"], set(estimate["prompts"])) == (24, {"initialise", "mutate", "repair"})
        assert not server.payloads
        run = tmp_path / "run"
        found = done(capsys, *asked, *own, *ENDLESS, "--out", run)
    assert found["calls"] == 24
    asked_for = [operator for operator, _, _ in requests(run)]
    assert asked_for[:4] == ["initialise"] * 4
    assert asked_for[4:].count("mutate") >= 6  # others only while no program runs: a fast server gets no more at once
    with opened(run) as (_, config):
        assert config.search.lag == 4
    drafts = [fate for fate in done(capsys, "show", run)["fates"] if fate["verdict"] == "repaired"]
    assert drafts
    assert any("self.extra_info = missing" in prompt for prompt in model.prompts)  # sent back as it was
    replayed = done(capsys, "fit", "--replay", run, "--out", tmp_path / "again")
    assert replayed["program"] == found["program"]
    assert main(["fit", "--replay", str(run), "--out", str(tmp_path / "slow"), "--set", "search.lag=1"]) == 0
    assert "searches otherwise than the recorded run (search.lag was 4 and is 1)" in capsys.readouterr().err
    assert done(capsys, "show", tmp_path / "again")["fates"] == done(capsys, "show", run)["fates"]


@pytest.mark.parametrize(
    ("flags", "lag"),
    [
        ({"method": "map-elites"}, 20),
        ({"method": "map-elites", "policy.task": "reacher"}, 20),
        ({"method": "map-elites", "search.lag": 64}, 64),
        ({"method": "map-elites", "proposer.name": "drafts"}, 8),
        ({"method": "rf-agent", "tree.virtual_loss": True, "tree.first": 6}, 6),
        ({"method": "rf-agent"}, 4 * 32),
        ({}, 4 * 32 * 4),
    ],
)
def test_a_search_that_never_waits_has_few_requests_in_flight(flags: dict[str, object], lag: int) -> None:
    """Or a fast server would write first programs alone: no result would be there for the next request."""
    served = {"proposer.name": "llm", "model.url": "http://127.0.0.1:1", "model.name": "m"}
    assert settled(resolve(flags={**served, **flags})).search.lag == lag


@pytest.mark.parametrize(("first", "lag"), [(2, 2), (20, 8)])
def test_without_a_model_it_looks_no_further_ahead_than_its_first_programs(first: int, lag: int) -> None:
    for author in ("synthesis", "drafts"):
        flags = {"method": "map-elites", "proposer.name": author, "map_elites.first": first}
        assert settled(resolve(flags=flags)).search.lag == lag
