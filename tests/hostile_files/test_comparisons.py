"""Folders of comparisons: what they name is named again, unless this user made them on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")

from grace_irl.cli import main
from grace_irl.compare import comparison as comparisons
from grace_irl.compare.comparison import Compared
from grace_irl.compare.folder import ComparisonFolder, JobResult, read_result, write_result
from grace_irl.compare.job import run_job
from grace_irl.compare.settings import Settings, comparison_of, digest_of, read_settings
from grace_irl.demos import save
from grace_irl.demos.label_rule import RuleChoice
from grace_irl.demos.memory import limited
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.runs.config import resolve
from grace_irl.runs.folder import create
from grace_irl.runs.loading import new_labelling
from grace_irl.runs.proposers import settled
from tests.hostile_files.traps import line, loaded, stranger, trap
from tests.propose.client.server import ChatServer
from tests.rl.cart_pole import experts, play

Capture = pytest.CaptureFixture[str]
HEAVY = f"{Path(__file__).parents[1] / 'compare' / 'rewards.py'}:heavy"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cart-pole") / "set.parquet"
    known, negative = experts(2), play(100, "negative")
    save(Demonstrations(known.metadata, (*known, negative)), path)
    return path


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings with which work would begin."""
    found: list[Settings] = []

    def work(folder: Path, contest: object, *more: object) -> Compared:
        found.append(contest.settings)  # type: ignore[attr-defined]
        return Compared(folder, (JobResult("bc", 0),), (), (), RuleChoice("all", "somebody said so"))

    monkeypatch.setattr(comparisons, "_work", work)
    return found


def written(folder: Path, data: Path, fit: dict[str, object] | None = None, **changes: object) -> Path:
    """A comparison that somebody began."""
    values = {"methods": ("bc",), "seeds": 1, "steps": 64, "data": digest_of(loaded(data)), **changes}
    flags = {"data.demos": (str(data),), "data.held_out": 0.0, **(fit or {})}
    folder.mkdir(exist_ok=True)
    Settings(comparison_of(values), resolve(flags=flags)).write(folder)
    return folder


def test_ones_own_comparison_goes_on(data: Path, tmp_path: Path, worked: list[Settings]) -> None:
    folder = written(tmp_path / "c", data, {"expand.trust": True}, transfer=(HEAVY,))
    assert main(["compare", "--resume", str(folder)]) == 0
    assert (worked[0].fit.expand.trust, worked[0].comparison.transfer) == (True, (HEAVY,))
    folder.rename(tmp_path / "moved")
    assert main(["compare", "--resume", str(tmp_path / "moved")]) == 0


