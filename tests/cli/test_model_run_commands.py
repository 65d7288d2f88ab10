"""The words of show and export about a run whose programs a model wrote."""

from __future__ import annotations

import ast
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.fit import start
from grace_irl.runs.provenance import reuse
from grace_irl.runs.recording import recorded_config
from grace_irl.runs.run import Run, opened
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.propose.client.server import ChatServer
from tests.runs.test_model_runs import FLAGS, Model
from tests.runs.test_resume import memory


@dataclass(frozen=True)
class Made:
    run: Run
    tokens_in: int
    tokens_out: int
    requests: int


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A run with failures, repairs and prices; its demonstrations lie in a file, so that commands find them."""
    folder = tmp_path_factory.mktemp("made")
    save(vector_set(noise=0.05), folder / "set.parquet")
    with ChatServer(answer=Model()) as server:
        flags = {"model.url": server.url, "data.demos": (str(folder / "set.parquet"),)}
        prices = {"model.price_in": 2.0, "model.price_out": 6.0}
        config = resolve(flags={**FLAGS, **flags, **prices})
        run = start(config, folder / "run", Parts(load([str(folder / "set.parquet")]), sandbox=InProcessSandbox()))
        return Made(run, server.tokens_in, server.tokens_out, len(server.payloads))


def shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["show", str(folder), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    return found


def test_show_counts_failures_by_kind(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(made.run.folder, capsys)
    assert found["failure_kinds"] == {"no_class": len(found["failures"])}
    assert found["failures"]
    assert main(["show", str(made.run.folder)]) == 0
    assert f"by kind: {len(found['failures'])} no_class" in capsys.readouterr().out


def test_show_says_what_the_calls_took(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    spent = shown(made.run.folder, capsys)["spent"]
    assert (spent["calls"], spent["tokens_in"], spent["tokens_out"]) == (
        made.requests,
        made.tokens_in,
        made.tokens_out,
    )
    assert spent["cost"] == pytest.approx((2.0 * made.tokens_in + 6.0 * made.tokens_out) / 1e6)
    assert spent["per_call"]["tokens_in"] == pytest.approx(made.tokens_in / made.requests)
    assert spent["seconds"] == pytest.approx(made.requests * spent["per_call"]["seconds"])
    assert main(["show", str(made.run.folder)]) == 0
    out = capsys.readouterr().out
    assert f"{made.requests} calls brought {spent['answers']} answers" in out
    assert f"{made.tokens_in} tokens in, {made.tokens_out} out" in out


def test_a_generation_has_the_scores_of_the_programs_that_it_tried(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first generation is longer by what it lacked: a group of as many requests each would shift all later ones."""
    found = shown(made.run.folder, capsys)
    with opened(made.run.folder) as (store, _):
        records, requests = store.records(), store.requests()
    assert len({generation for generation, _ in requests.values()}) > 1
    for row in found["generations"]:
        scores = [
            each.evaluation.score
            for each in records.values()
            if each.evaluation.valid and requests[each.index][0] == row["number"]
        ]
        assert scores
        assert row["highest"] == max(scores)
        assert row["mean"] == pytest.approx(sum(scores) / len(scores))


