"""The words of progress lines about jobs on other machines."""

from __future__ import annotations

from pathlib import Path

from grace_irl.cli.progress import FitProgress, Stand
from grace_irl.runs.engine import Live
from grace_irl.testing.executors import TASKS, until
from grace_irl.work import Job, Workplace


def test_this_machine_says_nothing() -> None:
    assert Workplace().at_work() == ""


def test_jobs_in_a_folder_are_counted_until_they_end(tmp_path: Path) -> None:
    place = Workplace.of(jobs=tmp_path / "jobs")
    assert place.at_work() == "0 jobs"
    with place.executor() as executor:
        for _ in range(2):
            executor.submit(Job(f"{TASKS}:burn", {"seconds": 1.0}))
        until(lambda: place.at_work() == "2 jobs")
        with place.executor() as other:
            other.submit(Job(f"{TASKS}:burn", {"seconds": 1.0}))
            until(lambda: place.at_work() == "3 jobs")
        until(lambda: place.at_work() == "2 jobs")
    until(lambda: place.at_work() == "0 jobs")


def test_services_are_no_jobs(tmp_path: Path) -> None:
    place = Workplace.of(jobs=tmp_path / "jobs")
    with place.executor(services={"here": lambda: place.at_work()}) as executor:
        assert executor.submit(Job("here", {})).result() == "0 jobs"


def test_a_progress_line_shows_them_where_there_is_room() -> None:
    shown = FitProgress(lambda: "2 nodes, 3 jobs")
    assert shown.logged().endswith("2 nodes, 3 jobs")
    stand = Stand(2, 5, 10.0, 40, "held out 0.9", "0.9", Live())
    shown.show(stand)
    assert shown.logged().endswith("2 nodes, 3 jobs")
    assert "2 nodes, 3 jobs" in shown.live(120)
    assert "2 nodes" not in shown.live(40)
