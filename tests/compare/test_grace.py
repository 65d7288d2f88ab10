"""GRACE as a method: the form in which its reward reaches a learner."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="the extra rl is not installed: pip install 'grace-irl[rl]'")
pytest.importorskip("minigrid", reason="the extra rl is not installed: pip install 'grace-irl[rl]'")

from grace_irl.compare.contest import Contest
from grace_irl.compare.grace import ProgramReward
from grace_irl.compare.settings import Settings, comparison_of
from grace_irl.runs.config import resolve

SHIPPED = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"
FLAGS = {
    "data.demos": (str(SHIPPED),),
    "data.held_out": 0.0,
    "search.population": 4,
    "search.generations": 1,
    "expand.trust": True,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "form"),
    [
        ({"search.reshape": 2}, "progress"),
        ({"search.reshape": 2, "expand.form": "raw"}, "raw"),
    ],
    ids=["reshaped", "as stated"],
)
def test_a_reshaped_reward_pays_for_progress_unless_a_form_is_stated(
    flags: dict[str, object], form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from grace_irl.rl import learning

    paid: list[str] = []
    pay = learning.ProgramPay

    def noted(reward: object, form: str, weak: bool) -> object:
        paid.append(form)
        return pay(reward, form, weak)  # type: ignore[arg-type]

    monkeypatch.setattr(learning, "ProgramPay", noted)
    settings = Settings(comparison_of({"methods": ("grace",), "steps": 8}), resolve(flags={**FLAGS, **flags}))
    contest = Contest.of(settings)
    trained = contest.method("grace", tmp_path / "fit").train(contest.problem(0), 0)
    assert isinstance(trained.reward, ProgramReward)
    assert (trained.reward.form, paid) == (form, [form])
