"""The front of a run: a program for each size, the figures of folds, and where they are shown."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import grace_irl
from grace_irl.cli import main
from grace_irl.demos.scramble import ScrambleMap
from grace_irl.demos.trajectory import Demonstrations, LabelRule
from grace_irl.errors import InputError
from grace_irl.runs.front import TOO_FEW, FrontRow, front_figures, front_of
from grace_irl.runs.run import Run, opened
from tests.synthesis.vector.test_goal_reaching import reaching


def demonstrations(rule: LabelRule, count: int = 8) -> Demonstrations:
    problem = reaching(0, rule, "record", count)
    return Demonstrations(
        replace(problem.metadata, label=rule), tuple(replace(item.demonstration, split=None) for item in problem.items)
    )


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run on rule `all`, in which folds choose among sums of terms."""
    out = tmp_path_factory.mktemp("front") / "run"
    return grace_irl.fit(demonstrations("all"), out=out, held_out=0.0, generations=1)


def test_the_front_has_a_row_for_each_size(sums: Run) -> None:
    rows = sums.front_rows
    assert len(rows) > 3
    words = [int(row.words.split()[0]) for row in rows if row.words]
    assert len({*words}) == len(words)
    assert [row.size for row in rows] == sorted(row.size for row in rows)
    assert [row.best for row in rows].count(True) == 1
    best = next(row for row in rows if row.best)
    assert best.program == sums.best.program.id
    assert best.size == sums.best.program.size
    assert all((row.auc is not None and 0.0 <= row.auc <= 1.0) == bool(row.words) for row in rows)
    assert min(row.worse for row in rows if row.worse is not None) == 0.0
    assert max(row.score for row in rows if row.words) > best.score  # a larger program fits better, and is not chosen


def test_the_front_is_kept_with_the_run(sums: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(sums.folder) as (store, _):
        assert front_of(store) == sums.front_rows
    assert main(["show", str(sums.folder)]) == 0
    assert "front: sizes in nested folds" in capsys.readouterr().out
    assert main(["show", str(sums.folder), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out.strip().splitlines()[-1])["front"]
    assert [row["program"] for row in shown] == [row.program for row in sums.front_rows]
    assert "front: sizes in nested folds" in sums.report_path.read_text()


def test_another_program_of_the_front_can_be_exported(sums: Run, tmp_path: Path) -> None:
    other = next(row for row in sums.front_rows if not row.best)
    assert main(["export", str(sums.folder), "--program", other.program, "--out", str(tmp_path / "r.py")]) == 0
    assert "class Reward" in (tmp_path / "r.py").read_text()


def test_damaged_figures_are_one_line(sums: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for damage in ("[{", '[{"words": 3}]', '[{"auc": "high"}]'):
        with closing(sqlite3.connect(sums.folder / "run.db")) as database:
            before = database.execute("SELECT value FROM meta WHERE key = 'sizes'").fetchone()[0]
            database.execute("UPDATE meta SET value = ? WHERE key = 'sizes'", (damage,))
            database.commit()
        try:
            assert main(["show", str(sums.folder)]) == 2
            assert capsys.readouterr().err.count("\n") == 1
            with opened(sums.folder) as (store, _), pytest.raises(InputError, match="'sizes' in its table meta"):
                front_of(store)
        finally:
            with closing(sqlite3.connect(sums.folder / "run.db")) as database:
                database.execute("UPDATE meta SET value = ? WHERE key = 'sizes'", (before,))
                database.commit()


def test_below_six_episodes_folds_choose_nothing(tmp_path: Path) -> None:
    run = grace_irl.fit(demonstrations("last", 5), out=tmp_path / "run", held_out=0.0, generations=0)
    assert TOO_FEW in run.notes
    assert all(row.auc is None for row in run.front_rows)
    assert "distance(achieved_goal, desired_goal) <=" in run.best.source


def test_a_predicate_is_found_with_few_episodes_held_out(tmp_path: Path) -> None:
    run = grace_irl.fit(demonstrations("last"), out=tmp_path / "run", generations=1)
    assert "distance(achieved_goal, desired_goal) <=" in run.best.source
    assert TOO_FEW not in run.notes
    assert run.best.held_out is not None
    assert run.best.held_out.auc > 0.98


@pytest.mark.slow
def test_a_resumed_run_has_the_same_front(sums: Run, tmp_path: Path) -> None:
    """Resume analyses the data again, and comes to the same figures."""
    out = tmp_path / "run"
    grace_irl.fit(demonstrations("all"), out=out, held_out=0.0, generations=0)
    again = grace_irl.fit(demonstrations("all"), resume=out, generations=1)
    assert again.front_rows == sums.front_rows


def goals(tasks: int = 1, scramble: int | None = None) -> Demonstrations:
    """Vectors with names, in one or two tasks, perhaps scrambled."""
    items = []
    for task in range(tasks):
        problem = reaching(task, "last", "vector")
        items += [replace(item.demonstration, split=None, task=f"task {task}") for item in problem.items]
    found = Demonstrations(replace(problem.metadata, label="last"), tuple(items))
    if scramble is None:
        return found
    drawn = ScrambleMap.draw(scramble, items[0].trajectory)
    return replace(found, metadata=replace(found.metadata, fields=()), items=tuple(map(drawn.apply, items)))


def test_without_names_the_places_are_found_all_the_same(tmp_path: Path) -> None:
    run = grace_irl.fit(goals(), out=tmp_path / "run", held_out=0.0, generations=1, field_names=False)
    assert "desired_goal" not in run.best.source
    assert run.best.train.separated
    assert "distance(x0, x1, x2, x3) <=" in run.best.source


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_scrambled_vectors_have_a_reward_that_tells_most_states_apart(seed: int, tmp_path: Path) -> None:
    """Scrambling permutes and rescales the components, so differences do not converge, and no place is found."""
    run = grace_irl.fit(goals(scramble=seed), out=tmp_path / "run", held_out=0.0, generations=1)
    assert run.best.train.auc > 0.95
    assert not run.best.train.separated


def test_several_tasks_are_one_predicate(tmp_path: Path) -> None:
    run = grace_irl.fit(goals(2), out=tmp_path / "run", held_out=0.0, generations=1)
    assert "distance(achieved_goal, desired_goal) <= 0.1" in run.best.source
    assert len(run.best.separation.tasks) == 2


def test_a_replayed_run_has_the_same_predicate_and_no_folds(tmp_path: Path) -> None:
    first = grace_irl.fit(goals(), out=tmp_path / "run", held_out=0.0, generations=1)
    again = grace_irl.fit(goals(), out=tmp_path / "again", replay=tmp_path / "run")
    assert again.best.program.id == first.best.program.id
    assert all(row.auc is None for row in again.front_rows)


def test_the_best_program_need_not_score_higher_than_smaller_ones() -> None:
    rows = [FrontRow(name, size, "", 0.5, None, None, None, name == "b") for name, size in (("a", 9), ("b", 12))]
    found = front_figures(rows)
    assert [row[0] for row in found.rows] == ["a", "b *"]
    assert found.title == "front: the best (*), and those that score higher than all smaller ones"
