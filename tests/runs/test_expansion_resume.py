"""Expansions go on from wherever they were ended, with what may have moved or changed since."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grace_irl.errors import GraceError, InputError
from grace_irl.propose.protocol import Proposal
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.expand.expansion import resume, start
from grace_irl.runs.expand.round import Round, read_round, write_round
from grace_irl.runs.run import Interrupted
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.propose.client.server import ChatServer
from tests.runs.expansions import FLAGS, FakeLearner, Thresholds, begun, demonstrations, parts


def seen(folder: Path) -> str:
    return (folder / "reward.py").read_text().replace(folder.name, "it")


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("error", [KeyboardInterrupt(), GraceError("the simulator broke")])
def test_an_expansion_goes_on_from_wherever_it_was_ended(at: int, error: Any, tmp_path: Path) -> None:
    whole = begun(tmp_path / "whole", FakeLearner())
    with pytest.raises((Interrupted, GraceError)) as ended:
        begun(tmp_path / "broken", FakeLearner(fail_at=at, error=error))
    if isinstance(ended.value, Interrupted):
        assert ended.value.folder == tmp_path / "broken"
    else:
        again = f"go on with --resume {tmp_path / 'broken'}"  # said once
        assert str(ended.value) == f"the simulator broke; what was done is saved: {again}"
    run = resume(tmp_path / "broken", parts=parts(), learner=FakeLearner())
    assert run.rounds == whole.rounds
    assert run.best.program.id == whole.best.program.id
    assert seen(tmp_path / "broken") == seen(tmp_path / "whole")


def test_nobody_else_goes_on_while_the_first_search_runs(tmp_path: Path) -> None:
    said = set()

    class Disturbed(Thresholds):
        async def propose(self, request: Any, parents: Any) -> Proposal:
            with pytest.raises(InputError, match="the run is being worked on by process") as refused:
                resume(tmp_path / "run", parts=parts(), learner=FakeLearner())
            said.add(str(refused.value).partition(":")[0])
            return await super().propose(request, parents)

    disturbed = replace(parts(), proposer=Disturbed())
    run = start(resolve(flags=FLAGS), tmp_path / "run", disturbed, FakeLearner())
    assert said == {str(tmp_path / "run")}
    assert len(run.rounds) == 3


def test_an_expansion_whose_first_search_cannot_begin_is_not_said_to_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: Any) -> Any:
        raise GraceError("the server is down")

    monkeypatch.setattr("grace_irl.runs.fit.new_labelling", down)
    with pytest.raises(GraceError, match=r"^the server is down$"):
        begun(tmp_path / "run", FakeLearner())
    assert list(tmp_path.iterdir()) == []


def test_an_expansion_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.py"):
        begun(tmp_path / "runs" / "new", FakeLearner(), **{"proposer.start_from": (str(tmp_path / "nothing.py"),)})
    assert list(tmp_path.iterdir()) == []


def test_an_expansion_whose_time_is_up_before_the_first_proposal_goes_on_as_a_whole(tmp_path: Path) -> None:
    with pytest.raises(GraceError, match="the time was up before the first proposal") as ended:
        begun(tmp_path / "run", FakeLearner(), **{"stop.max_seconds": 1e-6})
    assert f"go on with more: grace-irl fit --resume {tmp_path / 'run'} --max-seconds N" in str(ended.value)
    run = resume(tmp_path / "run", {"stop.max_seconds": 120.0}, parts=parts(), learner=FakeLearner())
    assert len(run.rounds) == 3


def test_rounds_that_lost_their_last_file_are_done_again(tmp_path: Path) -> None:
    whole = begun(tmp_path / "run", FakeLearner())
    rounds = tmp_path / "run" / "rounds"
    (rounds / "2" / "round.json").unlink()
    shutil.rmtree(rounds / "2" / "training")
    assert resume(tmp_path / "run", parts=parts(), learner=FakeLearner()).rounds == whole.rounds
    for number in (1, 2):
        (rounds / str(number) / "round.json").unlink()
    assert resume(tmp_path / "run", parts=parts(), learner=FakeLearner()).rounds == whole.rounds


def test_more_rounds_may_be_asked_for_later_and_nothing_else_changed(tmp_path: Path) -> None:
    run = begun(tmp_path / "run", FakeLearner((6.0, 6.0, -6.0)))
    more = resume(tmp_path / "run", {"expand.rounds": 3}, parts=parts(), learner=FakeLearner((6.0, 6.0, -6.0)))
    assert more.rounds[:3] == run.rounds
    assert len(more.rounds) == 4
    with pytest.raises(InputError, match="expected no change but in the number of rounds"):
        resume(tmp_path / "run", {"expand.episodes": 9}, parts=parts(), learner=FakeLearner())


@pytest.mark.parametrize("cap", [None, 0.05])
def test_tokens_and_cost_are_those_of_all_searches(cap: float | None, tmp_path: Path) -> None:
    numbers = itertools.count()

    def answer(_: str) -> str:
        number = next(numbers)
        low = number % 3 - 1
        body = f"{low} < state[0] < 3.5" if number % 2 else f"state[0] > {low}"
        return f"ok\n\n```python\nclass Reward:\n    def reward_fn(self, state):\n        return float({body})\n```\n"

    with ChatServer(answer=answer) as server:
        model = {"model.url": server.url, "model.answer_format": "code", "search.samples": 1, "model.concurrency": 1}
        limits = {"model.price_in": 2.0, "model.price_out": 6.0, "stop.max_cost": cap, "stop.target_accuracy": None}
        config = resolve(flags={**FLAGS, **model, **limits})
        made = Parts(demonstrations(), None, InProcessSandbox())
        run = start(config, tmp_path / "run", made, FakeLearner())
        paid, tokens = (2 * server.tokens_in + 6 * server.tokens_out) / 1e6, server.tokens_in + server.tokens_out
        one_call = paid / len(server.payloads)
        again = resume(tmp_path / "run", parts=made, learner=FakeLearner())
    assert sum(each.changed for each in run.rounds) > 0
    assert (run.tokens, round(run.cost, 9)) == (tokens, round(paid, 9))
    assert cap is None or paid <= cap + 2 * one_call
    assert (again.tokens, again.cost) == (run.tokens, run.cost)


def test_the_file_of_an_environment_is_found_from_anywhere_and_may_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, moved = tmp_path / "run", tmp_path / "moved" / "env.py"
    moved.parent.mkdir()
    (tmp_path / "env.py").touch()
    monkeypatch.chdir(tmp_path)
    begun(folder, FakeLearner(), **{"expand.rounds": 1, "expand.env": "env.py:make"})
    stored = folder / "rounds" / "0" / "run" / "config.toml"
    assert resolve(stored).expand.env == f"{tmp_path / 'env.py'}:make"
    resume(folder, {"expand.env": "env.py:make"}, parts=parts(), learner=FakeLearner())
    monkeypatch.chdir(moved.parent)
    (tmp_path / "env.py").rename(moved)
    for other in ("env.py:another", "world.py:make", "Hopper-v5"):
        with pytest.raises(InputError, match="expected no change but in the number of rounds"):
            resume(folder, {"expand.env": other}, parts=parts(), learner=FakeLearner())
    assert len(resume(folder, {"expand.env": "env.py:make"}, parts=parts(), learner=FakeLearner()).rounds) == 2
    assert resolve(stored).expand.env == f"{moved}:make"


def test_the_file_of_an_environment_may_move_before_the_first_search_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(Thresholds):
        async def propose(self, request: Any, parents: Any) -> Proposal:
            raise KeyboardInterrupt

    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "env.py").touch()
    monkeypatch.chdir(tmp_path / "here")
    config = resolve(flags={**FLAGS, "expand.env": "env.py:make"})
    with pytest.raises(Interrupted):
        start(config, tmp_path / "run", replace(parts(), proposer=Stopped()), FakeLearner())
    monkeypatch.chdir(tmp_path / "there")
    run = resume(tmp_path / "run", {"expand.env": "env.py:make"}, parts=parts(), learner=FakeLearner())
    assert len(run.rounds) == 3
    stored = resolve(tmp_path / "run" / "rounds" / "0" / "run" / "config.toml")
    assert stored.expand.env == f"{tmp_path / 'there' / 'env.py'}:make"


def test_the_number_of_rounds_stays_while_a_round_trains(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    begun(folder, FakeLearner(), **{"expand.rounds": 1})
    (folder / "rounds" / "2" / "training").mkdir(parents=True)
    kept = resolve(folder / "rounds" / "0" / "run" / "config.toml")
    with pytest.raises(InputError, match=r"training of round 2 has begun.*expected 1 rounds until .* --expand 3"):
        resume(folder, {"expand.rounds": 3}, parts=parts(), learner=FakeLearner())
    assert resolve(folder / "rounds" / "0" / "run" / "config.toml") == kept  # plain --resume goes on


def test_changes_that_a_resume_is_given_are_kept_and_others_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    begun(folder, FakeLearner(), **{"expand.rounds": 1})
    with pytest.raises(InputError, match="setting 'seed' was 0 when the run began and is 7 now"):
        resume(folder, {"seed": 7, "expand.rounds": 2}, parts=parts(), learner=FakeLearner())
    broken = FakeLearner(fail_at=0, error=GraceError("the simulator broke"))
    with pytest.raises(GraceError, match="the simulator broke"):
        resume(folder, {"expand.rounds": 2, "stop.max_calls": 40}, parts=parts(), learner=broken)
    again = resume(folder, parts=parts(), learner=FakeLearner())
    assert len(again.rounds) == 3
    assert resolve(folder / "rounds" / "0" / "run" / "config.toml").stop.max_calls == 40


def test_a_damaged_round_is_said(tmp_path: Path) -> None:
    path = tmp_path / "round.json"
    assert read_round(path) is None
    write_round(path, Round(1, mean=2.0))
    assert read_round(path) == Round(1, mean=2.0)
    for text in ("{", "[]", '{"number": 1}'):
        path.write_text(text)
        with pytest.raises(GraceError, match="delete it"):
            read_round(path)


@pytest.mark.slow
def test_ppo_expands_a_reward_of_the_shipped_demonstrations_and_goes_on_when_killed(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    demos = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"
    settings = {"data.demos": (str(demos),), "expand.rounds": 1, "expand.steps": 2048, "expand.episodes": 4}
    config = resolve(flags={**settings, "sandbox.workers": 1, "expand.trust": True})
    run = start(config, tmp_path / "run")
    assert [each.number for each in run.rounds] == [0, 1]
    last = run.rounds[1]
    assert (last.rollouts, last.steps >= 2048) == (4, True)
    assert last.success == last.alike / 4  # what reached the goal is what looks like an expert's
    assert last.new_accuracy is None or last.new_accuracy > 0.95
    (tmp_path / "run" / "rounds" / "1" / "round.json").unlink()
    assert resume(tmp_path / "run").rounds == run.rounds
