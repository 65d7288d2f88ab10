"""Records and images in all that follows a search: goal states from a model, PPO, resume, a comparison."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="the extra rl is not installed: pip install 'grace-irl[rl]'")

from grace_irl.cli import main
from grace_irl.compare.folder import ComparisonFolder
from grace_irl.demos import load
from grace_irl.programs.parts import Reads
from grace_irl.rewards.file import load_reward
from grace_irl.runs.expand.expansion import rounds_of
from tests.cli import corridor
from tests.cli.test_goal_expansion import answer, arguments, positives
from tests.propose.client.server import ChatServer

READS = {
    "record": Reads("record", {"camera": (12, 4 * corridor.WIDTH, 3), "place": ()}),
    "image": Reads("image", {}, (12, 4 * corridor.WIDTH, 3)),
}
"""What the files of the rewards say of the states."""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["record", "image"])
def test_goal_states_and_rollouts_reach_every_round(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, folder = corridor.Model(), tmp_path / "run"
    with ChatServer(answer=model) as server:
        flags = ["--label", "goal", "--llm-url", server.url, "--images"]
        demos = corridor.saved(tmp_path, form=form)
        assert main(arguments(demos, folder, *flags, env=f"{form}s")) == 0, capsys.readouterr().err
        assert len(model.cleaning) == len(set(model.cleaning)) == 6
        pictured = [payload for payload in server.payloads if "image_url" in json.dumps(payload)]
        assert len(pictured) == len(server.payloads) == len(model.cleaning) + len(model.writing)
        assert form != "record" or all("place=" in prompt for prompt in model.cleaning)
        first, last = rounds_of(folder)
        assert last.new_accuracy is not None
        assert last.new_accuracy < 0.99  # the first reward pays at the wrong end, too
        assert last.changed
        assert corridor.OWN_END in (folder / "reward.py").read_text()
        assert load_reward(folder / "reward.py").reads == READS[form]
        assert positives(folder, 1) == positives(folder, 0)
        assert set(positives(folder, 0).values()) == {1}
        rollouts = load([], [folder / "rounds" / "1" / "rollouts.parquet"])
        assert rollouts.metadata.kind == form
        assert form == "image" or list(rollouts[0].trajectory.states.parts) == ["camera", "place"]
        assert answer(capsys)["rounds"][1]["success"] == last.success
        # Killed before the round was complete: the policy is read again, and plays the same episodes.
        for place in ("round.json", "run"):
            path = folder / "rounds" / "1" / place
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        model.writing = model.writing[:1]
        assert main(["fit", "--resume", str(folder)]) == 0, capsys.readouterr().err
    assert rounds_of(folder) == (first, last)
    assert len(model.cleaning) == 6


@pytest.mark.slow
@pytest.mark.parametrize("form", ["record", "image"])
def test_every_method_of_a_comparison_learns(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")
    demos, reward = corridor.saved(tmp_path, marked=True, form=form), tmp_path / "reward.py"
    reward.write_text(corridor.program(corridor.OWN_END))
    quick = ["--steps", "1024", "--episodes", "4", "--looks", "1", "--seeds", "1", "--workers", "2", "--trust-reward"]
    search = ["--set", "search.population=2", "--set", "search.elite=1", "--set", "search.generations=1"]
    grace = ["--reward", str(reward)] if form == "image" else search  # the synthesiser has no words for pixels
    named = ["--methods", "grace,gail,airl,bc,ppo-true", "--tune", "bc.updates=20", "--horizon", "12"]
    asked = ["compare", "--demos", demos, "--env", f"{corridor.__file__}:{form}s", *quick, *grace, *named]
    assert main([*asked, "--out", str(tmp_path / "out"), "--json"]) == 0, capsys.readouterr().err
    results = answer(capsys)["results"]
    if form == "record":
        assert load_reward(ComparisonFolder(tmp_path / "out").job("grace", 0).program).reads == READS[form]
    assert [(each["method"], each["failure"]) for each in results] == [
        (name, "") for name in ("grace", "gail", "airl", "bc", "ppo-true")
    ]
