"""Expansion: what a round adds, what it leaves out, and that it goes on from wherever it was killed."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.cli.fit_results import print_run
from grace_irl.demos import load, save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import GraceError, InputError
from grace_irl.propose.protocol import Proposal
from grace_irl.rl.collect import collect
from grace_irl.rl.evaluation import Rollout
from grace_irl.runs.auditing import stored_audit
from grace_irl.runs.config import resolve
from grace_irl.runs.expand.expansion import is_expansion, resume, start
from grace_irl.runs.expand.learner import Learnt, PpoLearner, form_of
from grace_irl.runs.expand.round import Round, episodes, favourite, read_round, write_round
from grace_irl.runs.fit import Parts
from grace_irl.runs.run import Interrupted, Run, last_run, opened
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.propose.client.server import ChatServer
from tests.runs.older import made_older

FLAGS = {
    "search.population": 6,
    "search.elite": 2,
    "search.generations": 2,
    "data.held_out": 0.0,
    "expand.rounds": 2,
    "expand.steps": 101,
    "expand.episodes": 4,
    "sandbox.workers": 1,
}


def cloud(centre: float, seed: int, length: int = 200, **parts: Any) -> Trajectory:
    """States around (centre, centre)."""
    rng = np.random.default_rng(seed)
    return Trajectory(centre + 0.3 * rng.standard_normal((length, 2)), source=f"cloud {centre} {seed}", **parts)


def demonstrations(label: str = "all", centre: float = 2.0) -> Demonstrations:
    """Experts around the centre, negatives around minus that."""
    items = [Demonstration(cloud(centre, seed, terminated=True), "expert") for seed in range(4)]
    items += [Demonstration(cloud(-centre, 10 + seed), "negative") for seed in range(4)]
    return Demonstrations(Metadata("vector", ("x", "y"), "Cloud-v0", label=label), tuple(items))  # type: ignore[arg-type]


class Thresholds:
    """Proposes "x is above T" and "x is between T and 3.5" in turn, for three T, whatever is asked."""

    async def propose(self, request: Any, parents: Any) -> Proposal:
        low = -1.0 + request.index % 3
        body = f"{low} < state[0] < 3.5" if request.index % 2 else f"state[0] > {low}"
        return Proposal(
            "class Reward:\n    def __init__(self, extra_info=None): pass\n"
            f"    def reward_fn(self, state): return float({body})\n"
        )


class FakeLearner:
    """Its policies go to given places, whatever the reward.

    Args:
        centres: of each round's rollouts.
        fail_at: which call to it (from 0) breaks off.
        error: how.
    """

    def __init__(
        self, centres: Sequence[float] = (6.0, 6.0), fail_at: int = -1, error: Any = KeyboardInterrupt
    ) -> None:
        self.centres = centres
        self.calls = 0
        self.fail_at = fail_at
        self.error = error
        self.trained: list[tuple[int, int, bool]] = []

    carries = False

    def _call(self) -> None:
        self.calls += 1
        if self.calls - 1 == self.fail_at:
            raise self.error

    def check(self, demonstrations: Demonstrations) -> None:
        assert demonstrations.metadata.kind == "vector"

    def train(
        self, reward: Path, steps: int, seed: int, folder: Path, initial: Path | None, *, shaped: bool = False
    ) -> Learnt:
        self._call()
        assert "class Reward" in reward.read_text()
        self.trained.append((steps, seed, initial is not None))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "policy").write_text(folder.parent.name)
        return Learnt(folder / "policy", steps, (0.0, 0.0))

    def play(self, policy: Path, episodes: int, seed: int) -> Sequence[Rollout]:
        self._call()
        centre = self.centres[int(policy.read_text()) - 1]
        return [
            Rollout(cloud(centre, seed % 1000 + each, truncated=True), float(each), None, {"reward_x": 1.0})
            for each in range(episodes)
        ]


def parts(label: str = "all") -> Parts:
    return Parts(demonstrations(label), Thresholds(), InProcessSandbox())


def begun(folder: Path, learner: FakeLearner, **flags: object) -> Run:
    return start(resolve(flags={**FLAGS, **flags}), folder, parts(), learner)


@pytest.mark.parametrize(("label", "ended", "told"), [("last", False, 1), ("last", True, 0), ("all", False, 0)])
def test_a_line_tells_that_no_rollout_can_count_as_a_success(
    label: str, ended: bool, told: int, tmp_path: Path
) -> None:
    notes: list[str] = []
    own = demonstrations(label)
    items = [replace(item, trajectory=replace(item.trajectory, terminated=ended)) for item in own]
    given = replace(parts(label), demonstrations=replace(own, items=tuple(items)), note=notes.append)
    start(resolve(flags={**FLAGS, "expand.rounds": 1, "expand.reshape": 0}), tmp_path / "run", given, FakeLearner())
    assert sum("every rollout becomes a negative" in note for note in notes) == told


def test_rollouts_become_negatives_and_the_reward_learns_of_them(tmp_path: Path) -> None:
    run = begun(tmp_path / "run", FakeLearner())
    first, second, third = run.rounds
    assert (first.number, first.run, first.policy) == (0, "rounds/0/run", "")
    assert first.accuracy == 1.0
    assert second.new_accuracy is not None
    assert second.new_accuracy < 0.99  # the first reward takes what lies beyond the experts for experts
    assert (second.changed, second.run) == (True, "rounds/1/run")
    assert second.program != first.program
    assert third.new_accuracy == 1.0  # the next policy goes to the same place, which the reward knows now
    assert (third.changed, third.run, third.program) == (False, "rounds/1/run", second.program)
    assert run.best.program.id == second.program
    assert "< 3.5" in run.reward_path.read_text()
    assert run.reward_path == tmp_path / "run" / "reward.py"
    added = load([], [tmp_path / "run" / "rounds" / "1" / "rollouts.parquet"])
    assert [item.role for item in added] == ["negative"] * 4
    assert (second.mean, second.rollouts, second.alike) == (1.5, 4, 0)
    assert second.components == {"reward_x": 1.0}


class Slopes:
    """Proposes "the further right, the better", as steep as is asked for."""

    async def propose(self, request: Any, parents: Any) -> Proposal:
        source = "class Reward:\n    def __init__(self, extra_info=None): pass\n"
        return Proposal(source + f"    def reward_fn(self, state): return {1 + request.index} * float(state[0])\n")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_trajectory_is_held_out_in_all_rounds_or_in_none(seed: int, tmp_path: Path) -> None:
    begun(tmp_path / "run", FakeLearner(), seed=seed, **{"data.held_out": 0.5})
    of_rounds = []
    for number in range(2):
        with opened(tmp_path / "run" / "rounds" / str(number) / "run") as (store, _):
            of_rounds.append({row.digest: row.split for row in store.trajectories()})
    before, after = of_rounds
    assert len(before) < len(after)
    assert {digest: after[digest] for digest in before} == before


def test_a_reward_that_is_unsure_of_the_rollouts_does_not_stay(tmp_path: Path) -> None:
    """Where the sides overlap the threshold may tell the rollouts well enough, and the discriminator be unsure."""
    known = Parts(demonstrations("all", 0.45), Slopes(), InProcessSandbox())
    flags = {**FLAGS, "expand.enough": 0.9}
    run = start(resolve(flags=flags), tmp_path / "run", known, FakeLearner((-0.45, -3.0)))
    _, near, far = run.rounds
    assert near.new_accuracy is not None
    assert near.new_accuracy > 0.9
    assert near.new_fitness is not None
    assert near.new_fitness < -0.25
    assert near.changed
    assert far.new_fitness is not None
    assert far.new_fitness > -0.2
    assert not far.changed


def test_rollouts_are_judged_at_the_threshold_that_the_reward_was_exported_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They lie beside it, on both sides; a threshold of their own would tell them all from experts."""
    known = Parts(demonstrations("all"), Slopes(), InProcessSandbox())
    run = start(resolve(flags=FLAGS), tmp_path / "run", known, FakeLearner((-0.1, -3.0)))
    beside, far = run.rounds[1:]
    assert beside.new_accuracy is not None
    assert 0.6 < beside.new_accuracy < 0.95
    assert beside.changed
    assert far.new_accuracy == 1.0
    assert main(["show", str(run.folder)]) == 0
    assert "best threshold on these data" not in capsys.readouterr().out
    for path in run.folder.glob("rounds/*/run/run.db"):
        made_older(path, 1)
    assert main(["show", str(run.folder)]) == 0
    assert "accuracy: best threshold on these data" in capsys.readouterr().out
    with pytest.raises(InputError, match="a run of format 1"):
        resume(run.folder, {"expand.rounds": 3}, parts=known, learner=FakeLearner((-0.1, -3.0, -3.0)))


