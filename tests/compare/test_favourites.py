"""Results of last policies and of favourites: the same choice for all methods, by what each was trained on."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")

from stable_baselines3.common.monitor import Monitor

from grace_irl.cli import main
from grace_irl.compare.folder import ComparisonFolder
from grace_irl.demos.trajectory import Demonstrations, Metadata
from grace_irl.rl.choice import Signal, choose
from grace_irl.rl.learning import NetPay, true_pay
from grace_irl.rl.method import Kept, PolicyProblem
from grace_irl.rl.problems import make_problem
from grace_irl.rl.trained import load_policy
from tests.compare.corridor import (
    LEFT,
    LENGTH,
    MAKE,
    RIGHT,
    SEARCH,
    SLOWLY,
    always,
    make,
    write_demonstrations,
)

QUICK = ["--seeds", "2", "--steps", "90", "--episodes", "4", "--looks", "1", "--trust-reward"]
EPISODES = ["--set", "expand.episodes=3"]


def compared(tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    demos = write_demonstrations(tmp_path / "demos")
    begun = [
        "compare",
        "--demos",
        str(demos),
        "--env",
        MAKE,
        *QUICK,
        *SEARCH,
        *EPISODES,
        "--out",
        str(tmp_path / "out"),
        "--json",
    ]
    assert main([*begun, *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_an_expanded_grace_has_both_policies_in_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second of three rounds is paid most by the recovered reward, and least by the true one."""
    words = ["--methods", "grace,bc", "--expand", "3", "--tune", "bc.updates=5"]
    found = compared(tmp_path, capsys, *words)
    (grace,) = [each for each in found["standings"] if each["method"] == "grace"]
    assert (grace["last"]["returns"]["mean"], grace["favourite"]["returns"]["mean"]) == (LENGTH, -LENGTH / 2)
    for result in found["results"]:
        (outcome,) = result["outcomes"]
        favourite = outcome["favourite"]
        if result["method"] == "bc":
            assert (favourite["mean"], favourite["trained"], favourite["paid"]) == (outcome["mean"], 0, [])
            assert favourite["choosing"] == 0
            continue
        assert (outcome["mean"], outcome["steps"], favourite["mean"]) == (LENGTH, 90, -LENGTH / 2)
        assert (favourite["trained"], int(np.argmax(favourite["paid"])), len(favourite["paid"])) == (60, 1, 3)
        assert favourite["choosing"] == 3 * 10 * LENGTH
    job = ComparisonFolder(tmp_path / "out").job("grace", 0)
    states = np.zeros((1, 2), np.float32)
    assert load_policy(job.policy("corridor.py:make")).predict(states, deterministic=True)[0] == LEFT
    assert load_policy(job.favourite("corridor.py:make")).predict(states, deterministic=True)[0] == SLOWLY
    assert not ComparisonFolder(tmp_path / "out").job("bc", 0).favourite("corridor.py:make").exists()
    table = (tmp_path / "out" / "table.md").read_text()
    assert "| grace | 2 | 20.0 ± 0.000 [-] | -10.0 ± 0.000 [-] |" in table
    assert "Each training keeps 3 policies" in table
    with (tmp_path / "out" / "results.csv").open() as file:
        row = next(row for row in csv.DictReader(file) if row["method"] == "grace")
    assert (row["return"], row["favourite_return"], row["favourite_steps"], row["choosing_steps"]) == (
        *("20", "-10", "60"),
        "600",
    )


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_every_method_keeps_its_policies_where_the_rounds_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--methods", "gail,ppo-true", "--steps", "8192", "--expand", "2", "--set", "expand.growth=3", "--seeds"]
    found = compared(tmp_path, capsys, *words, "1", "--tune", "gail.demo_batch_size=32")
    assert [each["failure"] for each in found["results"]] == ["", ""]
    for result in found["results"]:
        (outcome,) = result["outcomes"]
        assert len(outcome["favourite"]["paid"]) == 2
        assert outcome["favourite"]["choosing"] == 2 * 10 * LENGTH
        assert outcome["favourite"]["trained"] in (2048, 8192)


