"""GRACE as a method: the form in which its reward reaches a learner."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

pytest.importorskip("stable_baselines3", reason="the extra rl is not installed: pip install 'grace-irl[rl]'")
pytest.importorskip("minigrid", reason="the extra rl is not installed: pip install 'grace-irl[rl]'")

from grace_irl.cli import main
from grace_irl.compare.comparison import _checked, resume, start
from grace_irl.compare.contest import Contest
from grace_irl.compare.fitted import ProgramReward
from grace_irl.compare.settings import Settings, comparison_of
from grace_irl.errors import GraceError, InputError
from grace_irl.methods.registry import METHODS
from grace_irl.runs.auditing import stored_audit
from grace_irl.runs.config import resolve
from grace_irl.runs.run import opened
from tests.methods.test_entry_point import Model
from tests.methods.test_toy import TOYS
from tests.propose.client.server import ChatServer

SHIPPED = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"
FLAGS = {
    "data.demos": (str(SHIPPED),),
    "data.held_out": 0.0,
    "search.population": 4,
    "search.generations": 1,
    "expand.trust": True,
}
SHORT: dict[str, object] = {"methods": ("grace",), "steps": 8, "looks": 1, "look_episodes": 1}


def test_another_method_takes_the_place_of_graces_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even one that needs no demonstrations: the comparison has some. The tables say so."""
    monkeypatch.setitem(METHODS, "toy", TOYS.METHOD)
    with ChatServer(answer=Model()) as server:
        own = {"method": "toy", "toy.tries": 2, "model.url": server.url, "search.samples": 1}
        fit = resolve(flags={key: value for key, value in FLAGS.items() if key[:7] != "search."} | own)
        contest = Contest.of(Settings(comparison_of({"methods": ("grace",), "steps": 8}), fit))
        assert "grace searches by method 'toy'" in _checked(contest)
        trained = contest.method("grace", tmp_path / "fit").train(contest.problem(0), 0)
    assert isinstance(trained.reward, ProgramReward)
    assert " toy, seed 0, proposer llm" in trained.reward.file.source


def test_a_server_is_tried_once_before_a_comparison_and_not_on_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grace_irl.compare.comparison.run_jobs", lambda *_: None)
    methods, notes = ("grace", "eureka", "bc"), list[str]()
    with ChatServer(answer=Model()) as server:
        given = {"model.url": server.url, "model.patience": 0.0}
        asked = Settings(comparison_of({**SHORT, "methods": methods}), resolve(flags={**FLAGS, **given}))
        start(asked, tmp_path / "out", note=notes.append)
    assert len([line for line in notes if line.startswith("the server is tried with a short prompt")]) == 1
    with pytest.raises(InputError, match="no server at"):
        start(asked, tmp_path / "other")
    assert not (tmp_path / "other").exists()
    resume(tmp_path / "out")
    with pytest.raises(InputError, match="no server at"):  # a method that joins is checked
        resume(tmp_path / "out", methods=(*methods, "revolve"))
    resume(tmp_path / "out")


def test_the_policies_of_an_expansion_have_the_device_of_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = Mock(side_effect=GraceError("no training here"))
    monkeypatch.setattr("grace_irl.runs.expand.expansion.PpoLearner", learner)
    config = resolve(flags={**FLAGS, "expand.rounds": 1})
    contest = Contest.of(Settings(comparison_of({**SHORT, "device": "cpu"}), config))
    with pytest.raises(GraceError, match="no training here"):
        contest.method("grace", tmp_path / "fit").train(contest.problem(0), 0)
    assert learner.call_args.kwargs["device"] == "cpu"


def test_warnings_about_the_reward_of_a_search_are_notes_of_its_job(tmp_path: Path) -> None:
    config = resolve(flags={**FLAGS, "data.held_out": 0.02})
    contest = Contest.of(Settings(comparison_of(SHORT), config))
    trained = contest.method("grace", tmp_path / "fit").train(contest.problem(0), 0)
    with opened(tmp_path / "fit") as (store, _):
        audit = stored_audit(store)
    assert audit is not None
    assert "few-episodes" in {each.code for each in audit.warnings}
    assert trained.notes == (f"warnings about the reward: {', '.join(each.code for each in audit.warnings)}",)


def test_a_comparison_needs_demonstrations_whatever_the_method(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(METHODS, "toy", TOYS.METHOD)
    assert main(["compare", "--set", "method=toy", "--methods", "grace"]) == 2
    assert capsys.readouterr().err.startswith("grace-irl: no demonstrations; expected --demos PATH")


@pytest.mark.parametrize(
    ("task", "name", "form"),
    [("", "map-elites", "soft"), ("", "forge", "soft"), ("acrobot", "forge", "auto"), ("acrobot", "grace", "soft")],
)
def test_a_stated_form_is_that_of_all_rewards_that_demonstrations_judge(task: str, name: str, form: str) -> None:
    asked = Settings(comparison_of({"methods": (name,), "task": task}), resolve(flags={"expand.form": "soft"}))
    assert asked.search(name).expand.form == form


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "form"),
    [
        ({"search.reshape": 2}, "guided"),
        ({"search.reshape": 2, "expand.form": "raw"}, "raw"),
    ],
    ids=["reshaped", "as stated"],
)
def test_a_reshaped_reward_is_guided_unless_a_form_is_stated(
    flags: dict[str, object], form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from grace_irl.rl import learning

    paid: list[str] = []
    pay = learning.ProgramPay

    def noted(reward: object, form: str, weak: bool, **limits: Any) -> object:
        paid.append(form)
        return pay(reward, form, weak, **limits)  # type: ignore[arg-type]

    monkeypatch.setattr(learning, "ProgramPay", noted)
    settings = Settings(comparison_of(SHORT), resolve(flags={**FLAGS, **flags}))
    contest = Contest.of(settings)
    trained = contest.method("grace", tmp_path / "fit").train(contest.problem(0), 0)
    assert isinstance(trained.reward, ProgramReward)
    assert (trained.reward.form, paid) == (form, [form])