class Carrying(FakeLearner):
    """Its policies go on from others'."""

    carries = True

    def __init__(self, centres: Sequence[float]) -> None:
        super().__init__(centres)
        self.begun_with: list[str] = []

    def train(
        self, reward: Path, steps: int, seed: int, folder: Path, initial: Path | None, *, shaped: bool = False
    ) -> Learnt:
        self.begun_with.append("" if initial is None else initial.read_text())
        return super().train(reward, steps, seed, folder, initial, shaped=shaped)


@pytest.mark.slow
@pytest.mark.parametrize(("centres", "begun_with"), [((1.2, 1.1, 0.0), ["", "1", "1"]), ((1.1, 1.2), ["", "1", "2"])])
def test_the_policy_that_the_new_reward_likes_best_goes_on(
    centres: tuple[float, ...], begun_with: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not the last one, where that has become worse."""
    known, learner = Parts(demonstrations("all"), Slopes(), InProcessSandbox()), Carrying((*centres, 0.0))
    run = start(resolve(flags={**FLAGS, "expand.rounds": 3}), tmp_path / "run", known, learner)
    assert [each.changed for each in run.rounds[1:3]] == [True, True]
    assert learner.begun_with == begun_with
    assert run.favourite is not None
    assert run.favourite.number == 1 + centres.index(1.2)
    print_run(run, None, as_json=False)
    told = f"policy: {run.folder / run.favourite.policy} (it earns the most reward of all rounds' policies)"
    assert told in capsys.readouterr().out
    again = resume(tmp_path / "run", parts=known, learner=learner)
    assert again.favourite == run.favourite


def test_the_favourite_is_paid_most_an_episode_or_reaches_the_goal_most_often(tmp_path: Path) -> None:
    """Long episodes of middling states are paid more than short ones of good states; the later one of equals is it."""
    reward = tmp_path / "reward.py"
    source = asyncio.run(Slopes().propose(SimpleNamespace(index=0), ())).source
    reward.write_text(source + "SCALE = 1.0\nOFFSET = 0.0\n")
    rounds = [Round(number, rollouts=4, alike=alike) for number, alike in ((1, 3), (2, 1), (3, 3))]
    played = [[cloud(2.0, 1, 20)], [cloud(0.0, 2, 200), cloud(0.0, 3, 200)], [cloud(-3.0, 4, 200)]]
    for each, parts_of in zip(rounds, played, strict=True):
        items = tuple(Demonstration(one, "negative") for one in parts_of)
        name = "alike" if each.number == 2 else "rollouts"  # what is not called negative counts, too
        save(replace(demonstrations("all"), items=items), tmp_path / "rounds" / str(each.number) / f"{name}.parquet")
    config = resolve(flags=FLAGS)
    assert favourite(rounds, tmp_path, reward, config, "all").number == 2
    assert favourite(rounds, tmp_path, reward, config, "last").number == 3
    progress = resolve(flags={**FLAGS, "expand.form": "progress"})
    assert favourite(rounds, tmp_path, reward, progress, "all").number == 1  # it ends where most is paid
    assert len(episodes(tmp_path, 2)) == 2


def test_steps_are_shared_and_policies_go_on_where_the_reward_stayed(tmp_path: Path) -> None:
    learner = FakeLearner((6.0, 6.0, 6.0))
    run = begun(tmp_path / "run", learner, **{"expand.rounds": 3})
    assert [each.changed for each in run.rounds] == [True, True, False, False]
    assert [steps for steps, _, _ in learner.trained] == [34, 33, 34]
    assert [on for _, _, on in learner.trained] == [False, False, True]
    assert len({seed for _, seed, _ in learner.trained}) == 3


@pytest.mark.parametrize(("growth", "expected"), [(1.0, [34, 33, 34]), (2.0, [14, 29, 58]), (10.0, [1, 9, 91])])
def test_later_rounds_may_take_more_of_the_steps(growth: float, expected: list[int], tmp_path: Path) -> None:
    learner = FakeLearner((6.0, 6.0, 6.0))
    begun(tmp_path / "run", learner, **{"expand.rounds": 3, "expand.growth": growth})
    assert [steps for steps, _, _ in learner.trained] == expected
    assert sum(expected) == FLAGS["expand.steps"]


def test_the_programs_of_the_last_search_come_first(tmp_path: Path) -> None:
    run = begun(tmp_path / "run", FakeLearner())
    with opened(run.folder / "rounds" / "0" / "run") as (store, _):
        before = {record.program.source for record in store.records().values()}
    with opened(run.folder / "rounds" / "1" / "run") as (store, config):
        proposals = [proposal for _, _, proposal in store.proposals()]
    given = [proposal.source for proposal in proposals if proposal.reasoning.startswith("given")]
    assert given
    assert set(given) <= before
    assert config.data.negatives == (str(tmp_path / "run" / "rounds" / "1" / "rollouts.parquet"),)


def test_what_looks_like_an_expert_is_not_called_negative(tmp_path: Path) -> None:
    notes: list[str] = []
    known = replace(parts(), note=notes.append)
    run = start(resolve(flags=FLAGS), tmp_path / "run", known, FakeLearner(centres=(2.0, 2.0)))
    assert len(run.rounds) == 2
    assert (run.rounds[1].alike, run.rounds[1].new_accuracy, run.rounds[1].changed) == (4, None, False)
    assert "no rollout of round 1 can be told from an expert's" in run.reason
    assert any("4 of 4 rollouts look like an expert's" in note for note in notes)
    place = tmp_path / "run" / "rounds" / "1"
    assert (place / "alike.parquet").exists()
    assert not (place / "rollouts.parquet").exists()
    again = resume(tmp_path / "run", parts=parts(), learner=FakeLearner(centres=(2.0, 2.0)))
    assert again.rounds == run.rounds


def test_where_episodes_end_at_the_goal_what_ended_there_is_an_experts(tmp_path: Path) -> None:
    class Half(FakeLearner):
        def play(self, policy: Path, episodes: int, seed: int) -> Sequence[Rollout]:
            there = [cloud(2.0, each, terminated=True) for each in range(2)]
            elsewhere = [cloud(-2.0, 50, terminated=True), cloud(2.0, 51, truncated=True)]
            return [Rollout(each, 0.0, None, {}) for each in (*there, *elsewhere)]

    run = start(resolve(flags=FLAGS), tmp_path / "run", parts("last"), Half())
    assert run.rounds[1].alike == 2  # not what ended elsewhere, nor what stood there without ending


def test_an_expert_that_reached_no_goal_judges_no_rollout(tmp_path: Path) -> None:
    """It ended, too, but where nobody wants to go; its last state would make every end an expert's."""

    class Half(FakeLearner):
        def play(self, policy: Path, episodes: int, seed: int) -> Sequence[Rollout]:
            played = [cloud(2.0, 50, terminated=True), cloud(-2.0, 51, terminated=True)]
            return [Rollout(each, 0.0, None, {}) for each in played]

    known = demonstrations("goal")
    marked = [replace(item, goals=(item.trajectory.num_steps,)) for item in known.select(role="expert")]
    failed = Demonstration(cloud(-2.0, 60, terminated=True), "expert", goals=())
    items = (*marked, failed, *known.select(role="negative"))
    parts_of = Parts(replace(known, items=items), Thresholds(), InProcessSandbox())
    run = start(resolve(flags=FLAGS), tmp_path / "run", parts_of, Half())
    assert (run.rounds[1].rollouts, run.rounds[1].alike) == (2, 1)


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


def test_what_cannot_be_expanded_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    nameless = replace(demonstrations(), metadata=Metadata("vector", ("x", "y")))
    with pytest.raises(InputError, match="expected --env"):
        start(resolve(flags=FLAGS), tmp_path / "run", Parts(nameless))
    with pytest.raises(InputError, match="expected the environment and view"):
        start(resolve(flags={**FLAGS, "expand.env": "BabyAI-GoToObj-v0"}), tmp_path / "run", Parts(nameless))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("form", "rule", "reshaped", "expected"),
    [
        *(("auto", rule, reshaped, "soft") for rule in ("all", "") for reshaped in (False, True)),
        *(("auto", rule, False, "raw") for rule in ("last", "goal")),
        *(("auto", rule, True, "progress") for rule in ("last", "goal")),
        ("logit", "last", True, "logit"),
        ("raw", "all", False, "raw"),
    ],
)
def test_the_form_follows_labels_and_reshaping_unless_it_is_stated(
    form: str, rule: str, reshaped: bool, expected: str
) -> None:
    assert form_of(resolve(flags={"expand.form": form}).expand, rule, reshaped=reshaped) == expected


