"""Goals over vectors together with expansion, validation and comparisons: predicates in whole commands."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")

import grace_irl
from grace_irl.cli import main
from grace_irl.compare.folder import read_result
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.expand.expansion import start
from grace_irl.runs.run import opened
from tests.compare.pursuit import MAKE, write_demonstrations
from tests.runs.test_preference import Listed

PREDICATE = "distance(hand, goal) <= 0.15"
SMALL = {"search.population": 4, "search.generations": 1, "sandbox.workers": 1}
EXPANDED = {
    "expand.rounds": 1,
    "expand.steps": 1024,
    "expand.episodes": 6,
    "expand.env": MAKE,
    "expand.trust": True,
}


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_demonstrations(tmp_path_factory.mktemp("pursuit"), 32)


@pytest.mark.slow
def test_rollouts_leave_a_predicate_what_it_is(demos: Path, tmp_path: Path) -> None:
    """What ended at the goal looks like an expert's; the rest confirms the predicate, so no new search is needed."""
    run = start(resolve(flags={"data.demos": (str(demos),), **SMALL, **EXPANDED}), tmp_path / "run")
    assert PREDICATE in run.best.source
    last = run.rounds[-1]
    assert (last.number, last.rollouts) == (1, 6)
    assert last.success is not None
    assert last.alike == round(last.success * 6)  # the true end of an episode and the reward agree
    assert last.new_accuracy is None or last.new_accuracy > 0.99  # an episode may begin near its goal


@pytest.mark.slow
def test_an_expansion_sets_episodes_aside_in_each_round(demos: Path, tmp_path: Path) -> None:
    """Programs of a caller's own proposer; the rounds' new negatives are in the split, too."""
    nowhere = "class Reward:\n    def reward_fn(self, state):\n        return float(state[0] > 9.0)\n"
    close = (
        "class Reward:\n    def reward_fn(self, state):\n"
        "        return float(((state[:2] - state[2:]) ** 2).sum() <= {limit})\n"
    )
    listed = Listed(nowhere, close.format(limit=0.0225), close.format(limit=0.09))
    anyway = {"expand.enough": 1.0}
    config = resolve(flags={"data.demos": (str(demos),), "data.validation": 0.3, **SMALL, **EXPANDED, **anyway})
    run = start(config, tmp_path / "run", Parts(proposer=listed))
    assert "0.0225" in run.best.source
    for number in (0, 1):
        with opened(tmp_path / "run" / "rounds" / str(number) / "run") as (store, _):
            sides = [(row.split, row.role) for row in store.trajectories()]
            assert store.meta("sizes") is not None
        assert sides.count(("validation", "expert")) >= 6
        assert sides.count(("validation", "negative")) >= 6


@pytest.mark.slow
def test_a_comparison_learns_a_predicate(demos: Path, tmp_path: Path) -> None:
    pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")
    folder = tmp_path / "c"
    asked = ["--env", MAKE, "--demos", str(demos), "--methods", "grace,bc", "--seeds", "1", "--steps", "512"]
    asked += ["--episodes", "3", "--looks", "1", "--look-episodes", "2", "--choice-episodes", "1"]
    asked += ["--tune", "bc.updates=20"]
    fit = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    assert main(["compare", *asked, *fit, "--trust-reward", "--out", str(folder)]) == 0
    found = read_result(folder / "jobs" / "grace-0" / "result.json")
    assert found is not None
    assert found.failure == ""
    assert PREDICATE in (folder / "jobs" / "grace-0" / "fit" / "reward.py").read_text()


def test_a_predicate_judged_on_validation_episodes(demos: Path, tmp_path: Path) -> None:
    """Folds choose on training episodes first; then the episodes that are set aside decide."""
    run = grace_irl.fit(demos, out=tmp_path / "run", validation=0.3, generations=1, population=4, held_out=0.0)
    assert PREDICATE in run.best.source
    assert all(row.words == "" and row.auc is not None for row in run.front_rows)
    best = next(row for row in run.front_rows if row.best)
    assert best.auc is not None
    assert best.auc > 0.99
