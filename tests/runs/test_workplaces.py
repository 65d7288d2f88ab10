"""The same run on this machine, with workers of a shared folder, and on a Ray cluster: same reward, wherever it ran."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.errors import InputError
from grace_irl.runs import parts
from grace_irl.runs.expand.expansion import rounds_of
from grace_irl.runs.run import opened
from grace_irl.work import Workplace
from tests.fakes.data import vector_set
from tests.tasks.poles import TASK as POLE
from tests.work.test_folder import until, worker

ROOT = Path(__file__).parents[2]
DEMOS = str(ROOT / "datasets" / "babyai-go-to-obj")


def fitted(out: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    """Fit with fixed requests in flight, and return the reward file."""
    assert main(["fit", "--demos", DEMOS, "--out", str(out), "--lag", "4", "--json", *more]) == 0
    printed = capsys.readouterr()
    assert ("Ray cluster with 2 nodes and 2 cores" in printed.err) == bool(more)
    found: dict[str, Any] = json.loads(printed.out.strip().splitlines()[-1])
    return Path(found["reward_path"]).read_text()


@pytest.fixture(scope="module")
def on_ray() -> Iterator[list[str]]:
    """The options that send a command's work to a cluster of two nodes."""
    pytest.importorskip("ray", reason="needs Ray: pip install '.[ray]'")
    from tests.work.cluster import started

    with started() as cluster:
        yield ["--executor", "ray", "--ray-address", cluster.address]


@pytest.mark.slow
def test_a_cluster_recovers_the_reward_of_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], on_ray: list[str]
) -> None:
    here = fitted(tmp_path / "here", capsys)
    assert fitted(tmp_path / "there", capsys, *on_ray) == here
    assert Workplace.of("ray", address=on_ray[-1]).at_work() == "2 nodes, 0 jobs"


@pytest.mark.slow
@pytest.mark.parametrize(
    "search",
    [
        ["--population", "4", "--elite", "2", "--generations", "1"],
        ["--method", "map-elites", "--programs", "10", "--first-programs", "4", "--niches", "2"],
    ],
    ids=["grace", "map-elites"],
)
def test_a_cluster_keeps_the_elites_of_this_machine(
    search: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], on_ray: list[str]
) -> None:
    """The strict runs of elites are on the nodes, too."""
    save(vector_set(noise=0.05, actions=True), tmp_path / "set.parquet")
    command = ["fit", "--demos", str(tmp_path / "set.parquet"), "--proposer", "drafts", "--lag", "4", *search]
    command += ["--set", "stop.target_accuracy=none", "--set", "stop.plateau=none"]
    fates = []
    for place, more in (("here", []), ("there", on_ray)):
        assert main([*command, "--out", str(tmp_path / place), *more]) == 0
        capsys.readouterr()
        assert main(["show", str(tmp_path / place), "--json"]) == 0
        fates.append(json.loads(capsys.readouterr().out.splitlines()[-1])["fates"])
    assert len({fate["verdict"] for fate in fates[0]}) > 1
    assert fates[1] == fates[0]
    assert scores(tmp_path / "there") == scores(tmp_path / "here")


@pytest.mark.slow
def test_a_cluster_tests_the_result_outside_the_sample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], on_ray: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART", 4000)
    save(vector_set(80, 80, 16, noise=0.05), tmp_path / "set.parquet")
    found = []
    for place, more in (("here", []), ("there", on_ray)):
        command = ["fit", "--demos", str(tmp_path / "set.parquet"), "--sample", "40K", "--generations", "1"]
        assert main([*command, "--lag", "4", "--out", str(tmp_path / place), "--json", *more]) == 0
        found.append(json.loads(capsys.readouterr().out.strip().splitlines()[-1])["rest"])
    assert found[0]["trajectories"] > 100
    assert found[1] == found[0]


@pytest.mark.slow
def test_an_expansion_on_a_cluster_has_the_rounds_of_this_machine(tmp_path: Path, on_ray: list[str]) -> None:
    pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")
    demos = tmp_path / "demos"
    for role, seed in (("expert", "0"), ("negative", "50")):
        collected = ["collect", "--env", "CartPole-v1", "--policy", "random", "--role", role, "--episodes", "8"]
        assert main([*collected, "--seed", seed, "--out", str(demos / f"{role}.parquet")]) == 0
    expanded = [
        "fit",
        "--demos",
        str(demos),
        "--label",
        "all",
        "--lag",
        "2",
        "--generations",
        "1",
        "--trust-reward",
        "--expand",
        "1",
    ]
    expanded += ["--env-steps", "256", "--rollouts", "4", "--online-reshape", "0"]
    assert main([*expanded, "--out", str(tmp_path / "here")]) == 0
    assert main([*expanded, "--out", str(tmp_path / "there"), *on_ray]) == 0
    here, there = (rounds_of(tmp_path / place) for place in ("here", "there"))
    assert here == there
    assert (tmp_path / "here" / "reward.py").read_text() == (tmp_path / "there" / "reward.py").read_text()