def test_show_and_other_commands_know_an_expansion(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = begun(tmp_path / "run", FakeLearner())
    assert is_expansion(run.folder)
    capsys.readouterr()
    assert main(["show", str(run.folder), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [each["program"] for each in shown["rounds"]] == [each.program for each in run.rounds]
    with opened(last_run(run.folder)) as (store, _):
        audit = stored_audit(store)
    assert audit is not None
    assert [each["code"] for each in shown["warnings"]] == [each.code for each in audit.warnings] != []
    assert main(["show", str(run.folder)]) == 0
    said = capsys.readouterr().out
    assert "searched" in said
    assert all(each.line in said for each in audit.warnings)
    assert main(["show", str(run.folder), "--program", "a"]) == 2
    assert main(["export", str(run.folder), "--library", str(tmp_path / "library.py")]) == 2
    assert str(last_run(run.folder)) in capsys.readouterr().err


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("near", "swaps", "told"), [(False, False, {"instruction-ignored"}), (True, False, set()), (True, True, set())]
)
def test_near_misses_and_swaps_stay_beside_the_rollouts(
    near: bool, swaps: bool, told: set[str], tmp_path: Path
) -> None:
    """They keep their sides of the split, and the contrast and the warnings of each round count them."""
    pytest.importorskip("minigrid", reason="grace-irl[rl] is not installed")
    level = "BabyAI-GoToLocalS6N4-v0"
    experts = collect(level, "bot", 12, "expert", seed=5)
    negatives = collect(level, "bot" if near else "random", 8, "negative", seed=50, near_miss=near)

    class Wandering(FakeLearner):
        def check(self, demonstrations: Demonstrations) -> None:
            assert demonstrations.metadata.view == "minigrid-full"

        def play(self, policy: Path, episodes: int, seed: int) -> Sequence[Rollout]:
            played = collect(level, "random", episodes, "negative", seed=seed % 1000)
            return [Rollout(item.trajectory, 0.0, False, {}) for item in played]

    flags = {"expand.rounds": 1, "expand.enough": 1.0, "expand.reshape": 0, "data.held_out": 0.3}
    flags |= {"search.population": 4, "search.generations": 1, "data.swaps": swaps}
    given = replace(experts, items=(*experts, *negatives))
    run = start(resolve(flags={**FLAGS, **flags}), tmp_path / "run", Parts(given), Wandering())
    sides = []
    for each in run.rounds:
        with opened(tmp_path / "run" / each.run) as (store, _):
            sides.append({row.digest: row.split for row in store.trajectories()})
            audit = stored_audit(store)
        assert audit is not None
        assert audit.contrast is not None
        assert audit.contrast.unpaid is not None
        assert (audit.contrast.unpaid.value < 0.9) == bool(told)
        assert {warning.code for warning in audit.warnings} - {"few-episodes"} == told
    before, after = sides
    added = {item.trajectory.digest for item in load([], [tmp_path / "run" / "rounds" / "1" / "rollouts.parquet"])}
    assert {item.trajectory.digest for item in given} <= before.keys()
    assert (len(before) > len(given)) is swaps
    assert after.keys() - before.keys() == added
    assert {after[digest] for digest in added} == {"train", "held_out"}
    assert before.items() <= after.items()


@pytest.mark.parametrize(
    ("environment", "carry", "expected"),
    [
        ("Hopper-v5", "auto", True),
        ("Hopper-v5", "never", False),
        ("BabyAI-GoToObj-v0", "auto", False),
        ("BabyAI-GoToObj-v0", "always", True),
    ],
)
def test_a_policy_of_continuous_actions_goes_on_with_another_reward(
    environment: str, carry: str, expected: bool
) -> None:
    pytest.importorskip("stable_baselines3")
    kind, shape = ("vector", (11,)) if environment.startswith("Hopper") else ("grid", (8, 8, 3))
    states = np.zeros((3, *shape), np.float64 if kind == "vector" else np.uint8)
    metadata = Metadata(kind, environment=environment, view="" if kind == "vector" else "minigrid-full")  # type: ignore[arg-type]
    learner = PpoLearner(resolve(flags={"expand.carry": carry}).expand, note=lambda _: None)
    learner.check(Demonstrations(metadata, (Demonstration(Trajectory(states), "expert"),)))
    assert learner.carries is expected


def test_a_policy_that_explores_on_goes_on_where_the_reward_changed(tmp_path: Path) -> None:
    class Carrying(FakeLearner):
        carries = True

    learner = Carrying((6.0, 6.0, 6.0))
    run = begun(tmp_path / "run", learner, **{"expand.rounds": 3})
    assert [each.changed for each in run.rounds] == [True, True, False, False]
    assert [on for _, _, on in learner.trained] == [False, True, True]
