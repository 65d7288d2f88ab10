"""Rounds of an expansion: what each of them adds and leaves out, and when its reward changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.cli.fit_results import print_run
from grace_irl.demos import load, save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.programs.export import export_source
from grace_irl.rl.collect import collect
from grace_irl.rl.evaluation import Rollout
from grace_irl.runs.auditing import stored_audit
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.expand.expanding import with_outcome
from grace_irl.runs.expand.expansion import is_expansion, resume, start
from grace_irl.runs.expand.learner import Learnt, PpoLearner
from grace_irl.runs.expand.round import Round, episodes, favourite
from grace_irl.runs.run import last_run, opened
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.runs.expansions import FLAGS, Carrying, FakeLearner, Slopes, Thresholds, begun, cloud, demonstrations, parts
from tests.runs.older import made_older


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


def test_with_a_goal_the_policy_is_named_that_looks_most_like_an_expert(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = replace(parts("last"), note=None)
    run = start(
        resolve(flags={**FLAGS, "expand.rounds": 1, "expand.reshape": 0}), tmp_path / "run", given, FakeLearner()
    )
    print_run(run, None, as_json=False)
    assert run.favourite is not None
    told = f"policy: {run.folder / run.favourite.policy} (of all rounds' policies, its rollouts most often look like an"
    assert told in capsys.readouterr().out


def test_the_searches_of_a_finished_expansion_are_not_reshaped_later(tmp_path: Path) -> None:
    run = begun(tmp_path / "run", FakeLearner())
    kept = (run.folder / "rounds/0/run/config.toml").read_bytes()
    with pytest.raises(InputError, match=r"--reshape is 2 and was 0 .* --start-from \S+reward.py --reshape N"):
        resume(run.folder, {"search.reshape": 2}, parts=parts(), learner=FakeLearner())
    assert (run.folder / "rounds/0/run/config.toml").read_bytes() == kept


def test_demonstrations_in_memory_are_asked_for_again(tmp_path: Path) -> None:
    run = begun(tmp_path / "run", FakeLearner())
    with pytest.raises(InputError, match=r"began with demonstrations in memory; expected them again: grace_irl\.fit"):
        resume(run.folder, learner=FakeLearner())


def test_the_favourite_is_paid_most_an_episode_or_reaches_the_goal_most_often(tmp_path: Path) -> None:
    """Long episodes of middling states are paid more than short ones of good states; the later one of equals is it."""
    reward = tmp_path / "reward.py"
    source = asyncio.run(Slopes().propose(SimpleNamespace(index=0), ())).source
    rounds = [Round(number, rollouts=4, alike=alike) for number, alike in ((1, 3), (2, 1), (3, 3))]
    played = [[cloud(2.0, 1, 20)], [cloud(0.0, 2, 200), cloud(0.0, 3, 200)], [cloud(-3.0, 4, 200)]]
    for each, parts_of in zip(rounds, played, strict=True):
        items = tuple(Demonstration(one, "negative") for one in parts_of)
        name = "alike" if each.number == 2 else "rollouts"  # what is not called negative counts, too
        save(replace(demonstrations("all"), items=items), tmp_path / "rounds" / str(each.number) / f"{name}.parquet")
    reward.write_text(export_source(source, title="Up.", facts=[("label", "all (…)")], scale=1.0))
    config = resolve(flags=FLAGS)  # soft
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


class Rolling(FakeLearner):
    """Rounds steps up to whole rollouts."""

    def __init__(self, rollout: int) -> None:
        super().__init__((6.0, 6.0, 6.0, 6.0))
        self.rollout = rollout

    def train(self, reward: Path, steps: int, seed: int, folder: Path, initial: Path | None) -> Learnt:
        return super().train(reward, -(-steps // self.rollout) * self.rollout, seed, folder, initial)


@pytest.mark.parametrize(
    ("rollout", "expected"), [(30, [60, 30, 30]), (16, [48, 32, 32]), (101, [101, 101, 101]), (1, [34, 33, 34])]
)
def test_all_rounds_together_round_up_once(rollout: int, expected: list[int], tmp_path: Path) -> None:
    learner = Rolling(rollout)
    begun(tmp_path / "run", learner, **{"expand.rounds": 3})
    assert [steps for steps, _, _ in learner.trained] == expected


def test_rounds_that_are_added_on_the_way_have_their_whole_share(tmp_path: Path) -> None:
    learner = Rolling(30)
    learner.fail_at, flags = 2, {**FLAGS, "expand.rounds": 2}  # the second training
    with pytest.raises(KeyboardInterrupt):
        start(resolve(flags=flags), tmp_path / "run", parts(), learner)
    learner.fail_at = -1
    resume(tmp_path / "run", {"expand.rounds": 4}, parts=parts(), learner=learner)
    assert [steps for steps, _, _ in learner.trained] == [60, 30, 30, 30]  # 51 of 60; then 16, 21 and 20 of 25


def test_further_rounds_have_steps_of_their_own(tmp_path: Path) -> None:
    learner = Rolling(20)
    run = begun(tmp_path / "run", learner, **{"expand.rounds": 2})
    assert [steps for steps, _, _ in learner.trained] == [60, 60]
    resume(run.folder, {"expand.rounds": 4}, parts=parts(), learner=learner)
    assert [steps for steps, _, _ in learner.trained] == [
        60,
        60,
        20,
        20,
    ]  # shares of 25, and 19 and 14 of them are done


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


def test_what_cannot_be_expanded_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    nameless = replace(demonstrations(), metadata=Metadata("vector", ("x", "y")))
    with pytest.raises(InputError, match="expected --env"):
        start(resolve(flags=FLAGS), tmp_path / "run", Parts(nameless))
    with pytest.raises(InputError, match="expected the environment and view"):
        start(resolve(flags={**FLAGS, "expand.env": "BabyAI-GoToObj-v0"}), tmp_path / "run", Parts(nameless))
    assert not (tmp_path / "run").exists()


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "near", "swaps", "told"),
    [
        ("BabyAI-GoToLocalS6N4-v0", False, False, {"words-unshown"}),
        ("BabyAI-GoToLocalS6N4-v0", True, False, set()),
        ("BabyAI-GoToLocalS6N4-v0", True, True, set()),
        ("BabyAI-GoToObj-v0", True, False, set()),
        ("BabyAI-GoToObj-v0", True, True, set()),
    ],
)
def test_near_misses_and_swaps_stay_beside_the_rollouts(
    level: str, near: bool, swaps: bool, told: set[str], tmp_path: Path
) -> None:
    """They keep their sides of the split, and the contrast and the warnings of each round count them.

    In a world with one thing, a near miss has the instruction of another world.
    """
    pytest.importorskip("minigrid", reason="grace-irl[rl] is not installed")
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
        assert audit.contrast.unpaid.value > 0.9
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


@pytest.mark.parametrize(("told", "success"), [((True, None, None), None), ((True, False, False), 1 / 3)])
def test_a_round_has_a_success_rate_if_every_rollout_has_told(
    told: Sequence[bool | None], success: float | None
) -> None:
    played = [Rollout(cloud(0.0, seed), 1.0, each, {}) for seed, each in enumerate(told)]
    assert with_outcome(Round(1), played).success == success
