"""Expansions on a sample of their demonstrations, and the test of their last reward on the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Split
from grace_irl.rl.evaluation import Rollout
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.expand import expansion
from grace_irl.runs.expand.expanding import place_of
from grace_irl.runs.rest import stored_rest
from grace_irl.runs.run import Interrupted, opened
from grace_irl.runs.score import score
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.runs.expansions import FLAGS, FakeLearner, Thresholds, cloud
from tests.runs.test_rest import SAMPLE, digests, others


def test_an_expansion_keeps_its_sample(tmp_path: Path) -> None:
    """Its rounds add rollouts to the sample; its last reward is tested on the rest, once."""
    items = [Demonstration(cloud(2.0, seed, 40, terminated=True), "expert") for seed in range(40)]
    items += [Demonstration(cloud(-2.0, 100 + seed, 40), "negative") for seed in range(40)]
    file = tmp_path / "set.parquet"
    save(Demonstrations(Metadata("vector", ("x", "y"), "Cloud-v0", label="all"), tuple(items)), file)
    config = resolve(flags={**FLAGS, "data.demos": (str(file),), "data.sample": SAMPLE})
    told: list[str] = []
    given = Parts(proposer=Thresholds(), sandbox=InProcessSandbox(), note=told.append)
    with pytest.raises(Interrupted):
        expansion.start(config, tmp_path / "out", given, FakeLearner(fail_at=3))
    assert not any("outside the sample" in line for line in told)
    run = expansion.resume(tmp_path / "out", parts=replace(given, proposer=Thresholds()), learner=FakeLearner())
    sample = load([file], sample=SAMPLE)
    assert sample.sampled is not None
    assert len(run.rounds) == 3
    assert run.rest is not None
    assert (run.rest.trajectories, run.rest.copies) == (80 - len(sample), 0)
    assert sum("outside the sample" in line for line in told) == 1
    left = replace(sample, items=tuple(item for item in load([file]) if item.trajectory.digest not in digests(sample)))
    assert run.rest.episodes == score(run.reward_path, left, sandbox=InProcessSandbox()).metrics.episodes
    with opened(place_of(tmp_path / "out", 0) / "run") as (store, _):
        assert stored_rest(store) is None
    again = expansion.resume(tmp_path / "out", parts=replace(given, proposer=Thresholds()), learner=FakeLearner())
    assert again.rest == run.rest
    assert sum("outside the sample" in line for line in told) == 1
    last = tmp_path / "out" / run.rounds[-1].run
    with opened(last) as (store, config):
        added = run.rounds[1].rollouts  # the search of the second round had nothing left to do
        assert config.data.sample == SAMPLE
        assert len(store.trajectories()) == len(sample) + added
    assert main(["report", str(last)]) == 0
    assert "no longer in the demonstrations" not in (last / "report.html").read_text()


@pytest.mark.parametrize("interrupted", [False, True])
def test_an_expansion_tests_its_last_reward_by_the_file_of_goals(interrupted: bool, tmp_path: Path) -> None:
    items = [Demonstration(cloud(2.0, seed, 40, terminated=True), "expert", goals=(39,)) for seed in range(40)]
    items += [Demonstration(cloud(-2.0, 100 + seed, 40), "negative") for seed in range(40)]
    file, marks = tmp_path / "set.parquet", tmp_path / "goals.toml"
    save(Demonstrations(Metadata("vector", ("x", "y"), "Cloud-v0"), tuple(items)), file)
    marks.write_text("".join(f'"{item.trajectory.digest}" = [38, 39, 40]\n' for item in items[:40]))
    flags = {**FLAGS, "data.demos": (str(file),), "data.sample": SAMPLE, "data.label": "goal"}
    config = resolve(flags={**flags, "data.goals": str(marks)})
    given = Parts(proposer=Thresholds(), sandbox=InProcessSandbox())
    if interrupted:
        with pytest.raises(Interrupted):
            expansion.start(config, tmp_path / "out", given, FakeLearner(fail_at=3))
        marks.unlink()
        run = expansion.resume(tmp_path / "out", parts=replace(given, proposer=Thresholds()), learner=FakeLearner())
    else:
        run = expansion.start(config, tmp_path / "out", given, FakeLearner())
    assert run.rounds[-1].number == 2
    assert run.rounds[-1].run != run.rounds[0].run
    assert run.rest is not None
    assert run.rest.failure == ""
    assert run.rest.experts == 3 * len(others(file).select(role="expert"))


def test_an_expansion_whose_files_vanish_is_tested_when_it_goes_on(tmp_path: Path) -> None:
    items = [Demonstration(cloud(2.0, seed, 40, terminated=True), "expert") for seed in range(40)]
    items += [Demonstration(cloud(-2.0, 100 + seed, 40), "negative") for seed in range(40)]
    file = tmp_path / "set.parquet"
    save(Demonstrations(Metadata("vector", ("x", "y"), "Cloud-v0", label="all"), tuple(items)), file)

    class Deleting(FakeLearner):
        def play(self, policy: Path, episodes: int, seed: int) -> Sequence[Rollout]:
            if file.exists():
                file.rename(tmp_path / "elsewhere")
            return super().play(policy, episodes, seed)

    config = resolve(flags={**FLAGS, "expand.rounds": 1, "data.demos": (str(file),), "data.sample": SAMPLE})
    given = Parts(proposer=Thresholds(), sandbox=InProcessSandbox())
    run = expansion.start(config, tmp_path / "out", given, Deleting())
    (warning,) = (each for each in run.warnings if each.code == "rest-fails")
    assert warning.line.endswith(f"put them back, and go on with: grace-irl fit --resume {tmp_path / 'out'}")
    (tmp_path / "elsewhere").rename(file)
    again = expansion.resume(tmp_path / "out", parts=replace(given, proposer=Thresholds()), learner=FakeLearner())
    assert again.rest is not None
    assert (again.rest.failure, again.rest.trajectories) == ("", 80 - len(load([file], sample=SAMPLE)))
    assert "rest-fails" not in [each.code for each in again.warnings]


@pytest.mark.parametrize("held_out", [0.0, 0.3])
def test_splits_that_the_data_state_are_kept_in_a_sample_and_its_rounds(held_out: float, tmp_path: Path) -> None:
    """Rollouts state none: they are drawn, or all for training."""
    splits: list[Split | None] = ["train", "train", "validation", "held_out"]
    sides: dict[Role, float] = {"expert": 2.0, "negative": -2.0}
    items = [
        Demonstration(cloud(centre, number, 40, terminated=True), role, split=splits[number % 4])
        for role, centre in sides.items()
        for number in range(40)
    ]
    file = tmp_path / "set.parquet"
    save(Demonstrations(Metadata("vector", ("x", "y"), "Cloud-v0", label="all"), tuple(items)), file)
    config = resolve(flags={**FLAGS, "data.demos": (str(file),), "data.sample": SAMPLE, "data.held_out": held_out})
    given = Parts(proposer=Thresholds(), sandbox=InProcessSandbox())
    run = expansion.start(config, tmp_path / "out", given, FakeLearner())
    sample = load([file], sample=SAMPLE)
    stated = {item.trajectory.digest: item.split for item in sample}
    assert set(stated.values()) == {"train", "validation", "held_out"}
    for number in range(2):
        with opened(place_of(tmp_path / "out", number) / "run") as (store, _):
            found = {row.digest: row.split for row in store.trajectories()}
        added = [found[digest] for digest in found if digest not in stated]
        assert stated.items() <= found.items()
        assert added == [] if number == 0 else len(added) == 4
        assert set(added) <= ({"train", "held_out"} if held_out else {"train"})
    assert run.rest is not None
    assert (run.rest.trajectories, run.rest.copies, run.rest.seen) == (80 - len(sample), 0, 0)
    left = replace(load([file]), items=tuple(item for item in load([file]) if item.trajectory.digest not in stated))
    assert run.rest.episodes == score(run.reward_path, left, sandbox=InProcessSandbox()).metrics.episodes
