"""Searches whose programs demonstrations judge, or, where a run names a task, trained policies."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.labels import label
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.methods.directed_operators import ALIGN, CHANGED, NEW, VERIFY
from grace_irl.methods.directed_operators import OPERATORS as OPERATORS_OVER_DEMOS
from grace_irl.methods.registry import METHODS, judged_by, needs_demonstrations
from grace_irl.propose.material import Workbench
from grace_irl.propose.prompter import Prompter, PromptSettings
from grace_irl.propose.protocol import Parent
from grace_irl.search.protocol import Request
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.methods.panels import PANELS, panels_in
from tests.propose.client.server import ChatServer
from tests.runs.test_model_runs import Model

SHIPPED = Path(__file__).resolve().parents[2] / "datasets" / "babyai-go-to-obj"
ENDLESS = ("--set", "stop.target_accuracy=none", "--set", "stop.plateau=none")
SMALL = {
    "random": ["--programs", "6"],
    "eureka": ["--rounds", "3", "--round-programs", "3"],
    "revolve": ["--programs", "10", "--islands", "2", "--island-programs", "4"],
    "rf-agent": ["--programs", "9", "--first-programs", "4", "--actions", "1,1,1,1,1"],
    "forge": ["--first-programs", "4", "--rounds", "2", "--pairs", "2", "--pool-programs", "3"],
    "map-elites": ["--programs", "14", "--first-programs", "3"],
}
OPERATORS = {
    "random": {"initialise"},
    "eureka": {"initialise", "reflect"},
    "revolve": {"initialise", "mutate", "crossover"},
    "rf-agent": {"initialise", "structure", "weights", "crossover", "path", "different"},
    "forge": {"plan", "crossover"},
    "map-elites": {"initialise", "mutate"},
}
Capture = pytest.CaptureFixture[str]


def done(capsys: Capture, *words: object) -> dict[str, Any]:
    """The object that a command prints last."""
    assert main([*map(str, words), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def asked(run: Path) -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(run / "run.db")) as database:
        return list(database.execute("SELECT operator, parents, seed FROM requests ORDER BY idx"))


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each third episode of the set that ships."""
    found = load([SHIPPED])
    folder = tmp_path_factory.mktemp("demos")
    save(replace(found, items=found.items[::3]), folder / "set.parquet")
    return folder


def test_these_methods_have_two_forms_with_the_same_settings() -> None:
    assert {name for name, each in METHODS.items() if each.with_task is not None} == SMALL.keys()
    for name in SMALL:
        plain, other = METHODS[name], judged_by(name, "reacher")
        assert (plain.name, plain.sections, plain.summary) == (other.name, other.sections, other.summary)
        assert plain.needs.demonstrations
        assert not other.needs.demonstrations
        assert not needs_demonstrations(name)
    assert judged_by("grace", "reacher") is METHODS["grace"]


@pytest.mark.slow
@pytest.mark.parametrize("author", ["synthesis", "drafts"])
@pytest.mark.parametrize("name", SMALL)
def test_demonstrations_judge_programs(name: str, author: str, demos: Path, tmp_path: Path, capsys: Capture) -> None:
    words = ["fit", "--demos", demos, "--method", name, "--proposer", author, *SMALL[name], *ENDLESS]
    whole = done(capsys, *words, "--out", tmp_path / "whole")
    assert whole["train"]["auc"] >= 0.5
    assert {operator for operator, _, _ in asked(tmp_path / "whole")} == OPERATORS[name]
    page = (tmp_path / "whole" / "report.html").read_text()
    assert panels_in(page) == PANELS.get(name, [])
    done(capsys, *words, "--out", tmp_path / "parts", "--max-calls", "5")
    again = done(capsys, "fit", "--resume", tmp_path / "parts", "--max-calls", "100")
    assert again["program"] == whole["program"]
    both = asked(tmp_path / "parts"), asked(tmp_path / "whole")
    assert all(one == other for one, other in zip(*both, strict=False))  # a writer without more programs ends a run
    assert main(["export", str(tmp_path / "whole"), "--recording", str(tmp_path / "r.jsonl")]) == 0
    replayed = done(capsys, "fit", "--replay", tmp_path / "r.jsonl", "--demos", demos, "--out", tmp_path / "again")
    assert replayed["program"] == whole["program"]
    assert asked(tmp_path / "again") == asked(tmp_path / "whole")[: len(asked(tmp_path / "again"))]


