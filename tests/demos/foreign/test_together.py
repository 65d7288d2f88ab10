"""Tables of others with the commands that a user gives them next: select, scramble, score, compare, expand, resume."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grace_irl
from grace_irl.cli import main
from grace_irl.demos import load
from grace_irl.demos.foreign.columns import Columns
from grace_irl.demos.trajectory import Role
from grace_irl.report.write import UNSHOWN

FIELDS = ("position", "velocity", "angle", "angular_velocity")
ENVIRONMENT = "CartPole-v1"


def poles(seed: int, *, balanced: bool, episodes: int = 8) -> list[np.ndarray]:
    """States of CartPole `(12, 4)`: upright at the end, or fallen."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(episodes):
        start = random.uniform(-0.05, 0.05, 4)
        end = start * 0.1 if balanced else start + np.array([0.3, 0.5, 0.19, 0.9])
        found.append(start + np.linspace(0, 1, 12)[:, None] * (end - start) + random.normal(0, 1e-3, (12, 4)))
    return found


def log(path: Path, episodes: Sequence[np.ndarray], success: int, fields: Sequence[str] = FIELDS) -> Path:
    """A log as a recorder writes it: a clock and an outcome beside the state."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["episode", "time", *fields, "action", "success"])
        for number, episode in enumerate(episodes):
            for step, state in enumerate(episode):
                writer.writerow(
                    [number, 0.05 * step, *[state[FIELDS.index(name)] for name in fields], step % 2, success]
                )
    return path


@pytest.fixture
def logs(tmp_path: Path) -> tuple[str, str]:
    """Experts and negatives, whose names say nothing of that."""
    one = log(tmp_path / "monday.csv", poles(0, balanced=True), 1)
    two = log(tmp_path / "tuesday.csv", poles(1, balanced=False), 0)
    return str(one), str(two)


CHOSEN = ("--state-columns", ",".join(FIELDS), "--episode-column", "episode")


def test_logs_are_selected_and_scrambled_once_they_are_converted(logs: tuple[str, str], tmp_path: Path) -> None:
    converted = tmp_path / "sets"
    converted.mkdir()
    for path, role in zip(logs, ("expert", "negative"), strict=True):
        out = converted / f"{role}.parquet"
        assert main(["demos", "convert", path, str(out), "--role", role, "--fields", ",".join(FIELDS)]) == 0
    few = tmp_path / "few.parquet"
    assert main(["demos", "select", "--from", str(converted), "--role", "expert", "--out", str(few)]) == 0
    assert {item.role for item in load([few]).items} == {"expert"}
    scrambled = tmp_path / "scrambled"
    assert main(["demos", "scramble", str(converted), str(scrambled), "--seed", "3"]) == 0
    found = load([scrambled])
    counts = [sum(item.role == role for item in found.items) for role in roles()]
    assert counts == [8, 8]
    assert found.items[0].trajectory.states.shape == (12, 4)


def roles() -> tuple[Role, ...]:
    return ("expert", "negative")


def test_a_run_on_logs_is_resumed_scored_and_reported(
    logs: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    fitted = ["fit", "--experts", logs[0], "--negatives", logs[1], *CHOSEN, "--label", "last", "--out", str(out)]
    assert main([*fitted, "--max-calls", "2"]) == 0
    assert main(["fit", "--resume", str(out), "--max-calls", "40", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert found["train"]["accuracy"] == 1.0
    scored = ["score", found["reward_path"], "--experts", logs[0], "--negatives", logs[1], *CHOSEN, "--label", "last"]
    assert main([*scored, "--json"]) == 0
    assert json.loads(capsys.readouterr().out.strip().splitlines()[-1])["accuracy"] > 0.99
    turned = [log(tmp_path / f"turned-{Path(each).name}", episodes_of(each), 0, FIELDS[::-1]) for each in logs]
    other = ["score", found["reward_path"], "--experts", str(turned[0]), "--negatives", str(turned[1])]
    assert main([*other, *CHOSEN[2:], "--state-columns", ",".join(FIELDS[::-1]), "--label", "last", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.strip().splitlines()[-1])["accuracy"] > 0.99
    assert main(["report", str(out), "--demos", logs[0]]) == 0  # the experts alone: the user's word counts
    assert UNSHOWN in (out / "report.html").read_text()
    assert "some states of the run are not in --demos" in capsys.readouterr().err


def test_a_report_finds_states_whose_columns_stand_in_another_order(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    both, out = tmp_path / "both.csv", tmp_path / "run"
    rows = [
        [*state, number, role]
        for role, balanced in (("expert", True), ("negative", False))
        for number, states in enumerate(poles(2, balanced=balanced))
        for state in states
    ]
    table = pandas.DataFrame(rows, columns=[*FIELDS, "episode", "label"])
    table["episode"] += 100 * (table["label"] == "negative")
    table.to_csv(both, index=False)
    assert main(["fit", "--demos", str(both), "--label", "last", "--out", str(out), "--max-calls", "4"]) == 0
    both.unlink()
    turned = tmp_path / "turned.csv"
    table[[*table.columns[::-1]]].to_csv(turned, index=False)
    assert main(["report", str(out), "--demos", str(turned)]) == 0
    assert UNSHOWN not in (out / "report.html").read_text()
    table.rename(columns={"angle": "bend"}).to_csv(turned, index=False)
    assert main(["report", str(out), "--demos", str(turned)]) == 2


def episodes_of(path: str) -> list[np.ndarray]:
    """The states of a log, in the order of `FIELDS`."""
    return [item.trajectory.states for item in load((), experts=[path], columns=Columns(FIELDS, "episode"))]


def test_data_in_memory_are_given_again_to_a_resume(tmp_path: Path) -> None:
    """Of every shape that held the same numbers at the start."""
    experts, negatives = poles(0, balanced=True), poles(1, balanced=False)
    run = grace_irl.fit(experts=experts, negatives=negatives, label="last", out=tmp_path / "run", max_calls=2)
    again = grace_irl.fit(
        experts=np.stack(experts), negatives=np.stack(negatives), resume=run.folder, label=None, max_calls=4
    )
    assert again.folder == run.folder
    with pytest.raises(grace_irl.InputError, match="began with demonstrations in memory; expected them again"):
        grace_irl.fit(resume=run.folder, max_calls=6)
    with pytest.raises(grace_irl.InputError, match="expected the same"):
        grace_irl.fit(experts=experts[:-1], negatives=negatives, resume=run.folder, max_calls=6)


def test_a_reward_reads_columns_by_their_names_whatever_their_order(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")

    def frame(episodes: Sequence[np.ndarray], names: Sequence[str]) -> Any:
        whole = pandas.DataFrame(np.concatenate(episodes), columns=FIELDS)
        whole["episode"] = np.repeat(np.arange(len(episodes)), [len(each) for each in episodes])
        return whole[[*names, "episode"]]

    experts, negatives = poles(0, balanced=True), poles(1, balanced=False)
    run = grace_irl.fit(
        experts=frame(experts, FIELDS), negatives=frame(negatives, FIELDS[::-1]), label="last", out=tmp_path / "run"
    )
    reward = grace_irl.load_reward(run.reward_path)
    plain = reward.rewards(frame(experts, FIELDS))
    assert run.best.train.accuracy == 1.0
    assert reward.fields == FIELDS
    turned = reward.rewards(frame(experts, FIELDS[::-1]))
    assert [each.tolist() for each in turned] == [each.tolist() for each in plain]
    rows = [dict(zip(FIELDS[::-1], each.T[::-1], strict=True)) for each in experts]
    assert [each.tolist() for each in reward.rewards(rows)] == [each.tolist() for each in plain]
    renamed = frame(experts, FIELDS).rename(columns={"angle": "bend"})
    with pytest.raises(grace_irl.InputError, match="components position, velocity, bend, angular_velocity; expected"):
        reward.rewards(renamed)
    assert [each.tolist() for each in reward.rewards(experts)] == [each.tolist() for each in plain]
    with pytest.raises(grace_irl.InputError, match=r"expected 4 numbers, as the reward reads them: position, velocity"):
        reward.rewards([each[:, :3] for each in experts])
    wide = [np.column_stack([each, each[:, 0]]) for each in experts]
    with pytest.raises(grace_irl.InputError, match="expected 4 numbers, as the reward reads them"):
        grace_irl.score(run.reward_path, experts=wide, negatives=wide, label="last")


def test_a_reward_file_of_other_components_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")
    lines = ["episode,cart,rate,angle,turn", *(f"{n // 3},{n},{n},{n % 3},{n}" for n in range(9))]
    (tmp_path / "expert.csv").write_text("\n".join(lines) + "\n")
    source = '"""A reward.\n\nfields:  x0 cart, x1 rate, x2 turn, x3 angle\n\nIt pays."""\n\n\n'
    (tmp_path / "reward.py").write_text(source + "class Reward:\n    def reward_fn(self, state):\n        return 1.0\n")
    words = ["compare", "--experts", str(tmp_path / "expert.csv"), "--reward", str(tmp_path / "reward.py")]
    words += ["--env", "CartPole-v1", "--label", "last", "--methods", "grace", "--out", str(tmp_path / "out")]
    assert main(words) == 2
    assert "reads cart, rate, turn, angle, and the demonstrations have cart, rate, angle" in capsys.readouterr().err


@pytest.mark.slow
def test_logs_are_compared_and_expanded_in_their_environment(
    logs: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")
    named = ["--experts", logs[0], "--negatives", logs[1], *CHOSEN, "--env", ENVIRONMENT]
    tiny = ["--seeds", "1", "--tune", "bc.updates=5", "--episodes", "2", "--looks", "1"]
    assert main(["compare", *named, "--methods", "bc", *tiny, "--out", str(tmp_path / "compared")]) == 0
    assert (tmp_path / "compared" / "table.md").exists()
    expanded = ["fit", *named, "--label", "last", "--expand", "1", "--env-steps", "256", "--max-calls", "4"]
    assert main([*expanded, "--out", str(tmp_path / "expanded")]) == 0
    assert (tmp_path / "expanded" / "reward.py").exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--sample", "1KB"), "expected at most 1 KiB, the size of the sample"),
        (("--swaps",), "--swaps: the label rule is 'all'"),
        (("--expand", "1"), "do not name their environment; expected --env"),
        (("--expand", "1", "--env", "Reacher-v5"), "its states are vector, and the demonstrations have record"),
    ],
)
def test_an_rlds_set_without_roles_or_environment_says_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: Sequence[str], said: str
) -> None:
    rlds = str(Path(__file__).parent / "written" / "rlds")
    assert main(["fit", "--demos", rlds]) == 2
    assert "pass it with --experts or --negatives" in capsys.readouterr().err
    out, other = tmp_path / "run", str(shutil.copytree(rlds, tmp_path / "other"))
    assert main(["fit", "--experts", rlds, "--negatives", other, *flags, "--out", str(out)]) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()
    if "--expand" in flags:
        named = flags[2:]
        assert main(["compare", "--experts", rlds, "--negatives", other, *named, "--out", str(out)]) == 2
        assert said in capsys.readouterr().err
        assert not out.exists()
