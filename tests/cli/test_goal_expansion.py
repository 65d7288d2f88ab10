"""Cleaning and expansion together: what was said of goal states once serves every round."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("stable_baselines3", reason="the extra rl is not installed: pip install 'grace-irl[rl]'")

from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.goals import save_goals
from grace_irl.runs.expand.expansion import rounds_of
from grace_irl.runs.run import opened
from tests.cli import corridor
from tests.propose.client.server import ChatServer

STEPS = 2048
ROOT = Path(__file__).parents[2]
SHORT = [
    *("--population", "1", "--elite", "0", "--generations", "1", "--held-out", "0", "--samples-per-call", "1"),
    *("--answer-format", "code", "--concurrency", "1", "--workers", "1"),
    *("--env-steps", str(STEPS), "--rollouts", "16", "--trust-reward"),
]


def arguments(demos: str, folder: Path, *more: str, env: str = "ends") -> list[str]:
    named = ["--demos", demos, "--out", str(folder), "--expand", "1", "--env", f"{corridor.__file__}:{env}"]
    return ["fit", *named, *SHORT, "--json", *more]


def answer(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    return found


def positives(folder: Path, number: int) -> dict[str, int]:
    """Positive states of the experts in a round, by source."""
    with opened(folder / "rounds" / str(number) / "run") as (store, _):
        return {row.source: row.positives for row in store.trajectories() if row.role == "expert"}


def goals_file(folder: Path) -> Path:
    """Goal states as a person would give them."""
    experts = [item for item in corridor.demonstrations() if item.role == "expert"]
    goals = {item.trajectory.digest: (corridor.goal_of(item),) for item in experts}
    save_goals(folder / "mine.toml", goals, experts)
    return folder / "mine.toml"


@pytest.mark.slow
@pytest.mark.parametrize("env", ["ends", "goes_on"])
def test_goal_states_are_asked_for_once_and_reach_every_round(
    env: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, folder = corridor.Model(), tmp_path / "run"
    with ChatServer(answer=model) as server:
        flags = ["--label", "goal", "--llm-url", server.url, "--images"]
        assert main(arguments(corridor.saved(tmp_path), folder, *flags, env=env)) == 0, capsys.readouterr().err
        pictured = [payload for payload in server.payloads if "image_url" in json.dumps(payload)]
    found = answer(capsys)
    assert len(model.cleaning) == len(set(model.cleaning)) == 6
    assert len(pictured) >= len(model.writing)
    assert [each["changed"] for each in found["rounds"]] == [True, True]
    last = found["rounds"][1]
    assert last["new_accuracy"] < 0.99  # the first reward pays at the wrong end, too
    assert 0 < last["alike"] < last["rollouts"]  # who reaches the goal is no negative
    # A walk that comes to both ends is a negative, its goal states among the others.
    assert found["train"]["accuracy"] == (1.0 if env == "ends" else pytest.approx(1.0, abs=0.01))
    assert corridor.OWN_END in (folder / "reward.py").read_text()
    assert set(positives(folder, 0).values()) == {1}
    assert positives(folder, 1) == positives(folder, 0)
    mutations = model.writing[1:]
    assert mutations
    assert all("at column" in prompt and "positive states" in prompt for prompt in mutations)  # debug functions
    assert main(["show", str(folder / "rounds" / "1" / "run")]) == 0
    assert "goal states: 6 in 6 of 6 expert trajectories (6 by data); see" in capsys.readouterr().out


@pytest.mark.slow
def test_a_file_of_goal_states_is_read_once_and_marks_of_the_data_are_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a model for goal states; the file is gone in round 1, and the data's own rule needs no flag."""
    goals, folder = goals_file(tmp_path), tmp_path / "run"

    class Forgetful(corridor.Model):
        def __call__(self, prompt: str) -> str:
            goals.unlink(missing_ok=True)
            return super().__call__(prompt)

    model = Forgetful()
    with ChatServer(answer=model) as server:
        flags = ["--label", "goal", "--goals", str(goals), "--llm-url", server.url]
        assert main(arguments(corridor.saved(tmp_path), folder, *flags)) == 0, capsys.readouterr().err
        by_file = answer(capsys)
        marked = corridor.saved(tmp_path, "goal", marked=True)
        again = corridor.Model()
        server.answer = again
        assert main(arguments(marked, tmp_path / "marked", "--llm-url", server.url)) == 0, capsys.readouterr().err
    assert not model.cleaning
    assert not again.cleaning
    assert rounds_of(tmp_path / "marked") == rounds_of(folder)
    assert answer(capsys)["program"] == by_file["program"]


