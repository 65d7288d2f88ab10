"""The search and the evaluator of the toy, by the suites that come with the package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import grace_irl
from grace_irl.cli import main
from grace_irl.errors import GraceError
from grace_irl.evaluate.evaluation import Evaluator
from grace_irl.methods.registry import METHODS
from grace_irl.search.protocol import Search
from grace_irl.testing.evaluators import EvaluatorSuite
from grace_irl.testing.searches import SearchSuite
from tests.methods.test_entry_point import Model
from tests.propose.client.server import ChatServer

TOY = Path(__file__).parent / "toy" / "grace_irl_toy.py"


def loaded() -> Any:
    """The toy's module, which nothing has installed here."""
    spec = importlib.util.spec_from_file_location("grace_irl_toy", TOY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOYS = loaded()


def test_from_python_without_demonstrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "toy", TOYS.METHOD)
    own: dict[str, Any] = {"tries": 4, "aim": 2.0, "answer_format": "code"}
    with ChatServer(answer=Model()) as server:
        run = grace_irl.fit(method="toy", llm_url=server.url, out=tmp_path / "run", **own)
    assert (run.method, run.calls, run.best.score) == ("toy", 4, -run.best.metrics["distance"])
    assert (run.label.rule, run.label.reason) == ("all", "there are no demonstrations")
    with pytest.raises(GraceError, match="does not separate states"):
        _ = run.best.separation
    assert "Numbers of the toy" in run.report_path.read_text()
    again = grace_irl.fit(replay=run.folder, out=tmp_path / "again")
    assert again.best.program == run.best.program


@pytest.mark.parametrize(
    "words", [(), ("--llm-url", "http://127.0.0.1:9", "--llm-patience", "0", "--seed-synthesis", "2")]
)
def test_the_synthesiser_needs_demonstrations(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(METHODS, "toy", TOYS.METHOD)
    assert main(["fit", "--method", "toy", "--out", str(tmp_path / "run"), *words]) == 2
    assert "grace-irl: no demonstrations, in which the synthesiser finds its programs" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_an_estimate_needs_its_course(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(METHODS, "toy", TOYS.METHOD)
    assert main(["fit", "--method", "toy", "--estimate", "--proposer", "llm"]) == 2
    assert "--estimate with method 'toy', which gives no number of programs" in capsys.readouterr().err


class TestPairs(SearchSuite):
    def make(self, seed: int) -> Search:
        pairs: Search = TOYS.Pairs(20, seed)
        return pairs


class TestNearness(EvaluatorSuite):
    def make(self) -> Evaluator:
        nearness: Evaluator = TOYS.Nearness(3.0)
        return nearness
