"""Screens through the command line, from a file to a reward and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import grace_irl
from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.evaluate.log_pi import clone
from grace_irl.propose.protocol import Proposal
from grace_irl.states.texts import pack, text
from tests.cli.commands import command, last_object
from tests.demos.conftest import screen

REWARD = '''
from lxml import etree


class Reward:
    """Whether the time of the instruction is on the screen."""

    def __init__(self, extra_info=None):
        self.word = (extra_info or "").split()[-1]

    def reward_fn(self, state):
        return float(any(self.word == node.get("text") for node in etree.fromstring(state).iter("node")))

    def debug_fn(self, state):
        return f"{self.word} in {len(state)} characters"
'''


class ByHand:
    async def propose(self, request: object, parents: object) -> Proposal:
        return Proposal(REWARD, raw="by hand")


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    items = []
    for number in range(8):
        role, shown = ("expert", f"{number}:25") if number % 2 else ("negative", "9:99")
        states = [screen("Alarm"), screen("Alarm", f"tab {number % 3}"), screen("Alarm", shown)]
        items.append(Demonstration(Trajectory(pack(states), extra_info=f"set {number}:25"), role, "alarm"))
    path = tmp_path_factory.mktemp("demos") / "set.parquet"
    save(Demonstrations(Metadata("ui", view="uiautomator", label="last"), tuple(items)), path)
    return path


@pytest.mark.slow
def test_a_reward_by_hand_is_fitted_scored_and_used(demos: Path, tmp_path: Path) -> None:
    run = grace_irl.fit([demos], out=tmp_path / "run", proposer=ByHand(), max_calls=2, held_out=0.3, seed=1)
    assert run.best.train.separated
    done = command("score", str(run.reward_path), "--demos", str(demos), "--json")
    assert done.returncode == 0, done.stderr
    assert last_object(done.stdout)["accuracy"] == 1.0
    trajectory = load([demos])[1].trajectory
    reward = grace_irl.load_reward(run.reward_path, trust=True)(trajectory.extra_info)
    online = [reward.reward_fn(state) for state in trajectory.states]
    assert online == [reward.reward_fn(text(state)) for state in trajectory.states] == [0.0, 0.0, 1.0]
    np.testing.assert_array_equal(grace_irl.load_reward(run.reward_path).rewards([trajectory])[0], online)
    for arguments in (("show", str(run.folder)), ("export", str(run.folder), "--out", str(tmp_path / "reward.py"))):
        done = command(*arguments)
        assert done.returncode == 0, done.stderr


def test_convert_and_inspect(demos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demos", "convert", str(demos), str(tmp_path / "copy.parquet")]) == 0
    for one, other in zip(load([demos]), load([tmp_path / "copy.parquet"]), strict=True):
        assert one.trajectory.digest == other.trajectory.digest
    assert main(["demos", "convert", str(demos), str(tmp_path / "copy.npz")]) == 2
    assert "states of kind 'ui'" in capsys.readouterr().err
    assert not (tmp_path / "copy.npz").exists()
    assert main(["demos", "inspect", str(demos), "--no-picture"]) == 0
    assert "Screens: 24, of which 9 differ" in capsys.readouterr().out


def test_cloning_says_that_it_takes_no_screens() -> None:
    trajectory = Trajectory(pack([screen("a"), screen("b")]), actions=np.zeros(1))
    with pytest.raises(InputError, match=r"screens \(kind ui\); --log-pi cloned needs states of numbers"):
        clone([trajectory], [trajectory])