def test_a_strangers_comparison_runs_no_code_and_is_not_trusted(
    data: Path, tmp_path: Path, worked: list[Settings], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    evil = trap(tmp_path)
    fit = {"expand.trust": True, "sandbox.allow_weak": True, "model.url": "http://192.0.2.1"}
    folder = written(tmp_path / "c", data, fit, env=evil.name, transfer=(HEAVY, evil.name))
    stranger(monkeypatch, tmp_path)
    resume = ["compare", "--resume", str(folder)]
    assert main(resume) == 2
    assert f"expected on the command line: --env {evil.name}, --transfer-env {HEAVY}, --tr" in line(capsys)
    assert main([*resume, "--env", HEAVY, "--transfer-env", evil.name]) == 2
    assert f"expected on the command line: --transfer-env {HEAVY}" in line(capsys)
    assert not evil.sprung
    folder = written(tmp_path / "c", data, fit, env=HEAVY)
    stranger(monkeypatch, tmp_path)
    assert main([*resume, "--env", HEAVY]) == 2
    assert f"--demos {data}" in line(capsys)
    words = ["--env", HEAVY, "--demos", str(data), "--set", "model.url=http://127.0.0.1:9"]
    assert main([*resume, *words]) == 0
    fitted = worked[0].fit
    assert (fitted.expand.trust, fitted.sandbox.allow_weak) == (False, False)
    assert fitted.model.url == "http://127.0.0.1:9"
    assert main(resume) == 0  # from then on it is this user's


def test_what_was_changed_in_ones_own_comparison_does_not_count(
    data: Path, tmp_path: Path, worked: list[Settings], capsys: Capture
) -> None:
    evil = trap(tmp_path)
    folder = written(tmp_path / "c", data)
    path = folder / "compare.toml"
    path.write_text(path.read_text().replace('env = ""', f'env = "{evil.name}"'))
    assert main(["compare", "--resume", str(folder)]) == 2
    assert f"--env {evil.name}" in line(capsys)
    path.write_text(path.read_text().replace(f'env = "{evil.name}"', 'env = ""'))
    fit = folder / "fit.toml"
    fit.write_text(fit.read_text().replace("trust = false", "trust = true"))
    assert main(["compare", "--resume", str(folder)]) == 0
    assert worked[0].fit.expand.trust is False
    assert not evil.sprung


def test_a_comparison_says_which_server_gets_the_key(
    data: Path, tmp_path: Path, worked: list[Settings], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-users-own-key")
    folder = written(tmp_path / "c", data, {"model.url": "http://127.0.0.1:9"}, methods=("grace",))
    assert main(["compare", "--resume", str(folder)]) == 0
    assert line(capsys) == "prompts go to http://127.0.0.1:9, with the key in OPENAI_API_KEY"


def test_another_comparison_is_refused(data: Path, tmp_path: Path, worked: list[Settings], capsys: Capture) -> None:
    folder = written(tmp_path / "c", data)
    for words in (["--env", "Pendulum-v1"], ["--set", "search.population=4"], ["--steps", "5"]):
        assert main(["compare", "--resume", str(folder), *words]) == 2
        assert "a comparison goes on with the settings that it began with" in line(capsys)
    assert not worked


def test_trust_may_be_given_and_withdrawn(data: Path, tmp_path: Path, worked: list[Settings]) -> None:
    folder = written(tmp_path / "c", data, {"expand.trust": True})
    for flag in ("--no-trust-reward", "--trust-reward"):
        assert main(["compare", "--resume", str(folder), flag]) == 0
    assert [each.fit.expand.trust for each in worked] == [False, True]


@pytest.mark.slow
def test_code_in_the_current_directory_is_not_the_jobs(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody's folder, in which the user stands, may hold modules of any name."""
    mark = tmp_path / "mark"
    for name in ("tomllib.py", "grace_irl.py", "torch.py", "json.py"):
        (tmp_path / name).write_text(f"open({str(mark)!r}, 'w')\nraise ImportError")
    folder = written(tmp_path / "c", data)
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "--resume", "c", "--methods", "bc"]) == 0
    assert not mark.exists()
    assert (folder / "jobs" / "bc-0" / "result.json").is_file()


@pytest.mark.slow
def test_a_strangers_comparison_expands_without_its_trust(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """A whole round of expansion, in the process of a job."""
    small = {"search.population": 2, "search.elite": 1, "search.generations": 1, "stop.max_calls": 4}
    search_anyway = {"expand.alike": 0.5, "expand.enough": 1.0}  # whatever the rollouts look like
    fit = {"expand.trust": True, "expand.rounds": 1, "expand.steps": 64, "expand.episodes": 2, **small, **search_anyway}
    tiny = {"steps": 64, "episodes": 2, "looks": 1, "look_episodes": 1}
    folder = written(tmp_path / "c", data, fit, methods=("grace",), **tiny)
    stranger(monkeypatch, tmp_path)
    resume = ["compare", "--resume", str(folder)]
    assert main(resume) == 2
    assert f"expected on the command line: --demos {data}" in line(capsys)
    assert not (folder / "jobs").exists()
    assert main([*resume, "--demos", str(data)]) == 0
    job = folder / "jobs" / "grace-0"
    found = read_result(job / "result.json")
    assert found is not None
    assert (found.failure, len(found.outcomes)) == ("", 1)
    for number in (0, 1):
        expand = resolve(job / "fit" / "rounds" / str(number) / "run" / "config.toml").expand
        assert (expand.trust, expand.rounds) == (False, 1)
    assert resolve(folder / "fit.toml").expand.trust is False


@pytest.mark.slow
def test_the_limit_of_memory_holds_for_jobs(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The comparison has read the data by then, and its jobs read them again."""
    folder = written(tmp_path / "c", data)
    assert main(["compare", "--resume", str(folder), "--max-memory", "1K"]) == 2
    assert "needs" in line(capsys)
    whole = comparisons.run_jobs

    def run_jobs(*arguments: Any) -> None:
        with limited("1K"):
            whole(*arguments)

    monkeypatch.setattr(comparisons, "run_jobs", run_jobs)
    assert main(["compare", "--resume", str(folder)]) in (0, 1)
    found = read_result(folder / "jobs" / "bc-0" / "result.json")
    assert found is not None
    assert found.failure.startswith(f"{data}: ")
    assert "expected at most 1 KiB in all" in found.failure
    assert "Traceback" not in (folder / "jobs" / "bc-0" / "log.txt").read_text()


def test_a_job_does_no_other_settings_than_those_that_the_user_answers_for(data: Path, tmp_path: Path) -> None:
    folder = written(tmp_path / "c", data)
    digest = read_settings(folder).digest()
    path = folder / "compare.toml"
    path.write_text(path.read_text().replace('env = ""', f'env = "{trap(tmp_path).name}"'))
    assert "its settings changed while it was worked on" in run_job(folder, "bc", 0, 1, digest).failure
    assert not (tmp_path / "mark").exists()


def test_mirrors_of_flags_in_the_environment_change_no_comparison(
    data: Path, tmp_path: Path, worked: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path / "c", data)
    monkeypatch.setenv("GRACE_IRL_CONFIG", str(tmp_path / "absent.toml"))
    monkeypatch.setenv("GRACE_IRL_ALLOW_WEAK_SANDBOX", "1")
    monkeypatch.setenv("GRACE_IRL_LABEL", "last")
    assert main(["compare", "--resume", str(folder)]) == 0
    assert worked


def test_results_of_other_jobs_are_not_read(data: Path, tmp_path: Path) -> None:
    place = ComparisonFolder(written(tmp_path / "c", data)).job("bc", 0)
    write_result(place.result, JobResult("bc", 7))
    assert read_result(place.result) is None
    write_result(place.result, JobResult("bc", 0))
    assert read_result(place.result) == JobResult("bc", 0)


def test_a_reward_lies_in_the_comparison(data: Path, tmp_path: Path, worked: list[Settings]) -> None:
    """Whatever path the folder says: it has a copy of its own."""
    folder = written(tmp_path / "c", data, reward="/etc/passwd", methods=("grace",))
    (folder / "reward.py").write_text("class Reward:\n    def reward_fn(self, state):\n        return 0.0\n")
    assert main(["compare", "--resume", str(folder)]) == 0
    assert worked[0].comparison.reward == str(folder / "reward.py")


def test_goal_states_are_asked_for_at_no_server_that_a_folder_names(
    data: Path, tmp_path: Path, capsys: Capture
) -> None:
    """The run that knows goal states has settings of its own, which say nothing."""
    folder = written(tmp_path / "c", data, {"data.label": "goal"})
    with ChatServer() as server:
        flags = {"data.label": "goal", "data.demos": (str(data),), "data.held_out": 0.0, "model.url": server.url}
        config = settled(resolve(flags=flags))
        create(folder / "goals", config, new_labelling(config).problem())
        assert main(["compare", "--resume", str(folder)]) == 2
        assert "no goal states are marked" in line(capsys)
        assert server.authorizations == []
