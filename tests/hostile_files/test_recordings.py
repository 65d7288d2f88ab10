"""Recordings are made for sharing: they give a search and its answers, and act for nobody."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.runs.acting import DROPPED, NAMED, acting, shareable
from grace_irl.runs.config import resolve
from grace_irl.runs.recording import recorded_config
from tests.hostile_files.traps import SMALL, demos, line, recording, run, stranger, trap


def test_a_recording_runs_no_code_and_trusts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil, data = trap(tmp_path), demos(tmp_path)
    # An answer that would run commands as the user, were it ever run outside of the sandbox.
    answer = (
        "import random\nclass Reward:\n    def __init__(self, extra_info=None):\n"
        f"        getattr(random, '_' + 'os').system('touch {evil.mark}')\n"
        "    def reward_fn(self, state):\n        return float(state[1] > 0.25)\n"
    )
    acts = {
        "expand": {"rounds": 1, "env": evil.name, "trust": True, "steps": 64},
        "sandbox": {"allow_weak": True, "wall_s": 1e6, "memory_mb": 10**6, "workers": 999},
    }
    path = recording(tmp_path / "gift.jsonl", acts, (answer,))
    assert main(["fit", "--replay", str(path), "--demos", str(data), "--out", str(tmp_path / "run")]) in (1, 2)
    assert not evil.sprung
    assert "grace-irl: " in line(capsys)
    config = recorded_config(path)
    assert (config.expand.env, config.expand.trust, config.expand.rounds) == ("", False, 1)
    assert config.sandbox == type(config.sandbox)()


@pytest.mark.parametrize("name", ["module:Env-v0", "package.module:make", "./evil.py:make"])
def test_an_environment_that_is_code_is_left_out(tmp_path: Path, name: str) -> None:
    assert recorded_config(recording(tmp_path / "a.jsonl", {"expand": {"env": name}})).expand.env == ""


def test_a_registered_environment_stays(tmp_path: Path) -> None:
    assert recorded_config(recording(tmp_path / "a.jsonl", {"expand": {"env": "Hopper-v5"}})).expand.env == "Hopper-v5"


def test_addresses_paths_and_context_are_left_out(tmp_path: Path) -> None:
    acts = {
        "model": {"url": "http://192.0.2.1/v1", "context": "/etc/passwd", "concurrency": 1000},
        "data": {"demos": ["/etc"], "negatives": ["/etc/hosts"], "goals": "/etc/passwd"},
        "proposer": {"start_from": ["/etc/passwd"], "name": "llm"},
    }
    config = recorded_config(recording(tmp_path / "a.jsonl", acts))
    assert config.model == type(config.model)()
    assert config.data == type(config.data)()
    assert (config.proposer.name, config.proposer.start_from) == ("replay", ())


def test_the_user_names_the_demonstrations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = demos(tmp_path)
    path = recording(tmp_path / "a.jsonl", {"data": {"demos": [str(data)]}})
    assert main(["fit", "--replay", str(path), "--out", str(tmp_path / "run")]) == 2
    assert "no demonstrations; expected --demos" in line(capsys)
    assert not (tmp_path / "run").exists()


def test_other_demonstrations_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, other = demos(tmp_path), tmp_path / "other.npz"
    assert main(["demos", "scramble", str(data), str(tmp_path / "scrambled.parquet")]) == 0
    folder = run(tmp_path, data)
    assert main(["export", str(folder), "--recording", str(tmp_path / "a.jsonl")]) == 0
    capsys.readouterr()
    again = ["fit", "--replay", str(tmp_path / "a.jsonl"), "--out", str(tmp_path / "again")]
    assert main([*again, "--demos", str(tmp_path / "scrambled.parquet")]) == 2
    assert "expected the demonstrations that it was recorded on" in line(capsys)
    assert not (tmp_path / "again").exists()
    assert main(["demos", "convert", str(data), str(other)]) == 0  # the same trajectories in another file
    assert main([*again, "--demos", str(other), "--workers", "1"]) == 0
    own = ["fit", "--replay", str(folder), "--out", str(tmp_path / "own"), *SMALL]
    capsys.readouterr()
    assert main([*own, "--demos", str(data), str(other)]) == 2
    assert "12 here are not in the recording; expected each of them once: some are named twice" in line(capsys)
    assert main([*own, "--demos", str(other)]) == 0  # in place of the run's, not beside them


def test_an_exported_recording_tells_nothing_of_its_machine(tmp_path: Path) -> None:
    data = demos(tmp_path)
    more = tmp_path / "more.parquet"
    save(load([data]).select(role="expert"), more)
    folder = run(tmp_path, data, "--experts", str(more), "--set", "sandbox.wall_s=20")
    assert main(["export", str(folder), "--recording", str(tmp_path / "a.jsonl")]) == 0
    header = (tmp_path / "a.jsonl").read_text().splitlines()[0]
    assert str(tmp_path) not in header
    assert json.loads(header)["config"]["sandbox"]["wall_s"] == 10.0
    assert len(json.loads(header)["data"]) == 12 + 6


def test_no_acting_setting_is_shared() -> None:
    """An export contains no setting that reads files or runs code; a replay takes none from a recording."""
    some: dict[str, object] = {
        "model.url": "http://nowhere:1",
        "model.context": "context.md",
        "expand.env": "mine.py:make",
    }
    some |= dict.fromkeys(("sandbox.wall_s", "sandbox.cpu_s", "sandbox.memory_mb", "sandbox.workers"), 2_000)
    some |= dict.fromkeys(("expand.trust", "sandbox.allow_weak"), True)
    some |= dict.fromkeys(("data.demos", "data.experts", "data.negatives", "proposer.start_from"), ("a.parquet",))
    some |= dict.fromkeys(("data.goals", "proposer.recording"), "a.jsonl")
    config = resolve(flags=some)
    assert acting(config).keys() == {*NAMED, *DROPPED} - {"policy.task", "policy.recorded_scores"}
    assert acting(shareable(config)) == {}


def test_a_run_of_ones_own_names_its_demonstrations_and_a_copy_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run(tmp_path, demos(tmp_path))
    assert main(["fit", "--replay", str(folder), "--out", str(tmp_path / "again"), *SMALL]) == 0
    shutil.copytree(folder, tmp_path / "copy")
    assert main(["fit", "--replay", str(tmp_path / "copy"), "--out", str(tmp_path / "third"), *SMALL]) == 2
    assert "expected --demos" in line(capsys)
    stranger(monkeypatch, tmp_path)
    assert main(["fit", "--replay", str(folder), "--out", str(tmp_path / "fourth"), *SMALL]) == 2
    assert "expected --demos" in line(capsys)


@pytest.mark.slow
def test_a_training_on_recorded_answers_is_as_untrusted_as_the_recording(tmp_path: Path) -> None:
    """A whole round of expansion: its environment is the demonstrations' own, and its reward stays in the sandbox."""
    pytest.importorskip("stable_baselines3")
    from tests.rl.cart_pole import experts, play

    evil, data = trap(tmp_path), tmp_path / "set.parquet"
    known = experts(2)
    save(Demonstrations(known.metadata, (*known, play(100, "negative"))), data)
    answer = (
        "import random\nclass Reward:\n    def __init__(self, extra_info=None):\n        try:\n"
        f"            getattr(random, '_' + 'os').system('touch {evil.mark}')\n        except Exception:\n"
        "            pass\n    def reward_fn(self, state):\n        return float(abs(state[2]) < 0.1)\n"
    )
    acts = {"expand": {"rounds": 3, "env": evil.name, "trust": True}, "data": {"held_out": 0.0}}
    path = recording(tmp_path / "gift.jsonl", acts, (answer,))
    words = ["--expand", "1", "--env-steps", "64", "--rollouts", "2", "--workers", "1"]
    out = tmp_path / "run"
    assert main(["fit", "--replay", str(path), "--demos", str(data), "--out", str(out), *words]) == 0
    assert (out / "rounds" / "1" / "training" / "policy.pt").is_file()
    assert not evil.sprung
    expand = resolve(out / "rounds" / "0" / "run" / "config.toml").expand
    assert (expand.env, expand.trust, expand.rounds) == ("", False, 1)