def test_show_tells_new_functions_from_reused_ones(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(made.run.folder, capsys)
    with opened(made.run.folder) as (store, _):
        records, requests, known = store.records(), store.requests(), store.functions()
        shared = reuse(store).shared
    by_generation: dict[int, set[str]] = {}
    for record in records.values():
        digests = {each.digest for each in record.program.functions}
        by_generation.setdefault(requests[record.index][0], set()).update(digests)
    seen: set[str] = set()
    for row in found["generations"]:
        own = by_generation.get(row["number"], set())
        assert (row["new_functions"], row["reused_functions"]) == (len(own - seen), len(own & seen))
        seen |= own
    assert found["generations"][1]["reused_functions"] > 0
    assert found["functions"] == len(known) == len(seen)
    assert [(use["name"], use["valid"]) for use in found["shared_functions"]] == [
        (use.known.name, use.valid) for use in shared
    ]
    # Programs differ in reward_fn alone: what they share is the constructor.
    counted = Counter(each.name for r in records.values() if r.evaluation.valid for each in r.program.functions)
    (constructor,) = [use for use in found["shared_functions"] if use["name"] == "Reward.__init__"]
    assert constructor["valid"] == counted["Reward.__init__"] > 1
    assert main(["show", str(made.run.folder)]) == 0
    assert "functions that programs share" in capsys.readouterr().out


def test_notes_are_shown(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(made.run.folder) as (store, _):
        for number in range(7):
            store.add_event("note", f"the server was away {number} times")
    assert main(["show", str(made.run.folder)]) == 0
    out = capsys.readouterr().out
    assert "9 notes, the last 5 of them" in out
    assert "6 times" in out
    assert "1 times" not in out
    assert "stopped: " in out


def test_export_of_the_library(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "library.py"
    arguments = ["export", str(made.run.folder), "--library", "--out", str(path)]
    assert main([*arguments, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    tree = ast.parse(path.read_text())
    functions = [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    assert len(functions) == answer["functions"] > 0
    assert "__init__" in functions
    assert "self.extra_info = extra_info" in path.read_text()
    assert main(arguments) == 2
    assert "exists already" in capsys.readouterr().err


def test_export_of_the_recording_replays(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.jsonl"
    assert main(["export", str(made.run.folder), "--recording", str(path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["answers"] == len(path.read_text().splitlines()) - 1
    demos = load([str(made.run.folder.parent / "set.parquet")])
    again = start(recorded_config(path), tmp_path / "again", Parts(demos, sandbox=InProcessSandbox()))
    assert memory(again.folder) == memory(made.run.folder)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no file to write"),
        (["--library"], "such as --out library.py"),
        (["--library", "--recording", "a.jsonl"], "--library with --recording"),
        (["--library", "--program", "ab", "--out", "x.py"], "--program with --library"),
        (["--recording", "a.jsonl", "--out", "x.py"], "with --out x.py"),
    ],
)
def test_modes_of_export_exclude_each_other(
    made: Made,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(made.run.folder), *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_shares_nothing_writes_no_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ChatServer(answer=Model(troubles=False)) as server:
        config = resolve(flags={**FLAGS, "model.url": server.url, "stop.max_calls": 1})
        run = start(config, tmp_path / "run", Parts(vector_set(noise=0.05), sandbox=InProcessSandbox()))
    assert main(["export", str(run.folder), "--library", "--out", str(tmp_path / "library.py")]) == 1
    assert "no function is in 2 valid programs" in capsys.readouterr().err
    assert not (tmp_path / "library.py").exists()


@pytest.mark.parametrize("answers", [3, 8])
def test_max_cost_ends_the_run_with_the_answer_that_reaches_it(
    answers: int, made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One answer at a time, each of as many tokens; a token costs one."""
    program = "class Reward:\n    def reward_fn(self, state):\n        return float(state[1] > {})\n"
    said = f"A threshold.\n\n```python\n{program}```\n"
    numbers = iter(range(10**6))
    each = len(said.format(0).split())
    with ChatServer(answer=lambda _: said.format(next(numbers))) as server:
        demos = ["--demos", str(made.run.folder.parent / "set.parquet"), "--out", str(tmp_path / "run")]
        one = ["--concurrency", "1", "--samples-per-call", "1", "--set", "search.lag=1", "--answer-format", "code"]
        prices = ["--set", "model.price_out=1e6", "--max-cost", str(answers * each)]
        never = ["--set", "stop.plateau=none", "--set", "stop.target_accuracy=none", "--workers", "1"]
        assert main(["fit", *demos, "--llm-url", server.url, *one, *prices, *never, "--json"]) == 0
    found = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert found["reason"] == f"max_cost: {answers * each}"
    assert (found["calls"], found["cost"]) == (answers, answers * each)
