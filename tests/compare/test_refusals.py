"""Comparisons that are refused before anything is written, and those that may go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")

from grace_irl.cli import main
from grace_irl.compare.comparison import resume, start
from grace_irl.compare.fitted import Fitted
from grace_irl.compare.folder import (
    ComparisonFolder,
    JobResult,
    TrainingOutcome,
    write_result,
)
from grace_irl.compare.settings import Settings, read_settings, tuned
from grace_irl.demos.trajectory import Demonstrations, Metadata
from grace_irl.errors import InputError
from grace_irl.methods.registry import METHODS
from grace_irl.programs.export import export_source
from grace_irl.rl.method import PolicyProblem
from grace_irl.runs.config import resolve
from tests.compare.rewards import UPRIGHT
from tests.compare.short import settings, upright

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"methods": ("grace", "sqil")}, f"method 'sqil'; expected one of {', '.join(METHODS)}, airl, bc, gail, ppo-true"),
    ({"methods": ("bc", "bc")}, "--methods 'bc,bc'; expected different methods"),
    ({"methods": ()}, "--methods ''; expected different methods"),
    ({"methods": ("bc",), "tuned": ("bc.x=1",)}, "method 'bc': setting 'x'"),
    (
        {"methods": ("gail",), "tuned": ("gail.pays=less",)},
        "setting pays='less': Input should be 'auto', 'reward', 'cen",
    ),
    (
        {"methods": ("airl",), "tuned": ("airl.demo_batch_size=few",)},
        "setting demo_batch_size='few': Input should be a",
    ),
    ({"methods": ("bc",), "tuned": ("gail.hidden=1",)}, "--tune 'gail.hidden=1'; expected METHOD.KEY=VALUE"),
    ({"methods": ("grace",), "tuned": ("grace.x=1",)}, "expected --set or --config for how it searches"),
    ({"methods": ("bc",), "steps": 0}, "comparison setting 'steps' is 0"),
    ({"methods": ("bc",), "device": "tpu"}, "comparison setting 'device' is 'tpu'"),
    ({"methods": ("grace",), "device": "cuda", "fit": {"expand.rounds": 2}}, "device cuda, and torch finds no GPU"),
    ({"methods": ("bc",), "env": "Acrobot-v1"}, "Acrobot-v1: states of 6 numbers beside the demonstrations with 4"),
    (
        {"methods": ("bc",), "transfer": ("CartPole-v1",)},
        "--transfer-env: CartPole-v1, CartPole-v1; expected",
    ),
    ({"methods": ("grace",), "fit": {"proposer.start_from": ("none.py",)}}, "none.py: No such file or directory"),
    (
        {"methods": ("bc", "grace"), "fit": {"model.url": "http://127.0.0.1:9", "model.context": "none.txt"}},
        "none.txt: No such file or directory; expected a text file for --context",
    ),
    ({"methods": ("grace",), "fit": {"proposer.name": "llm"}}, "proposer 'llm' without a server; expected --llm-url"),
    ({"methods": ("grace",), "horizon": 50, "fit": {"expand.rounds": 2}}, "--expand with --horizon"),
    ({"methods": ("grace",), "reward": "x.py", "fit": {"expand.rounds": 2}}, "--expand with --reward"),
]


@pytest.mark.parametrize(("changes", "said"), REFUSED, ids=[said[:30] for _, said in REFUSED])
def test_what_cannot_be_compared_is_refused_before_anything_is_written(
    changes: dict[str, Any], said: str, cart_pole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    methods = changes.pop("methods")
    with pytest.raises(InputError) as caught:
        start(settings(cart_pole, *methods, **changes), tmp_path / "out")
    assert said in str(caught.value)
    changes["methods"] = methods
    assert not (tmp_path / "out").exists()


def test_the_form_guided_needs_a_threshold(cart_pole: Path, tmp_path: Path) -> None:
    (path := tmp_path / "mine.py").write_text("class Reward:\n    def reward_fn(self, state): return 1.0\n")
    with pytest.raises(InputError, match=f"'guided' for {path}, without a THRESHOLD; expected another form"):
        start(settings(cart_pole, "grace", reward=str(path), fit={"expand.form": "guided"}), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    config = resolve(flags={"method": "eureka", "policy.task": "acrobot", "expand.form": "guided"})
    judged = Fitted("eureka", config, tmp_path / "fit", Demonstrations(Metadata("vector"), ()))
    with pytest.raises(InputError, match="'guided' for rewards of method 'eureka', without a THRESHOLD"):
        judged.check(Mock(spec=PolicyProblem))


def test_a_folder_that_is_taken_and_one_that_is_none(cart_pole: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="exists already"):
        start(settings(cart_pole, "bc"), tmp_path)
    with pytest.raises(InputError, match=r"no compare\.toml; expected the folder of a comparison"):
        resume(tmp_path)


def test_demonstrations_that_changed_are_refused(cart_pole: Path, tmp_path: Path) -> None:
    asked = settings(cart_pole, "bc")
    changed = Settings(asked.comparison.model_copy(update={"data": "another"}), asked.fit)
    changed.write(tmp_path)
    with pytest.raises(InputError, match="not those that the comparison began with"):
        resume(tmp_path)


def test_a_method_leaves_and_comes_back_with_its_settings(
    cart_pole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grace_irl.compare.comparison.run_jobs", lambda *_: None)
    start(settings(cart_pole, "gail", "bc", tuned=("gail.demo_batch_size=64",)), tmp_path / "out")
    for methods in (("bc",), ("bc", "gail")):
        resume(tmp_path / "out", methods=methods)
        found = read_settings(tmp_path / "out").comparison
        assert (found.methods, tuned(found, "gail")) == (methods, {"demo_batch_size": 64})


def test_a_reward_that_changed_is_refused(cart_pole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder holds a copy, so a change of the user's own file does no harm."""
    monkeypatch.setattr("grace_irl.compare.comparison.run_jobs", lambda *_: None)
    asked = settings(cart_pole, "grace", reward=upright(tmp_path))
    start(asked, tmp_path / "out")
    upright(tmp_path, UPRIGHT.replace("1.0", "2.0"))
    resume(tmp_path / "out")
    (tmp_path / "out" / "reward.py").write_text(f"{UPRIGHT}\n")
    resume(tmp_path / "out")  # no run has used it
    ComparisonFolder(tmp_path / "out").job("grace", 0).path.mkdir(parents=True)
    resume(tmp_path / "out")
    (tmp_path / "out" / "reward.py").write_text(UPRIGHT)
    with pytest.raises(InputError, match=r"reward\.py: not the reward that the comparison began with"):
        resume(tmp_path / "out")