@pytest.mark.slow
def test_a_model_is_told_the_direction_and_the_other_programs(tmp_path: Path, capsys: Capture) -> None:
    save(vector_set(noise=0.05), tmp_path / "set.parquet")
    model = Model(troubles=False)
    with ChatServer(answer=model) as server:
        words = ["fit", "--demos", tmp_path / "set.parquet", "--llm-url", server.url, "--answer-format", "code"]
        own = ["--method", "rf-agent", *SMALL["rf-agent"], *ENDLESS, "--out", tmp_path / "run"]
        found = done(capsys, *words, *own)
    assert found["calls"] == 9
    for name, count in (("structure", 2), ("weights", 1), ("crossover", 1)):  # the path of a first program: structure
        prompts = [each for each in model.prompts if CHANGED[name] in each]
        assert [("# Another program (1)" in each, "WRONG" in each) for each in prompts] == [
            (name == "crossover", True)
        ] * count
    (prompt,) = [each for each in model.prompts if NEW["different"] in each]
    assert "# Program 1" in prompt
    assert any("The program in words: A threshold." in each for each in model.prompts)
    for text in (ALIGN, VERIFY):
        opinions = [each for each in model.prompts if text in each]
        assert len(opinions) >= 5
        assert not any("accuracy" in each.split("# The program")[1] for each in opinions)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--demos", SHIPPED, "--train-steps", "64"], "--train-steps: no effect, since this run has no task"),
        (["--task", "acrobot", "--log-pi", "uniform"], "--log-pi: no effect, since this run has a task"),
        (["--task", "acrobot", "--label", "last"], "--label: no effect with a task; expected no --task"),
        ([], "no demonstrations and no task; expected --demos PATH…, such as"),
        (["--task", "acrobot", "--proposer", "drafts"], "--proposer drafts without demonstrations"),
    ],
)
def test_settings_of_the_other_form_are_refused(
    words: list[object], said: str, tmp_path: Path, capsys: Capture
) -> None:
    run = tmp_path / "run"
    assert main(["fit", "--method", "forge", *map(str, words), "--out", str(run)]) == 2
    assert said in capsys.readouterr().err
    assert not run.exists()


def test_drafts_over_numbers_need_actions(tmp_path: Path, capsys: Capture) -> None:
    save(vector_set(4, 4), tmp_path / "set.parquet")
    words = ["fit", "--method", "random", "--proposer", "drafts", "--out", str(tmp_path / "run")]
    code = main([*words, "--demos", str(tmp_path / "set.parquet")])
    said = capsys.readouterr().err
    assert (code, "trajectories have no actions" in said) == (2, True)


LONGER = {
    "random": ("random.programs=4", "random.programs=6"),
    "eureka": ("eureka.rounds=2", "eureka.rounds=3"),
    "revolve": ("revolve.programs=6", "revolve.programs=10"),
    "forge": ("forge.rounds=1", "forge.rounds=2"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LONGER)
def test_a_finished_run_may_be_lengthened(name: str, demos: Path, tmp_path: Path, capsys: Capture) -> None:
    words = ["fit", "--demos", demos, "--method", name, "--proposer", "drafts", *SMALL[name], *ENDLESS]
    before, after = LONGER[name]
    done(capsys, *words, "--out", tmp_path / "parts", "--set", before)
    longer = done(capsys, "fit", "--resume", tmp_path / "parts", "--set", after)
    whole = done(capsys, *words, "--out", tmp_path / "whole", "--set", after)
    assert longer["program"] == whole["program"]
    assert asked(tmp_path / "parts") == asked(tmp_path / "whole")


@pytest.mark.slow
def test_a_replay_that_searches_otherwise_says_so(demos: Path, tmp_path: Path, capsys: Capture) -> None:
    words = ["fit", "--demos", demos, "--method", "rf-agent", "--proposer", "drafts", *SMALL["rf-agent"], *ENDLESS]
    done(capsys, *words, "--out", tmp_path / "run")
    for actions, said in (("1,1,1,1,1", False), ("0,0,0,0,5", True)):
        replay = ["fit", "--replay", tmp_path / "run", "--actions", actions, "--out", tmp_path / actions]
        assert main([*map(str, replay)]) == 0
        assert ("tree.actions was '1,1,1,1,1' and is" in capsys.readouterr().err) is said
    assert main(["fit", "--replay", str(tmp_path / "run"), "--seed", "9", "--out", str(tmp_path / "other")]) == 2
    assert "expected the same split (--seed, --held-out)" in capsys.readouterr().err


@pytest.mark.parametrize("operator", ["plan", "different"])
def test_states_of_a_new_kind_of_program_carry_no_rewards(operator: str) -> None:
    """Rewards of another program, unmarked beside the states, would look like data."""
    problem = label(vector_set(3, 3), "last")
    bench = Workbench(problem, InProcessSandbox())
    source = "class Reward:\n    def reward_fn(self, state):\n        return 0.125\n"
    known = Parent(InProcessSandbox().inspect(source).program(source), Evaluation("ok", score=-0.5))
    bench.rewards.put(
        known.program.id, {item.trajectory.digest: np.full(len(item.trajectory.states), 0.125) for item in problem}
    )
    writer = Prompter(bench, PromptSettings(operators=OPERATORS_OVER_DEMOS), "code")
    assert "{reward" in writer.write(Request(0, "structure", (known.program.id,), 0), [known]).user
    assert "{reward" not in writer.write(Request(0, operator, (known.program.id,), 0), [known]).user
