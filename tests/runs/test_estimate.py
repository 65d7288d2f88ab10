"""The estimate of a run, said before it begins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.errors import InputError
from grace_irl.propose.tokens import estimate
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.estimate import ANSWER, Estimate, estimated
from grace_irl.runs.fit import start
from grace_irl.runs.run import opened
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.propose.client.server import ChatServer
from tests.runs.test_model_runs import FLAGS, Model


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demos") / "set.parquet"
    save(vector_set(noise=0.05), path)
    return path


def of(demos: Path, sets: tuple[str, ...] = (), **flags: object) -> Estimate:
    return estimated(resolve(flags={"proposer.name": "llm", "data.demos": (str(demos),), **flags}, sets=sets))


ONE_ROUND = {"search.population": 10, "search.generations": 1, "search.samples": 4, "model.repair": False}


@pytest.mark.parametrize(
    ("flags", "typical", "most"),  # programs, calls, repairs
    [
        # 10 programs are 3 calls of 4, 4 and 2; a first population may take 20 more, at worst one by one
        (ONE_ROUND, (20, 6, 0), (40, 26, 0)),
        (ONE_ROUND | {"search.steady": True}, (20, 6, 0), (20, 6, 0)),
        (ONE_ROUND | {"search.steady": True, "model.repair": True}, (20, 11, 5), (20, 26, 20)),
        (ONE_ROUND | {"search.steady": True, "model.repair": True, "model.repairs": 3}, (20, 11, 5), (20, 66, 60)),
        (ONE_ROUND | {"search.steady": True, "stop.max_calls": 13}, (13, 4, 0), (13, 4, 0)),
        (ONE_ROUND | {"stop.max_calls": 5}, (5, 2, 0), (5, 2, 0)),
        (ONE_ROUND | {"search.steady": True, "search.reshape": 5}, (25, 8, 0), (25, 8, 0)),
        (ONE_ROUND | {"search.steady": True, "search.generations": 9, "stop.plateau": 2}, (30, 9, 0), (100, 30, 0)),
        (ONE_ROUND | {"search.steady": True, "proposer.seed_synthesis": 6}, (20, 4, 0), (20, 6, 0)),
    ],
)
def test_calls(demos: Path, flags: dict[str, object], typical: tuple[int, ...], most: tuple[int, ...]) -> None:
    found = of(demos, **flags)
    assert (found.typical.programs, found.typical.calls, found.typical.repairs) == typical
    assert (found.most.programs, found.most.calls, found.most.repairs) == most


def test_tokens_and_cost(demos: Path) -> None:
    prices = {"model.price_in": 2.0, "model.price_out": 8.0, "model.answer_tokens": 2000, "model.prompt_tokens": 5000}
    found = of(demos, **ONE_ROUND, **prices, **{"search.steady": True})
    first, second = found.prompts["initialise"], found.prompts["mutate"]
    assert (first.guess, second.guess) == (False, True)
    assert first.most == second.most == 5000 > first.typical > 500
    assert found.typical.tokens_in == 3 * first.typical + 3 * second.typical
    assert found.typical.tokens_out == 20 * ANSWER
    assert (found.most.tokens_in, found.most.tokens_out) == (6 * 5000, 20 * 2000)
    assert found.most.cost == pytest.approx((2.0 * 30_000 + 8.0 * 40_000) / 1e6)
    assert found.typical.tokens == found.typical.tokens_in + found.typical.tokens_out


def test_prompts_are_as_long_as_those_of_a_run(demos: Path, tmp_path: Path) -> None:
    flags = {**FLAGS, "data.demos": (str(demos),)}
    with ChatServer(answer=Model(troubles=False)) as server:
        found = estimated(resolve(flags={**flags, "model.url": server.url}))
        assert server.payloads == []  # it was asked for its name, and wrote nothing
        assert found.model == "model"
        run = start(
            resolve(flags={**flags, "model.url": server.url}), tmp_path / "run", Parts(sandbox=InProcessSandbox())
        )
    with opened(run.folder) as (store, _):
        requests = store.requests()
        sizes: dict[str, list[int]] = {"initialise": [], "mutate": []}
        for index, _, proposal in store.proposals():
            if proposal.prompt:
                sizes[requests[index][1]].append(estimate(proposal.prompt))
    mean = {name: sum(each) / len(each) for name, each in sizes.items()}
    assert found.prompts["initialise"].typical == pytest.approx(mean["initialise"], rel=0.1)
    # A guess: the programs of this test are short, the one that is made up has 1,200 tokens.
    assert mean["mutate"] < found.prompts["mutate"].typical < mean["mutate"] + 1.5 * ANSWER


def test_prompts_of_several_programs_count_all_of_them(demos: Path) -> None:
    forge, tree = (of(demos, method=method).prompts for method in ("forge", "rf-agent"))
    assert forge["crossover"].typical > 2 * ANSWER
    assert forge["plan"].typical > 6 * ANSWER  # on average 8 of 16 earlier ones
    assert tree["crossover"].typical > tree["weights"].typical + ANSWER


def test_a_task_shows_the_course_of_a_training() -> None:
    """Ten evaluations, and those of each component."""
    pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")
    flags = {"proposer.name": "llm", "method": "rf-agent", "policy.task": "acrobot"}
    found = estimated(resolve(flags=flags)).prompts
    assert found["structure"].typical > found["align"].typical + 400
    assert found["crossover"].typical > found["structure"].typical + 2 * ANSWER


def test_a_context_of_one_answer_leaves_half_of_it_for_prompts(demos: Path) -> None:
    with ChatServer(models=[{"id": "model", "max_model_len": 4096}]) as server:
        found = of(demos, **ONE_ROUND, **{"model.url": server.url, "model.answer_tokens": 4096})
    assert {size.most for size in found.prompts.values()} == {2048}


def test_a_small_context_bounds_prompts(demos: Path) -> None:
    models = [{"id": "small", "max_model_len": 6000}]
    with ChatServer(models=models) as server:
        found = of(demos, **{"model.url": server.url, "model.answer_tokens": 2000})
    assert (found.model, found.prompts["initialise"].most) == ("small", 4000)
    with (
        ChatServer(models=[{"id": "tiny", "max_model_len": 900}]) as server,
        pytest.raises(InputError, match="expected"),
    ):
        of(demos, **{"model.url": server.url, "model.answer_tokens": 600})


def test_no_server_is_a_note(demos: Path) -> None:
    found = of(demos, **{"model.url": "http://127.0.0.1:9"})
    assert any("127.0.0.1:9" in note for note in found.notes)
    assert any("no --llm-url" in note for note in of(demos).notes)
    assert found.typical.calls == of(demos).typical.calls


def test_caps(demos: Path) -> None:
    found = of(demos, **ONE_ROUND, **{"stop.max_tokens": 1000, "stop.max_cost": 2.0, "model.price_out": 1.0})
    caps = {cap.name: cap for cap in found.caps}
    assert set(caps) == {"max-tokens", "max-cost"}
    assert (caps["max-tokens"].limit, caps["max-tokens"].typical) == (1000, found.typical.tokens)
    assert caps["max-cost"].most == found.most.cost


def test_a_plateau_is_an_assumption_of_methods_that_count_all_programs(demos: Path) -> None:
    said = "plateau may end either run sooner: 4 generations without improvement"
    assert said in of(demos, **{"method": "eureka", "stop.plateau": 4}).assumptions
    assert not any("plateau" in line for line in of(demos, method="eureka").assumptions)


def test_goal_states_that_are_missing_are_a_note(demos: Path) -> None:
    found = of(demos, **{"data.label": "goal"})
    assert any("goal states of" in note for note in found.notes)


@pytest.mark.parametrize("name", ["synthesis", "replay"])
def test_a_proposer_without_a_model_is_refused(demos: Path, name: str) -> None:
    with pytest.raises(InputError, match="asks no model"):
        of(demos, **{"proposer.name": name})


def test_the_command(
    demos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["fit", "--demos", str(demos), "--proposer", "manual", "--estimate", "--max-tokens", "1000"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "prompt, mutate (a guess)" in out
    assert "--max-tokens 1000: ends a typical run when" in out
    assert "no prices given" in out
    assert "label rule all: set.parquet states it" in out
    assert main([*arguments, "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert answer["typical"]["tokens"] == answer["typical"]["tokens_in"] + answer["typical"]["tokens_out"]
    assert answer["prompts"]["mutate"]["guess"] is True
    assert (answer["label"], answer["label_reason"].partition(" (")[0]) == ("all", "set.parquet states it")
    assert list(tmp_path.iterdir()) == []
    assert main([*arguments, "--resume", str(tmp_path)]) == 2
    assert "--estimate" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["forge", "eureka"])
def test_given_programs_need_no_call_with_any_method(method: str, demos: Path, tmp_path: Path) -> None:
    given = tmp_path / "mine.py"
    given.write_text("class Reward:\n    def reward_fn(self, state): return 4.0\n")
    plain = of(demos, method=method)
    begun = of(demos, method=method, **{"proposer.start_from": (str(given),)})
    assert begun.most.programs == plain.most.programs
    assert begun.most.calls == plain.most.calls - 1  # it may be sent back, too


def test_given_programs_get_opinions_and_first_programs_that_fail_are_requested_again(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")
    given = tmp_path / "mine.py"
    given.write_text("class Reward:\n    def reward_fn(self, state): return 4.0\n")
    model = {"proposer.name": "llm", "policy.task": "acrobot"}
    tree = {"method": "rf-agent", "tree.programs": 1, "tree.first": 1, "proposer.start_from": (str(given),)}
    found = estimated(resolve(flags={**model, **tree}))
    assert (found.typical.programs, found.typical.calls) == (1, 2)  # align and verify
    evolution = {"policy_evolution.population": 4, "policy_evolution.generations": 2}
    found = estimated(resolve(flags={**model, "method": "policy-evolution", **evolution}))
    assert (found.typical.programs, found.most.programs) == (12, 20)


def test_limits_of_tokens_and_cost_count_all_searches_of_an_expansion(demos: Path) -> None:
    found = of(demos, **{"stop.max_tokens": 1000, "stop.max_calls": 9, "expand.rounds": 3})
    caps = {cap.name: cap for cap in found.caps}
    assert (caps["max-tokens"].typical, caps["max-tokens"].most) == (found.typical.tokens, 4 * found.most.tokens)
    assert caps["max-calls"].most == found.most.programs


def test_later_searches_of_an_expansion_are_a_note(demos: Path) -> None:
    assert any("each of the 3 rounds may search once more" in note for note in of(demos, **{"expand.rounds": 3}).notes)
