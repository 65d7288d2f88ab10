"""Scores of sets that are larger than memory: the figures are those of the whole set in memory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import grace_irl
from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.files import open_set
from grace_irl.demos.memory import limited
from grace_irl.demos.opened import OpenSet
from grace_irl.demos.trajectory import Demonstrations, LabelRule
from grace_irl.errors import InputError
from grace_irl.runs import parts
from grace_irl.runs import score as scores
from grace_irl.runs.score import score
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.states.records import records

NUMBER = "class Reward:\n    def reward_fn(self, state):\n        return float({})\n"
MOVE = (
    "class Reward:\n    def reward_fn(self, state, action, next_state):\n        return float(next_state[1] - action)\n"
)
LIMIT = "150K"
"""Less than each set here takes, and more than one of its files."""


@pytest.fixture(autouse=True)
def _few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART", 3000)
    monkeypatch.setattr(scores, "BESIDE", 0)  # these sets are tiny beside what is kept of each trajectory
    monkeypatch.setattr(scores, "EPISODE_BYTES", 0)


def reward_file(folder: Path, text: str, fields: str = "") -> Path:
    path = folder / "reward.py"
    head = f"# fields: {fields}\n" if fields else ""
    path.write_text(head + text)
    return path


def saved(given: Demonstrations, folder: Path) -> Path:
    """A folder with a set in files of twenty trajectories."""
    folder.mkdir()
    for first in range(0, len(given), 20):
        save(replace(given, items=given.items[first : first + 20]), folder / f"{first:03d}.parquet")
    return folder


def opened(folder: Path) -> OpenSet:
    with limited(LIMIT):
        return open_set([folder])


@pytest.mark.parametrize("rule", ["all", "last", "goal", None])
@pytest.mark.parametrize("text", [NUMBER.format("state[1]"), MOVE], ids=["states", "transitions"])
def test_vectors(rule: LabelRule | None, text: str, tmp_path: Path) -> None:
    given = vector_set(90, 90, 12, tasks=("one", "two"), noise=0.1, actions=True)
    items = tuple(replace(item, goals=(3, 10) if item.role == "expert" else None) for item in given)
    folder = saved(replace(given, items=items), tmp_path / "set")
    reward = reward_file(tmp_path, text)
    told: list[str] = []
    found = score(reward, opened(folder), rule=rule, sandbox=InProcessSandbox(), show=told.append)
    assert score(reward, load([folder]), rule=rule, sandbox=InProcessSandbox()) == found
    assert (len(found.tasks), found.trajectories) == (2, 360)
    assert not told


def test_true_returns_are_kept(tmp_path: Path) -> None:
    given = vector_set(90, 90, 12, noise=0.3)
    rng = np.random.default_rng(0)
    items = tuple(
        replace(item, trajectory=replace(item.trajectory, rewards=rng.normal(size=11), actions=None)) for item in given
    )
    folder = saved(replace(given, items=items), tmp_path / "set")
    reward = reward_file(tmp_path, NUMBER.format("state[1]"))
    found = score(reward, opened(folder), sandbox=InProcessSandbox())
    assert found.metrics.episodes.correlation is not None
    assert score(reward, load([folder]), sandbox=InProcessSandbox()) == found


@pytest.mark.parametrize(
    ("which", "text"),
    [
        ("records", NUMBER.format("state['observation'][0]")),
        ("grids", NUMBER.format("state[1, 1, 0]")),
        ("screens", NUMBER.format("len(state)")),
    ],
)
def test_other_states(
    which: str, text: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: Demonstrations = records() if which == "records" else request.getfixturevalue(which)
    given = replace(given, items=tuple(replace(item, task="one") for item in given))
    save(given, tmp_path / "set.parquet")
    reward = reward_file(tmp_path, text)
    whole = score(reward, load([tmp_path / "set.parquet"]), rule="last", sandbox=InProcessSandbox())
    beyond = open_set([tmp_path / "set.parquet"])
    monkeypatch.setattr(beyond, "held", lambda: None)
    assert whole == score(reward, beyond, rule="last", sandbox=InProcessSandbox())


def test_an_outline_holds_no_states(tmp_path: Path) -> None:
    given = vector_set(1, 0, 50, actions=True).items[0].trajectory
    found = given.outline()
    assert (found.digest, len(found.states), found.actions) == (given.digest, 50, None)
    assert isinstance(found.states, np.ndarray)
    assert found.states.strides[0] == 0
    assert found.states.base is not None
    assert found.states.base.nbytes == given.states[:1].nbytes  # type: ignore[index]


def test_components_are_taken_by_their_names(tmp_path: Path) -> None:
    given = vector_set(90, 90, 12)
    metadata = replace(given.metadata, fields=("a", "b", "c"))
    save(replace(given, metadata=metadata), tmp_path / "set.parquet")
    assert open_set([tmp_path / "set.parquet"]).held() is not None
    run = grace_irl.fit([tmp_path / "set.parquet"], out=tmp_path / "run", generations=1, population=4)
    turned = tuple(
        replace(item, trajectory=replace(item.trajectory, states=item.trajectory.states[:, [2, 0, 1]]))  # type: ignore[index]
        for item in given
    )
    folder = saved(Demonstrations(replace(metadata, fields=("c", "a", "b")), turned), tmp_path / "turned")
    found = score(run.reward_path, opened(folder), rule="all", sandbox=InProcessSandbox())
    assert score(run.reward_path, load([tmp_path / "set.parquet"]), rule="all", sandbox=InProcessSandbox()) == found


def test_the_command_and_python_score_beyond_the_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scores, "EVERY", 0.0)
    folder = saved(vector_set(90, 90, 12), tmp_path / "set")
    reward, file = reward_file(tmp_path, NUMBER.format("state[1]")), str(folder)
    whole = grace_irl.score(reward, file)
    assert whole == grace_irl.score(reward, file, max_memory=LIMIT)
    capsys.readouterr()
    assert main(["score", str(reward), "--demos", file, "--max-memory", LIMIT, "--json"]) == 0
    out = capsys.readouterr().out
    assert json.loads(out.splitlines()[-1])["accuracy"] == whole.metrics.accuracy
    assert "scored 180 trajectories" in out


def test_log_pi_needs_the_whole_set(tmp_path: Path) -> None:
    folder = saved(vector_set(90, 90, 12, actions=True), tmp_path / "set")
    reward = reward_file(tmp_path, NUMBER.format("state[1]"))
    with pytest.raises(InputError, match=r"--log-pi cloned: .* more than the memory limit.* raise --max-memory"):
        score(reward, opened(folder), choice="cloned", sandbox=InProcessSandbox())


def test_rewards_beyond_the_limit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "BESIDE", 480)
    folder = saved(vector_set(90, 90, 12), tmp_path / "set")
    reward = reward_file(tmp_path, NUMBER.format("state[1]"))
    with pytest.raises(InputError, match=r"a score of all states needs .* at most 150 KiB .*--max-memory"):
        score(reward, opened(folder), sandbox=InProcessSandbox())


def test_memory_is_free_again_after_a_set_that_did_not_fit(tmp_path: Path) -> None:
    folder = saved(vector_set(90, 90, 12), tmp_path / "set")
    found = opened(folder)
    before = found.memory.taken
    assert found.held() is None
    assert found.memory.taken == before
