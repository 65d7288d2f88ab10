"""Records in all that follows a search: goal states from a model, expansion through PPO, resume, a comparison."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="the extra rl is not installed: pip install 'grace-irl[rl]'")

from grace_irl.cli import main
from grace_irl.demos import load
from grace_irl.runs.expand.expansion import rounds_of
from tests.cli import corridor
from tests.cli.test_goal_expansion import answer, arguments, positives
from tests.propose.client.server import ChatServer

ENV = f"{corridor.__file__}:records"


@pytest.mark.slow
def test_goal_states_and_rollouts_of_records_reach_every_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, folder = corridor.Model(), tmp_path / "run"
    with ChatServer(answer=model) as server:
        flags = ["--label", "goal", "--llm-url", server.url]
        demos = corridor.saved(tmp_path, form="record")
        assert main(arguments(demos, folder, *flags, env="records")) == 0, capsys.readouterr().err
        assert len(model.cleaning) == len(set(model.cleaning)) == 6
        assert all("place=" in prompt for prompt in model.cleaning)
        first, last = rounds_of(folder)
        assert last.new_accuracy is not None
        assert last.new_accuracy < 0.99  # the first reward pays at the wrong end, too
        assert last.changed
        assert corridor.OWN_END in (folder / "reward.py").read_text()
        assert positives(folder, 1) == positives(folder, 0)
        assert set(positives(folder, 0).values()) == {1}
        rollouts = load([], [folder / "rounds" / "1" / "rollouts.parquet"])
        assert rollouts.metadata.kind == "record"
        assert list(rollouts[0].trajectory.states.parts) == ["camera", "place"]
        assert answer(capsys)["rounds"][1]["success"] == last.success is not None
        # Killed before the round was complete: the policy is read again, and plays the same episodes.
        for place in ("round.json", "run"):
            path = folder / "rounds" / "1" / place
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        model.writing = model.writing[:1]
        assert main(["fit", "--resume", str(folder)]) == 0, capsys.readouterr().err
    assert rounds_of(folder) == (first, last)
    assert len(model.cleaning) == 6


@pytest.mark.slow
def test_every_method_of_a_comparison_learns_from_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("grace_irl_baselines", reason="not installed: pip install --no-deps --editable baselines")
    demos = corridor.saved(tmp_path, marked=True, form="record")
    quick = ["--steps", "2048", "--episodes", "4", "--looks", "1", "--seeds", "1", "--workers", "2", "--trust-reward"]
    search = ["--set", "search.population=2", "--set", "search.elite=1", "--set", "search.generations=1"]
    named = ["--methods", "grace,gail,airl,bc,ppo-true", "--tune", "bc.updates=20", "--horizon", "12"]
    asked = ["compare", "--demos", demos, "--env", ENV, *quick, *search, *named]
    assert main([*asked, "--out", str(tmp_path / "out"), "--json"]) == 0, capsys.readouterr().err
    results = answer(capsys)["results"]
    assert [(each["method"], each["failure"]) for each in results] == [
        (name, "") for name in ("grace", "gail", "airl", "bc", "ppo-true")
    ]