def test_policies_kept_are_as_many_as_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demos = write_demonstrations(tmp_path / "demos")
    words = ["--methods", "bc", "--expand", "3", "--keep", "4", "--out", str(tmp_path / "out")]
    assert main(["compare", "--demos", str(demos), "--env", MAKE, *words]) == 2
    assert "--keep 4 with --expand 3; expected none" in capsys.readouterr().err
    assert main(["compare", "--demos", str(demos), "--env", MAKE, *words[:2], "--keep", "-1", *words[-2:]]) == 2
    assert "comparison setting 'keep' is -1" in capsys.readouterr().err
    assert main(["compare", "--demos", str(demos), "--env", MAKE, *words[:2], "--expand", "1001", *words[-2:]]) == 2
    assert "--expand 1001; expected at most 100 in a comparison" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def problem(environment: Any = make) -> PolicyProblem:
    return make_problem(Demonstrations(Metadata("vector"), ()), environment, 100)


def kept(*actions: int) -> list[Kept]:
    return [Kept(number, always(action)) for number, action in enumerate(actions)]


def place(state: Any, action: Any, next_state: Any, done: Any) -> np.ndarray:
    """Pays for being to the right."""
    return np.asarray(next_state[:, 0], np.float64)


def test_the_signal_chooses_and_not_the_environment() -> None:
    policies, signal = kept(LEFT, RIGHT, SLOWLY, LEFT), Signal(NetPay(place, "reward"))
    found = choose(policies, problem(), signal, 4, 0, deterministic=True)
    assert (found.policy, found.steps) == (policies[1], 4 * 4 * LENGTH)
    assert found.paid == pytest.approx((-210, 210, 105, -210), abs=80)
    assert found.paid[0] == found.paid[3]  # the same episodes for all
    assert choose(policies, problem(), Signal(true_pay), 3, 0, deterministic=True).policy == policies[3]


def test_a_monitor_around_the_environment_does_not_choose() -> None:
    def monitored() -> Any:
        environment, view = make()
        return Monitor(environment), view

    policies, signal = kept(LEFT, RIGHT), Signal(NetPay(place, "reward"))
    assert choose(policies, problem(monitored), signal, 2, 0, deterministic=True).policy == policies[1]


def test_what_is_not_a_number_is_never_the_favourite() -> None:
    def nowhere(state: Any, action: Any, next_state: Any, done: Any) -> np.ndarray:
        return np.where(next_state[:, 0] > 8, np.nan, next_state[:, 0])

    policies = kept(RIGHT, LEFT)
    found = choose(policies, problem(), Signal(NetPay(nowhere, "reward")), 2, 0, deterministic=True)
    assert found.policy == policies[1]


class Ends:
    """Ends an episode early, by going to the right."""

    def __init__(self) -> None:
        self.environment, self.view = make()

    def __call__(self) -> tuple[Any, Any]:
        environment, view = make()
        step = environment.step

        def ending(action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            state, reward, _, truncated, info = step(action)
            return state, reward, state[0] > 5, truncated, info

        environment.step = ending
        return environment, view


def test_a_centred_signal_does_not_pay_for_length() -> None:
    """Positive everywhere, and higher to the right, where episodes end: only its sum is larger for those that stay."""

    def positive(state: Any, action: Any, next_state: Any, done: Any) -> np.ndarray:
        return np.where(next_state[:, 0] > 0, 2.0, 1.0)

    ends = make_problem(Demonstrations(Metadata("vector"), ()), Ends(), 100)
    policies, pay = kept(RIGHT, LEFT), NetPay(positive, "reward")
    assert choose(policies, ends, Signal(pay), 4, 0, deterministic=True).policy == policies[1]
    assert choose(policies, ends, Signal(pay, centred=True), 4, 0, deterministic=True).policy == policies[0]
