"""Whole comparisons, short: what they leave, what fails in them, and that a killed one ends as if it had not been."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest

pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")

from grace_irl.cli import main
from grace_irl.compare import job as jobs
from grace_irl.compare.comparison import Compared, resume, start
from grace_irl.compare.contest import Contest
from grace_irl.compare.dispatch import ComparisonState
from grace_irl.compare.fitted import Fitted
from grace_irl.compare.folder import (
    ComparisonFolder,
    Favourite,
    JobResult,
    TrainingOutcome,
    read_curve,
    read_result,
    write_result,
)
from grace_irl.compare.settings import located
from grace_irl.compare.standings import Standing
from grace_irl.errors import InputError
from grace_irl.programs.export import export_source
from grace_irl.rewards.file import load_reward
from grace_irl.runs.folder import RunLock
from grace_irl.work.stored import STALE_S
from tests.compare.rewards import ENDS, FAILS, UPRIGHT
from tests.compare.short import BARRED, BREAKS, HEAVY, ROOT, STEPS, rows, settings, upright


@dataclass(frozen=True)
class Whole:
    """A comparison of four methods, in two environments, that nothing ended."""

    folder: Path
    compared: Compared
    heard: list[ComparisonState]

    def rows(self, *methods: str) -> list[dict[str, str]]:
        """The results of some methods."""
        return [row for row in rows(self.folder) if row["method"] in methods]


@pytest.fixture(scope="module")
def whole(cart_pole: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole") / "out"
    heard: list[ComparisonState] = []
    asked = settings(cart_pole, "grace", "gail", "bc", "ppo-true", transfer=(HEAVY,), tuned=("bc.updates=20",))
    return Whole(folder, start(asked, folder, 2, heard.append), heard)


@pytest.mark.slow
def test_what_a_comparison_leaves(whole: Whole) -> None:
    assert [each.failure for each in whole.compared.results] == [""] * 4
    place = ComparisonFolder(whole.folder)
    grace = place.job("grace", 0)
    assert "class Reward" in load_reward(grace.program).source
    assert place.job("gail", 0).net.stat().st_size
    assert grace.policy("CartPole-v1").stat().st_size
    assert [point["steps"] for point in read_curve(grace.curve("CartPole-v1"))] == [STEPS]
    assert place.curves("CartPole-v1").read_text().startswith("<svg")
    told = {(row["method"], row["environment"]): row for row in rows(whole.folder)}
    assert set(told) == {
        *((name, "CartPole-v1") for name in ("grace", "gail", "bc", "ppo-true")),
        *((name, "rewards.py:heavy") for name in ("grace", "gail", "ppo-true")),
    }
    assert {row["steps"] for (name, _), row in told.items() if name != "bc"} == {str(STEPS)}
    assert told["bc", "CartPole-v1"]["steps"] == "0"
    table = place.table.read_text()
    assert "## rewards.py:heavy (with rewards that were recovered in another environment)" in table
    assert "bc (seed 0): not carried to" in table
    assert "gail: episodes vary in length" in table
    assert str(whole.folder.parent) not in table
    assert (whole.heard[-1].done, whole.heard[-1].failed, whole.heard[-1].total) == (4, 0, 4)
    assert len(whole.compared.standings) == 7
    again: list[ComparisonState] = []
    assert resume(whole.folder, listener=again.append).results == whole.compared.results
    assert again == []
    kept = {each.name: each.read_bytes() for each in whole.folder.iterdir() if each.is_file()}
    with RunLock(place.lock), pytest.raises(InputError, match="the run is being worked on by process"):
        resume(whole.folder, seeds=2)
    assert {each.name: each.read_bytes() for each in whole.folder.iterdir() if each.is_file()} == kept


@pytest.mark.slow
def test_rewards_of_a_finished_comparison_are_carried_to_further_environments(
    cart_pole: Path, whole: Whole, tmp_path: Path
) -> None:
    start(settings(cart_pole, "grace", "gail"), tmp_path / "out", 2)
    learnt = ComparisonFolder(tmp_path / "out").job("grace", 0).policy("CartPole-v1").stat().st_mtime_ns
    resume(tmp_path / "out", transfer=(HEAVY,), workers=2)
    assert ComparisonFolder(tmp_path / "out").job("grace", 0).policy("CartPole-v1").stat().st_mtime_ns == learnt
    assert rows(tmp_path / "out") == whole.rows("grace", "gail")  # which were carried at once
    assert len(rows(tmp_path / "out")) == 4
    there = ComparisonFolder(tmp_path / "out").job("gail", 0).policy("rewards.py:heavy").stat().st_mtime_ns
    assert main(["compare", "--resume", str(tmp_path / "out"), "--transfer-env", HEAVY]) == 0
    assert ComparisonFolder(tmp_path / "out").job("gail", 0).policy("rewards.py:heavy").stat().st_mtime_ns == there


@pytest.mark.slow
def test_a_guided_reward_is_carried_later_as_it_would_have_been_at_once(cart_pole: Path, tmp_path: Path) -> None:
    facts = [("label", "last (which expert states are positive)")]
    graded = UPRIGHT.replace("float(abs(state[2]) < 0.05)", "1.0 if abs(state[2]) < 0.05 else 0.4")
    source = export_source(graded, title="Up.", facts=facts, scale=2.0, offset=-1.0, threshold=0.5)
    reward = upright(tmp_path, source)
    start(settings(cart_pole, "grace", reward=reward, transfer=(HEAVY,)), tmp_path / "at once", 1)
    start(settings(cart_pole, "grace", reward=reward), tmp_path / "later", 1)
    resume(tmp_path / "later", transfer=(HEAVY,), workers=1)
    kept = read_result(ComparisonFolder(tmp_path / "later").job("grace", 0).result)
    assert kept is not None
    assert (kept.form, kept.failure) == ("guided", "")
    assert rows(tmp_path / "later") == rows(tmp_path / "at once")
    assert len(rows(tmp_path / "later")) == 2
    start(
        settings(cart_pole, "grace", reward=reward, fit={"expand.form": "raw"}, transfer=(HEAVY,)), tmp_path / "raw", 1
    )
    assert all(one != other for one, other in zip(rows(tmp_path / "raw"), rows(tmp_path / "later"), strict=True))


@pytest.mark.slow
def test_what_was_learnt_is_kept_where_a_transfer_fails(cart_pole: Path, tmp_path: Path) -> None:
    asked = settings(cart_pole, "ppo-true", transfer=(HEAVY, BREAKS))
    compared = start(asked, tmp_path / "out", 1)
    (result,) = compared.results
    assert "its motor burnt out" in result.failure
    assert [outcome.environment for outcome in result.outcomes] == ["CartPole-v1", "rewards.py:heavy"]
    assert f"ppo-true seed 0 failed: {result.failure}" in compared.notes
    learnt = ComparisonFolder(tmp_path / "out").job("ppo-true", 0).policy("CartPole-v1").stat().st_mtime_ns
    (again,) = resume(tmp_path / "out").results
    assert again == result
    assert ComparisonFolder(tmp_path / "out").job("ppo-true", 0).policy("CartPole-v1").stat().st_mtime_ns == learnt


@pytest.mark.slow
def test_a_run_that_fails_is_told_and_the_others_go_on(cart_pole: Path, tmp_path: Path) -> None:
    asked = settings(cart_pole, "grace", "ppo-true", reward=upright(tmp_path, FAILS))
    compared = start(asked, tmp_path / "out", 2)
    grace, best = compared.results
    own = tmp_path / "out" / "reward.py"
    assert grace.failure.startswith(str(own))
    assert "it broke" in grace.failure
    assert "\n" not in grace.failure
    assert best.failure == ""
    assert f"grace seed 0 failed: {grace.failure}" in compared.notes
    assert "| grace | 0 (1 failed) | failed |" in ComparisonFolder(tmp_path / "out").table.read_text()
    own.write_text(UPRIGHT)
    mended = resume(tmp_path / "out")
    assert [each.failure for each in mended.results] == ["", ""]
    assert mended.results[1] == best
    assert not [note for note in mended.notes if "failed" in note]


@pytest.mark.slow
def test_a_process_that_ends_without_a_word_is_told(cart_pole: Path, tmp_path: Path) -> None:
    compared = start(settings(cart_pole, "grace", reward=upright(tmp_path, ENDS)), tmp_path / "out")
    (result,) = compared.results
    assert result.failure == "its process ended with exit code 3 and no result: see jobs/grace-0/log.txt"
    assert "good-bye" in ComparisonFolder(tmp_path / "out").job("grace", 0).log.read_text()
    assert compared.standings == ()
    assert compared.notes[-1] == f"grace seed 0 failed: {result.failure}"


@pytest.mark.usefixtures("in_process")
def test_a_return_that_is_not_finite_fails_its_job_alone(cart_pole: Path, tmp_path: Path) -> None:
    """A result of an earlier version, which kept such a return, is as good as none: the job is done again."""
    begun = start(settings(cart_pole, "bc", tuned=("bc.updates=1",), env=BARRED), tmp_path / "out")
    (found,) = begun.results
    assert "rewards.py:barred: its evaluation after 0 steps of training has mean = -inf; expected" in found.failure
    assert begun.notes[-1] == f"bc seed 0 failed: {found.failure}"
    result = ComparisonFolder(tmp_path / "out").job("bc", 0).result
    assert "Infinity" not in result.read_text()
    favourite = Favourite(0, (), 0, 9.0, 1.0, None, 9.0)
    outcome = TrainingOutcome("CartPole-v1", False, 4, 9.0, 1.0, None, 9.0, favourite=favourite)
    wrong = (
        replace(outcome, mean=-math.inf),
        replace(outcome, components={"reward_ctrl": math.nan}),
        replace(outcome, favourite=replace(favourite, score=math.inf)),
    )
    for each in (outcome, *wrong):
        write_result(result, JobResult("bc", 0, (each,)))
        assert (read_result(result) is None) == (each is not outcome)


def test_environments_that_the_user_registered_are_known_to_jobs(
    cart_pole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gymnasium, "registry", dict(gymnasium.registry))
    monkeypatch.setattr("gymnasium.envs.registration.registry", gymnasium.registry)
    (tmp_path / "beside_the_script.py").write_text(
        "from gymnasium.envs.classic_control import CartPoleEnv\n\n\nclass Pole(CartPoleEnv):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    gymnasium.register("Beside-v0", "beside_the_script:Pole", max_episode_steps=20)
    asked = settings(cart_pole, "bc", env="Beside-v0", tuned=("bc.updates=20",))
    compared = start(asked, tmp_path / "out", 1)
    assert [each.failure for each in compared.results] == [""]
    assert [outcome.environment for outcome in compared.results[0].outcomes] == ["Beside-v0"]
    gymnasium.register("Function-v0", lambda: None, max_episode_steps=20)  # type: ignore[arg-type,return-value]
    with pytest.raises(InputError, match="a function of this process"):
        start(settings(cart_pole, "bc", env="Function-v0"), tmp_path / "other", 1)
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
def test_in_the_fixed_horizon_form_all_episodes_have_one_length(cart_pole: Path, tmp_path: Path) -> None:
    asked = settings(cart_pole, "grace", "gail", horizon=60, reward=upright(tmp_path), transfer=(HEAVY,))
    compared = start(asked, tmp_path / "out", 1)
    assert [each.failure for each in compared.results] == ["", ""]
    assert not [note for note in compared.notes if "vary in length" in note]
    for result in compared.results:
        assert [outcome.environment for outcome in result.outcomes] == ["CartPole-v1", "rewards.py:heavy"]
        assert all(outcome.mean <= 60 for outcome in result.outcomes)


@pytest.mark.slow
def test_a_comparison_that_is_killed_and_resumed_ends_with_the_same_tables(
    cart_pole: Path, whole: Whole, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tests.compare.begin", str(cart_pole), str(tmp_path / "killed")]
    place = ComparisonFolder(tmp_path / "killed")

    def begun() -> bool:
        return place.job("grace", 0).fit.exists()

    def ended() -> bool:
        return place.job("grace", 0).result.exists() or place.job("ppo-true", 0).result.exists()

    process = subprocess.Popen(command, cwd=ROOT)
    _killed(process, begun)
    assert not ended()
    process = subprocess.Popen([*command, "resume"], cwd=ROOT)
    _killed(process, ended)  # of the two environments, in the second one
    process = subprocess.Popen([*command, "resume"], cwd=ROOT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(random.Random(5).uniform(1, 8))
    process.kill()  # wherever it is
    process.wait()
    resumed = resume(tmp_path / "killed", workers=2)
    assert [each.failure for each in resumed.results] == ["", ""]
    assert rows(tmp_path / "killed") == whole.rows("grace", "ppo-true")
    expected = [each for each in whole.compared.standings if each.method in ("grace", "ppo-true")]
    assert [scored(each) for each in resumed.standings] == [scored(each) for each in expected]
    program = [ComparisonFolder(each).job("grace", 0).program.read_text() for each in (whole.folder, place.path)]
    assert program[0] == program[1]


def scored(standing: Standing) -> tuple[str, float | None]:
    return standing.method, None if standing.last is None else standing.last.score.mean


def _killed(process: subprocess.Popen[bytes], when: Any) -> None:
    """Kills a process without warning at a point; what it had started goes, too."""
    limit = time.monotonic() + 200
    while not when():
        assert process.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_say_how_to_go_on(cart_pole: Path, tmp_path: Path, number: int, code: int) -> None:
    asked = ["--demos", str(cart_pole), "--methods", "ppo-true", "--seeds", "1", "--steps", "1000000"]
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "cli.py"), "compare", *asked, "--out", str(tmp_path / "out")],
        stderr=subprocess.PIPE,
        text=True,
    )
    limit = time.monotonic() + 200
    job = ComparisonFolder(tmp_path / "out").job("ppo-true", 0)
    while not (job.path / "lock").exists():
        assert time.monotonic() < limit
        time.sleep(0.05)
    worker = int((job.path / "lock").read_text() or 0)
    process.send_signal(number)
    _, said = process.communicate(timeout=100)
    assert process.returncode == code
    assert said.strip().splitlines()[-1] == (
        "grace-irl: interrupted; runs that had ended are saved. Go on with: grace-irl compare --resume "
        f"{tmp_path / 'out'}"
    )
    assert read_result(job.result) is None
    if worker:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


def test_paths_are_made_absolute_and_names_are_not(
    cart_pole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("reward.py", "own.py", "first.py"):
        (tmp_path / name).write_text(UPRIGHT)
    fit: dict[str, object] = {"data.negatives": ("minari/set-v0",), "proposer.start_from": ("first.py",)}
    asked = settings(cart_pole, "grace", env="own.py:make", transfer=("Hopper-v5",), reward="reward.py", fit=fit)
    found = located(asked)
    assert found.comparison.env == f"{tmp_path}/own.py:make"
    assert (found.comparison.transfer, found.comparison.reward) == (("Hopper-v5",), f"{tmp_path}/reward.py")
    assert found.fit.data.negatives == ("minari/set-v0",)
    assert found.fit.proposer.start_from == (f"{tmp_path}/first.py",)
    assert located(found) == found


@pytest.mark.slow
def test_the_command_line_prints_one_json_object(
    cart_pole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--demos", str(cart_pole), "--methods", "bc", "--seeds", "1", "--tune", "bc.updates=10"]
    assert (
        main(["compare", *arguments, "--episodes", "3", "--looks", "1", "--out", str(tmp_path / "out"), "--json"]) == 0
    )
    out = capsys.readouterr()
    found = json.loads(out.out)
    assert found["standings"][0]["method"] == "bc"
    assert found["results"][0]["outcomes"][0]["environment"] == "CartPole-v1"
    assert "run 1 of 1: bc seed 0: CartPole-v1 return" in out.err


@pytest.mark.parametrize(
    ("scale", "label", "form"),
    [(None, "", "raw"), (None, "all", "raw"), (2.0, "", "soft"), (2.0, "all", "soft"), (2.0, "last", "guided")],
)
@pytest.mark.parametrize("stated", ["auto", "logit"])
def test_a_reward_file_is_paid_by_its_labels_or_those_of_the_data(
    scale: float | None, label: str, form: str, stated: str, cart_pole: Path, tmp_path: Path
) -> None:
    facts = [("label", f"{label} (which expert states are positive)")] if label else []
    source = export_source(UPRIGHT, title="Up.", facts=facts, scale=scale, offset=-1.0, threshold=0.5)
    asked = settings(cart_pole, "grace", reward=upright(tmp_path, source), fit={"expand.form": stated})
    method = Contest.of(asked).method("grace", tmp_path / "fit")
    assert isinstance(method, Fitted)
    assert method._reward(method.config, None).form == (form if stated == "auto" else stated)
    assert bool(method.reads_length) == (label != "last")  # cart_pole has the label "all"


def test_a_job_waits_for_its_dead_predecessor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert jobs.LOCK_S > STALE_S
    before = RunLock(tmp_path / "lock")
    timer = threading.Timer(1.0, before.release)
    timer.start()
    jobs._lock(tmp_path / "lock").release()
    timer.join()
    monkeypatch.setattr(jobs, "LOCK_S", 0.0)
    with RunLock(tmp_path / "lock"), pytest.raises(InputError, match="is being worked on"):
        jobs._lock(tmp_path / "lock")
    (tmp_path / "lock").unlink()
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError):
        jobs._lock(tmp_path / "lock")