@pytest.mark.slow
def test_what_a_round_was_killed_in_is_done_again_with_the_same_goal_states(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, folder = corridor.Model(), tmp_path / "run"
    with ChatServer(answer=model) as server:
        flags = ["--label", "goal", "--llm-url", server.url]
        assert main(arguments(corridor.saved(tmp_path), folder, *flags)) == 0, capsys.readouterr().err
        whole, reward = rounds_of(folder), (folder / "reward.py").read_text()
        goals = folder / "rounds" / "0" / "run" / "goals.toml"
        goals.write_text(goals.read_text().replace(" = [", " = [1, "))  # too late
        for place in ("round.json", "run"):  # killed after it had played; killed before
            path = folder / "rounds" / "1" / place
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            (folder / "rounds" / "1" / "round.json").unlink(missing_ok=True)
            model.writing = model.writing[:1]
            capsys.readouterr()
            assert main(["fit", "--resume", str(folder)]) == 0
            said = capsys.readouterr()
            assert f"{goals} was edited: the run keeps the goal states that it began with" in said.err
            assert rounds_of(folder) == whole
            assert (folder / "reward.py").read_text() == reward
    assert len(model.cleaning) == 6
    assert main(["fit", "--resume", str(folder), "--goals", str(goals)]) == 2
    assert "--goals is" in capsys.readouterr().err


@pytest.mark.slow
def test_experts_alone_get_their_first_negatives_by_expansion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = tmp_path / "expert.parquet"
    save(load([corridor.saved(tmp_path, marked=True)]).select(role="expert"), alone)
    with ChatServer(answer=corridor.Model()) as server:
        assert main(arguments(str(alone), tmp_path / "run", "--llm-url", server.url)) == 0, capsys.readouterr().err
    _, last = rounds_of(tmp_path / "run")
    assert last.new_accuracy is not None
    assert last.new_accuracy < 0.99  # what experts alone cannot show
    assert last.changed
    assert last.accuracy == 1.0
    assert corridor.OWN_END in (tmp_path / "run" / "reward.py").read_text()


def forgetful(prompt: str) -> str:
    """Answers by the prompt alone, so that whoever asks again gets the same: first programs pay at either end."""
    model = corridor.Model(wrong=0 if "# The program" in prompt else 1)
    return model(prompt)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ChatServer, list[str], Path]]:
    """The server, demonstrations and flags, and folder of an expansion that nothing ended."""
    place = tmp_path_factory.mktemp("unbroken")
    with ChatServer(answer=forgetful) as server:
        given = [corridor.saved(place), "--label", "goal", "--llm-url", server.url]
        assert main(arguments(given[0], place / "whole", *given[1:])) == 0
        yield server, given, place / "whole"


@pytest.mark.slow
@pytest.mark.parametrize("reached", ["training", "rollouts.parquet", "run"])
def test_killed_in_a_round_it_ends_as_if_it_had_not_been(
    reached: str,
    unbroken: tuple[ChatServer, list[str], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server, (demos, *flags), whole = unbroken
    folder, before = tmp_path / "killed", len(server.payloads)

    def asked() -> int:
        return sum(corridor.CLEANING in json.dumps(payload) for payload in server.payloads[before:])

    command = [sys.executable, "-m", "grace_irl", *arguments(demos, folder, *flags)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    this, deadline = folder / "rounds" / "1", time.monotonic() + 300
    while not (this / reached).exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    _, said = process.communicate()
    assert process.returncode == -signal.SIGKILL, said
    assert (this / reached).exists()
    assert len(rounds_of(folder)) == 1  # round 1 is not complete
    assert asked() == 6
    assert main(["fit", "--resume", str(folder)]) == 0, capsys.readouterr().err
    assert asked() == 6
    assert rounds_of(folder) == rounds_of(whole)
    assert len(rounds_of(folder)) == 2
    assert (folder / "reward.py").read_text() == (whole / "reward.py").read_text()
    assert positives(folder, 1) == positives(whole, 1)
    assert set(positives(folder, 1).values()) == {1}


@pytest.mark.slow
def test_a_recording_has_the_goal_states_of_all_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, folder, demos = corridor.Model(), tmp_path / "run", corridor.saved(tmp_path)
    with ChatServer(answer=model) as server:
        flags = ["--label", "goal", "--llm-url", server.url]
        assert main(arguments(demos, folder, *flags)) == 0, capsys.readouterr().err
    first = folder / "rounds" / "0" / "run"
    recording = tmp_path / "first.jsonl"
    assert main(["export", str(first), "--recording", str(recording)]) == 0
    capsys.readouterr()
    replay = ["fit", "--replay", str(recording), "--demos", demos, "--env", f"{corridor.__file__}:ends"]
    assert main([*replay, "--out", str(tmp_path / "again"), "--trust-reward", "--json"]) == 0
    said = capsys.readouterr()
    assert "round 1: the recording has no answers for new rollouts: the searches continue with synthesis" in said.err
    rounds = json.loads(said.out.strip().splitlines()[-1])["rounds"]
    assert rounds[0]["program"] == rounds_of(folder)[0].program
    assert rounds[1]["new_accuracy"] == rounds_of(folder)[1].new_accuracy
    assert positives(tmp_path / "again", 1) == positives(folder, 1)
    assert len(model.cleaning) == 6


RECORDED = (
    "2,0,0",
    "In the code given, the task is done in the state that is the last one alone.",
    "trajectory 1: extra_info 'go left'; 1 state\n1: (10,0,0) at [1,4]",
    "For trajectory 1, the task is done in state 6, as it has a background code of (2,0,0).",
    "Trajectory 1: no change",
    "The task is to determine which states of an expert's trajectory are done by the task of `extra_info 'go right'`.",
    "The task is done for every trajectory in which the expert did not go on, stopped early, failed.",
)
"""What Qwen2.5-Coder-0.5B-Instruct (vLLM on a CPU, temperature 0.8) said of these trajectories, shortened."""


def test_goal_states_that_are_of_no_use_say_how_the_expansion_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, demos = tmp_path / "run", corridor.saved(tmp_path)
    for answers, code in ((("trajectory 1: none",), 2), (RECORDED, 1)):
        shutil.rmtree(folder, ignore_errors=True)
        model = corridor.Model(lambda _, said=itertools.cycle(answers): next(said))  # type: ignore[misc]
        with ChatServer(answer=model) as server:
            assert main(arguments(demos, folder, "--label", "goal", "--llm-url", server.url)) == code
        line = capsys.readouterr().err.strip().splitlines()[-1]
        assert str(folder / "rounds" / "0" / "run" / "goals.toml") in line
        assert line.count("--resume") == 1
        assert f"--resume {folder}" in line
        assert f"{folder}/rounds/0/run," not in line.replace("goals.toml", "")