@pytest.mark.parametrize(("seed", "failure"), [(0, "its transfer environment breaks"), (1, "")])
def test_a_reward_that_a_training_has_used_is_refused(
    seed: int, failure: str, cart_pole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later failure of the run changes nothing, and neither does a smaller number of seeds."""
    monkeypatch.setattr("grace_irl.compare.comparison.run_jobs", lambda *_: None)
    start(settings(cart_pole, "grace", reward=upright(tmp_path), seeds=2), tmp_path / "out")
    job = ComparisonFolder(tmp_path / "out").job("grace", seed)
    job.path.mkdir(parents=True)
    outcome = TrainingOutcome("CartPole-v1", False, 4, 9.0, 1.0, None, 9.0)
    write_result(job.result, JobResult("grace", seed, (outcome,), failure=failure))
    (tmp_path / "out" / "reward.py").write_text(f"{UPRIGHT}\n")
    with pytest.raises(InputError, match=r"reward\.py: not the reward that the comparison began with"):
        resume(tmp_path / "out", seeds=1)


def test_settings_are_read_as_they_were_written(cart_pole: Path, tmp_path: Path) -> None:
    asked = settings(cart_pole, "bc", "grace", transfer=("a b",), tuned=("bc.updates=1",), fit={"expand.rounds": 3})
    asked.write(tmp_path)
    assert read_settings(tmp_path) == asked


def test_the_command_line_says_what_is_wrong(
    cart_pole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*arguments: str) -> str:
        assert main(["compare", *arguments]) == 2
        return capsys.readouterr().err

    assert "no demonstrations; expected --demos" in said()
    assert "'--workers': Input should be greater than or equal to 1" in said(
        "--demos", str(cart_pole), "--workers", "0"
    )
    assert "none.py: No such file or directory; expected a reward file" in said(
        "--demos", str(cart_pole), "--methods", "grace", "--reward", "none.py"
    )
    assert "--reward none.py: no effect with the methods bc, gail; expected grace among the --methods" in said(
        "--demos", str(cart_pole), "--methods", "bc,gail", "--reward", "none.py"
    )
    for facts, wrong in (
        ((("states", "grid"),), "vectors; expected grids"),
        ((("parts", "{'goal': (3,)}"),), "no part 'goal'; expected it (shape (3,))"),
    ):
        path = upright(tmp_path, export_source(UPRIGHT, title="Up.", facts=facts))
        told = f"--reward {path}: demonstrations: {wrong}, as the reward reads"
        assert told in " ".join(said("--demos", str(cart_pole), "--methods", "grace", "--reward", path).split())
    assert "--resume with steps, out; expected none of them" in said(
        "--resume", str(tmp_path), "--steps", "5", "--out", "x"
    )
    assert "no compare.toml" in said("--resume", str(tmp_path))
