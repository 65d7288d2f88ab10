"""A run in Python: what a user looks at after `fit`."""

from dataclasses import replace

import pytest

import grace_irl


def test_a_report_without_files(experts, negatives):
    """Open the report of a fit of arrays, which lie in no file."""
    run = grace_irl.fit(experts=experts, negatives=negatives, out="run")
    page = run.report_path.read_text()
    assert page.lstrip().lower().startswith("<!doctype html")
    assert run.best.program.id[:8] in page


def test_candidates_as_a_frame(recovered):
    """Sort all programs of a run in a pandas table."""
    pandas = pytest.importorskip("pandas")
    table = recovered.candidates
    assert isinstance(table, pandas.DataFrame)
    assert len(table) >= recovered.programs
    table = table.reset_index()  # the ids may be the index
    assert any(table[name].astype(str).str.startswith(recovered.best.program.id).any() for name in table.columns)
    assert "fitness" in table.columns or "score" in table.columns


def test_the_front_as_a_frame(recovered):
    """Plot score against size of the best programs of each size."""
    pandas = pytest.importorskip("pandas")
    table = recovered.front
    assert isinstance(table, pandas.DataFrame)
    assert {"program", "size", "score"} <= set(table.columns)
    assert table["size"].is_monotonic_increasing
    assert table["best"].sum() == 1


def test_a_run_and_a_reward_print_the_same_every_time(recovered):
    """Print a run and its reward: one line each, without seconds and addresses."""
    path = recovered.reward_path
    assert repr(recovered) == f"Run('{path.parent}', program='{recovered.best.program.id}', score=0)"
    assert repr(grace_irl.load_reward(path)) == f"RewardFile('{path}', trust=False)"
    assert replace(recovered, seconds=7.0)._repr_html_() == replace(recovered, seconds=9.0)._repr_html_()


def test_a_run_and_a_reward_in_a_notebook(recovered):
    """Let a notebook display a run, and then its reward."""
    shown = recovered._repr_html_()
    assert "held out" in shown
    assert "reward_fn" in grace_irl.load_reward(recovered.reward_path)._repr_html_()
    assert "<script" not in shown


def test_a_run_is_of_use_in_another_folder(here, experts, negatives, monkeypatch):
    """Go to another folder, and use a run that was named by a relative path."""
    run = grace_irl.fit(experts=experts, negatives=negatives, out="run", sets="stop.max_calls=20")
    assert repr(run).startswith("Run('run', ")
    (here / "other").mkdir()
    monkeypatch.chdir(here / "other")
    assert run.folder == here / "run"
    assert len(run.candidates)
    assert grace_irl.load_reward(run.reward_path).rewards(experts[:1])
    assert repr(run).startswith(f"Run('{here / 'run'}', ")