@pytest.mark.slow
def test_trainings_in_a_shared_folder_give_the_scores_of_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")
    task = tmp_path / "pole.toml"
    task.write_text(POLE)
    search = ["fit", "--method", "random", "--task", str(task), "--programs", "3"]
    assert main([*search, "--out", str(tmp_path / "here")]) == 0
    with worker(tmp_path / "jobs", "--workers", "2", "--wait", "600"):
        assert main([*search, "--out", str(tmp_path / "there"), "--jobs", str(tmp_path / "jobs")]) == 0
    assert scores(tmp_path / "there") == scores(tmp_path / "here")
    assert list((tmp_path / "jobs").iterdir()) == []
    assert f"jobs wait for workers: grace-irl work {tmp_path / 'jobs'}" in capsys.readouterr().err
    assert (tmp_path / "there" / "reward.py").read_text() == (tmp_path / "here" / "reward.py").read_text()


@pytest.mark.slow
def test_a_search_whose_trainings_lie_in_a_shared_folder_ends_at_sigterm_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")
    (tmp_path / "pole.toml").write_text(POLE)
    search = ["fit", "--method", "rf-agent", "--task", str(tmp_path / "pole.toml"), "--programs", "4"]
    search += ["--first-programs", "2", "--actions", "1,1,1,0,0"]
    assert main([*search, "--out", str(tmp_path / "here")]) == 0
    there, jobs = tmp_path / "there", tmp_path / "jobs"
    with worker(jobs, "--workers", "1", "--wait", "600"):
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "cli.py"), *search, "--out", str(there), "--jobs", str(jobs)],
            stderr=subprocess.PIPE,
            text=True,
        )
        until(lambda: (there / "run.db").is_file() and bool(scores(there)) and any(jobs.glob("*/*/claim")))
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 143, said
        assert f"--resume {there}" in said
        assert "Traceback" not in said
        assert 0 < len(scores(there)) < len(scores(tmp_path / "here"))
        assert list(jobs.iterdir()) == []
        assert main(["fit", "--resume", str(there), "--jobs", str(jobs)]) == 0, capsys.readouterr().err
    assert scores(there) == scores(tmp_path / "here")
    assert (there / "reward.py").read_text() == (tmp_path / "here" / "reward.py").read_text()


def scores(folder: Path) -> list[tuple[str, float]]:
    """The programs of a run with their scores, in order."""
    with opened(folder) as (store, _):
        return [(name, each.evaluation.score) for name, each in store.records().items()]


@pytest.mark.slow
def test_a_comparison_elsewhere_gives_the_table_of_this_machine(tmp_path: Path, on_ray: list[str]) -> None:
    """With workers of a shared folder, and on a cluster."""
    pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")
    demos = tmp_path / "experts.parquet"
    collected = ["collect", "--env", "CartPole-v1", "--policy", "random", "--role", "expert", "--episodes", "4"]
    assert main([*collected, "--out", str(demos)]) == 0
    compared = ["compare", "--demos", str(demos), "--methods", "bc", "--seeds", "2", "--tune", "bc.updates=5"]
    compared += ["--episodes", "2"]
    assert main([*compared, "--out", str(tmp_path / "here")]) == 0
    with worker(tmp_path / "jobs", "--workers", "2", "--wait", "600"):
        assert main([*compared, "--out", str(tmp_path / "there"), "--jobs", str(tmp_path / "jobs")]) == 0
    assert main([*compared, "--out", str(tmp_path / "cluster"), *on_ray]) == 0
    assert results(tmp_path / "there") == results(tmp_path / "cluster") == results(tmp_path / "here")


def results(folder: Path) -> list[dict[str, str]]:
    """The results of a comparison, without seconds."""
    with (folder / "results.csv").open() as file:
        return [{key: cell for key, cell in row.items() if "seconds" not in key} for row in csv.DictReader(file)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("local", Path("x"), None), "--jobs with --executor local; expected it with --executor folder"),
        (("folder", None, None), "--executor folder without --jobs; expected --jobs DIR"),
        (("folder", Path("x"), "auto"), "--ray-address with --executor folder; expected it with --executor ray"),
        ((None, Path("x"), "auto"), "--jobs and --ray-address; expected one of them"),
        (("moon", None, None), "--executor 'moon'; expected local, folder or ray"),
    ],
)
def test_options_that_do_not_fit(given: tuple[Any, Any, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        Workplace.of(*given)
    assert said in str(caught.value)


def test_one_option_says_the_place() -> None:
    assert Workplace.of() == Workplace()
    assert Workplace.of(jobs=Path("/shared")).kind == "folder"
    assert Workplace.of(address="head:6379") == Workplace("ray", None, "head:6379")
