"""Online shaping: where learning stalls though the reward separates, its steadier version is learnt from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.programs.export import label_of
from grace_irl.propose.protocol import Proposal
from grace_irl.rewards.file import load_reward
from grace_irl.rl.evaluation import Rollout
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.expand.expansion import resume, start
from grace_irl.runs.expand.learner import Learnt
from grace_irl.runs.run import Interrupted, Run
from tests.fakes.in_process_sandbox import InProcessSandbox

FLAGS: dict[str, object] = {
    "search.population": 2,
    "search.generations": 1,
    "data.held_out": 0.0,
    "expand.rounds": 3,
    "expand.steps": 30,
    "expand.episodes": 4,
    "expand.reshape": 2,
    "sandbox.workers": 1,
}


def walk(stop: float, seed: int, **parts: Any) -> Trajectory:
    """From 0 towards 1, where the goal is, as far as `stop`; the second number is noise."""
    noise = np.random.default_rng(seed).standard_normal(11)
    return Trajectory(np.stack([np.linspace(0.0, stop, 11), noise], axis=1), source=f"walk {stop} {seed}", **parts)


def demonstrations(rule: str = "last") -> Demonstrations:
    """Experts reach the goal, and their episodes end there; negatives do not."""
    roles: list[tuple[Role, float]] = [("expert", 1.0), ("negative", 0.5)]
    items = [
        Demonstration(walk(stop, seed, terminated=role == "expert"), role) for role, stop in roles for seed in range(4)
    ]
    return Demonstrations(Metadata("vector", ("x", "noise"), "Walk-v0", label=rule), tuple(items))  # type: ignore[arg-type]


class Proposes:
    """The goal alone; asked to reshape, one version that rises towards it and one that is no better.

    Args:
        rises: whether there is a version that rises.
    """

    def __init__(self, *, rises: bool = True) -> None:
        self.rises = rises
        self.reshaped = 0

    async def propose(self, request: Any, parents: Any) -> Proposal:
        value = "float(state[0] > 0.95)"
        if request.operator == "reshape":
            assert "state[0] > 0.95" in parents[0].program.source
            self.reshaped += 1
            value = f"{value} + 0.4 * state[{0 if self.rises and request.index % 2 else 1}]"
        body = f"return {value}  # {request.index % 2}" if request.operator != "mutate" else f"return 0 + {value}"
        return Proposal(
            "class Reward:\n    def __init__(self, extra_info=None): pass\n"
            f"    def reward_fn(self, state):\n        {body}\n"
        )


class Walker:
    """Reaches the goal only where it was paid for coming nearer.

    Args:
        learns: share of a shaped policy's rollouts that reach the goal, round by round.
        fail_at: which call to it (from 0) breaks off.
    """

    carries = False

    def __init__(self, learns: Sequence[float] = (1.0, 1.0), fail_at: int = -1) -> None:
        self.learns = list(learns)
        self.fail_at = fail_at
        self.calls = 0
        self.trained: list[tuple[str, bool, bool]] = []

    def _call(self) -> None:
        self.calls += 1
        if self.calls - 1 == self.fail_at:
            raise KeyboardInterrupt

    def check(self, demonstrations: Demonstrations) -> None:
        pass

    def train(self, reward: Path, steps: int, seed: int, folder: Path, initial: Path | None) -> Learnt:
        self._call()
        shaped = "0.4 * state[0]" in reward.read_text()
        found = load_reward(reward)
        assert found.form == ("soft" if label_of(found.source) == "all" else "guided")
        self.trained.append((str(reward.relative_to(folder.parents[2])), initial is not None, shaped))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "policy").write_text(str(self.learns[int(folder.parent.name) - 2] if shaped else 0.0))
        return Learnt(folder / "policy", steps, (0.0, 0.0))

    def play(self, policy: Path, episodes: int, seed: int) -> Sequence[Rollout]:
        self._call()
        there = round(float(policy.read_text()) * episodes)
        played = [walk(1.0, seed % 1000 + each, terminated=True) for each in range(there)]
        played += [walk(0.3, seed % 1000 + each, truncated=True) for each in range(there, episodes)]
        return [Rollout(each, 0.0, None, {}) for each in played]


def parts(proposer: Proposes | None = None, rule: str = "last", notes: list[str] | None = None) -> Parts:
    known = Parts(demonstrations(rule), proposer or Proposes(), InProcessSandbox())
    return known if notes is None else replace(known, note=notes.append)


def begun(folder: Path, learner: Walker, known: Parts | None = None, **flags: object) -> Run:
    return start(resolve(flags={**FLAGS, **flags}), folder, known or parts(), learner)


def test_a_reward_on_which_learning_stalls_is_reshaped_and_learnt_from_anew(tmp_path: Path) -> None:
    learner, notes = Walker(), []  # type: ignore[var-annotated]
    run = begun(tmp_path / "run", learner, parts(notes=notes))
    zero, first, second = run.rounds
    assert (first.alike, first.new_accuracy, first.changed, first.stalled) == (0, 1.0, False, True)
    assert first.shaped == "rounds/1/shaping/reward.py"
    assert first.reward == zero.reward == "rounds/0/run/reward.py"
    assert learner.trained == [("rounds/0/run/reward.py", False, False), ("rounds/1/shaping/reward.py", False, True)]
    assert (second.alike, second.stalled) == (4, False)
    assert second.program == first.program  # what was searched is what it was; its version taught
    assert second.reward == second.trained_on == first.shaped
    assert "0.4 * state[0]" in run.reward_path.read_text()
    assert "0.4 * state[0]" in run.best.program.source
    assert run.best.train.accuracy == 1.0
    assert any("round 1: learning stalls" in note for note in notes)


def test_a_version_that_teaches_no_better_does_not_become_the_reward(tmp_path: Path) -> None:
    proposer = Proposes()
    learner = Walker((0.0, 0.0))
    run = begun(tmp_path / "run", learner, parts(proposer))
    _, _, second, third = run.rounds
    assert (second.stalled, second.shaped, second.reward) == (True, second.trained_on, "rounds/0/run/reward.py")
    assert third.reward == "rounds/0/run/reward.py"
    assert "0.4 * state[0]" not in run.reward_path.read_text()
    assert proposer.reshaped == 2  # once
    assert [on for _, on, _ in learner.trained] == [False, False, True]


def test_a_version_that_taught_stays_the_reward_while_its_policy_goes_on(tmp_path: Path) -> None:
    run = begun(tmp_path / "run", Walker((0.5, 0.5)))
    assert [each.reward for each in run.rounds[2:]] == ["rounds/1/shaping/reward.py"] * 2


def test_without_a_steadier_version_the_reward_and_its_policy_go_on(tmp_path: Path) -> None:
    learner, notes = Walker(), []  # type: ignore[var-annotated]
    run = begun(tmp_path / "run", learner, parts(Proposes(rises=False), notes=notes))
    assert [each.shaped for each in run.rounds] == [""] * 4
    assert [on for _, on, _ in learner.trained] == [False, True, True]
    assert any("no version of the reward rises more steadily" in note for note in notes)


@pytest.mark.parametrize(
    ("rule", "flags"),
    [("all", {}), ("last", {"expand.reshape": 0}), ("last", {"expand.rounds": 1})],
    ids=["every expert state is positive", "not wanted", "no round is left to learn from it"],
)
def test_where_nothing_is_reshaped(rule: str, flags: dict[str, object], tmp_path: Path) -> None:
    proposer = Proposes()
    run = begun(tmp_path / "run", Walker(), parts(proposer, rule), **flags)
    assert proposer.reshaped == 0
    assert all(not each.shaped for each in run.rounds)


@pytest.mark.parametrize("at", range(4))
def test_it_goes_on_from_wherever_it_was_ended(at: int, tmp_path: Path) -> None:
    whole = begun(tmp_path / "whole", Walker())
    with pytest.raises(Interrupted):
        begun(tmp_path / "broken", Walker(fail_at=at))
    run = resume(tmp_path / "broken", parts=parts(), learner=Walker())
    assert run.rounds == whole.rounds
    assert run.best.program.id == whole.best.program.id
    again = resume(tmp_path / "broken", parts=parts(), learner=Walker())  # and where it was over
    assert (again.rounds, again.best.program.id) == (whole.rounds, whole.best.program.id)


def test_a_round_whose_reshaping_was_cut_off_asks_for_nothing_twice(tmp_path: Path) -> None:
    whole = begun(tmp_path / "run", Walker())
    for number in (1, 2):
        (tmp_path / "run" / "rounds" / str(number) / "round.json").unlink()
    proposer = Proposes()
    assert resume(tmp_path / "run", parts=parts(proposer), learner=Walker()).rounds == whole.rounds
    assert proposer.reshaped == 0


def test_goal_states_of_the_first_search_are_those_of_the_reshaped_version(tmp_path: Path) -> None:
    """Whether the rule is the data's or the user's; the file is read once."""
    file = tmp_path / "mine.toml"
    known = demonstrations("goal")
    file.write_text("".join(f"{each.trajectory.digest} = [11]\n" for each in known.select(role="expert")))

    class Once(Proposes):
        async def propose(self, request: Any, parents: Any) -> Proposal:
            file.unlink(missing_ok=True)
            return await super().propose(request, parents)

    learner = Walker()
    run = begun(tmp_path / "run", learner, parts(Once(), "goal"), **{"data.goals": str(file)})
    _, first, second, *_ = run.rounds
    assert (first.new_accuracy, first.stalled, first.shaped) == (1.0, True, "rounds/1/shaping/reward.py")
    assert second.reward == first.shaped
    assert run.best.train.accuracy == 1.0
    again = resume(tmp_path / "run", parts=parts(Proposes(), "goal"), learner=learner)
    assert again.rounds == run.rounds
