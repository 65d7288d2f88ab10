"""`grace-irl demos …` and `grace-irl collect`, as a user calls them."""

from __future__ import annotations

import errno
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.goals import save_goals
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from tests.demos.equality import assert_same

SHIPPED = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"


COLLECT = ["collect", "--env", "BabyAI-GoToObj-v0", "--policy", "bot", "--role", "expert", "--episodes", "1"]


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def last_json(out: str) -> dict[str, object]:
    result = json.loads(out.splitlines()[-1])
    assert isinstance(result, dict)
    return result


def test_inspect_a_grid_set(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "demos", "inspect", SHIPPED)
    assert code == 0
    for part in ("BabyAI-GoToObj-v0", "8x8x3 uint8", "expert", "negative", "go to the", "state[i, j]"):
        assert part in out
    first = load([SHIPPED / "expert.parquet"])[0].trajectory.states[0]
    walls = sum(tuple(cell) == (2, 5, 0) for cell in first.reshape(-1, 3).tolist())
    picture = out[out.index("expert: ") :].splitlines()[1:9]
    assert sum(line.split("    ")[0].count("▒▒") for line in picture) == walls == 28
    assert "▒▒=(2,5,0)   A=(5,4,0)" in out
    assert "\\x" not in out  # the legend's spaces are not escaped


def test_a_terminal_without_unicode_is_no_failure() -> None:
    """What its encoding lacks is shown as a question mark; it was a defect's exit code."""
    done = subprocess.run(
        [sys.executable, str(SHIPPED.parents[1] / "cli.py"), "demos", "inspect", str(SHIPPED)],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"GoToObj" in done.stdout
    assert b"?" in done.stdout


def test_json_is_strict_where_a_mean_is_infinite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    huge = np.full((4, 1), 1.5e308)
    np.savez(tmp_path / "expert.npz", observations=huge, episode_lengths=[4], rewards=huge[:, 0] / 2)
    with np.errstate(over="ignore"):
        code, out, _ = run(capsys, "demos", "inspect", tmp_path / "expert.npz", "--json")
    assert code == 0
    assert "NaN" not in out
    assert "Infinity" not in out
    assert last_json(out)["states"] == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["demos", "scramble", "{shipped}", "copy", "--seed", "-1"], "--seed -1; expected 0 or more"),
        (["demos", "convert", "{shipped}/expert.parquet", "copy.parquet", "--format", "npz"], "ends in .npz"),
        (["demos", "convert", "{shipped}/expert.parquet", "copy", "--format", "parquet"], "ends in .parquet"),
        ([*COLLECT, "--out", "copy.xyz"], "'.xyz'"),
        ([*COLLECT, "--out", "copy.npz", "--seed", "-1"], "--seed -1; expected 0 or more"),
    ],
)
def test_refused_before_anything_is_done(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("grace_irl.rl.collect.rollout", lambda *_: pytest.fail("an episode was played"))
    code, out, err = run(capsys, *(argument.format(shipped=SHIPPED) for argument in arguments))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        ("file/a/b.parquet", "Not a directory"),
        ("folder.parquet", "Is a directory"),
        ("new/b.npz", "Read-only file system"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_an_episode_is_played(
    out: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def read_only(**_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    (tmp_path / "file").touch()
    (tmp_path / "folder.parquet").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("grace_irl.rl.collect.rollout", lambda *_: pytest.fail("an episode was played"))
    if reason.startswith("Read-only"):
        monkeypatch.setattr("tempfile.TemporaryFile", read_only)
    code, said, err = run(capsys, *COLLECT, "--out", out)
    assert (code, said) == (2, "")
    assert err == f"grace-irl: {out}: cannot be written ({reason}); free some space or choose another place\n"
    assert len(list(tmp_path.iterdir())) == 2


def test_inspect_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "demos", "inspect", SHIPPED, "--json")
    assert code == 0
    about = last_json(out)
    demonstrations = load([SHIPPED])
    assert (about["kind"], about["label"], about["trajectories"]) == ("grid", "last", len(demonstrations))
    assert about["states"] == sum(len(d.trajectory.states) for d in demonstrations)
    codes = about["codes"]
    assert isinstance(codes, list)
    everything = np.concatenate([d.trajectory.states.reshape(-1, 3) for d in demonstrations])
    for channel, counts in enumerate(codes):
        assert counts == {str(c): int((everything[:, channel] == c).sum()) for c in np.unique(everything[:, channel])}


def test_inspect_with_goals(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    items = [d for d in load([SHIPPED]) if d.role == "expert"]
    first, second = (d.trajectory for d in items[:2])
    save_goals(tmp_path / "goals.toml", {first.digest: (len(first.states),), second.digest: ()}, items)
    with (tmp_path / "goals.toml").open("a") as file:
        file.write("0000000000000000 = [1]\n")
    arguments = ("demos", "inspect", SHIPPED, "--goals", tmp_path / "goals.toml")
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 0
    about = last_json(out)
    goals = about["goals"]
    assert isinstance(goals, list)
    assert [row["goals"] for row in goals] == [[len(first.states)], [], *[None] * (len(items) - 2)]
    assert [row["digest"] for row in goals] == [d.trajectory.digest for d in items]
    assert about["goals_of_others"] == ["0000000000000000"]
    code, out, _ = run(capsys, *arguments, "--no-picture")
    assert code == 0
    assert f"{len(items)} expert trajectories: 1 with goal states, 1 with none, {len(items) - 2} not marked" in out
    assert "1 entries of the goals file name none of these experts: 0000000000000000" in out
    (tmp_path / "goals.toml").write_text(f"{first.digest} = [999]")
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert f"goal state 999 of {len(first.states)} states" in " ".join(err.split())


def test_inspect_vectors(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    states = [np.array([[0.0, 5.0], [1.0, -5.0]]), np.array([[2.0, 0.5]])]
    items = tuple(Demonstration(Trajectory(s), "expert", "walk") for s in states)
    save(Demonstrations(Metadata("vector", ("height", "speed")), items), tmp_path / "set.parquet")
    code, out, _ = run(capsys, "demos", "inspect", tmp_path / "set.parquet", "--json")
    assert code == 0
    assert last_json(out)["fields"] == [
        {"name": "height", "min": 0.0, "mean": 1.0, "max": 2.0},
        {"name": "speed", "min": -5.0, "mean": pytest.approx(1 / 6), "max": 5.0},
    ]
    code, out, _ = run(capsys, "demos", "inspect", tmp_path / "set.parquet")
    assert code == 0
    assert "height" in out
    assert "walk" in out


def test_convert_and_scramble(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(capsys, "demos", "convert", SHIPPED, tmp_path / "npz", "--format", "npz", "--json")
    assert code == 0
    files = last_json(out)["files"]
    assert isinstance(files, list)
    assert [file["trajectories"] for file in files] == [30, 30]
    code, out, _ = run(capsys, "demos", "scramble", tmp_path / "npz", tmp_path / "copy", "--seed", "4", "--json")
    assert code == 0
    assert last_json(out)["map"] == str(tmp_path / "copy" / "scramble.json")
    assert load([tmp_path / "copy"]).metadata.view == "scrambled"


def test_convert_names_the_fields(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arrays = {"observations": np.zeros((3, 11)), "actions": np.zeros((3, 3)), "episode_lengths": np.array([3])}
    np.savez(tmp_path / "a.npz", **arrays)
    arguments = (tmp_path / "a.npz", tmp_path / "a.parquet", "--role", "expert", "--env", "Hopper-v4")
    arguments += ("--label", "all")
    assert run(capsys, "demos", "convert", *arguments)[0] == 0
    metadata = load([tmp_path / "a.parquet"]).metadata
    assert (metadata.environment, metadata.label) == ("Hopper-v4", "all")
    assert metadata.fields[:2] == ("z_torso", "angle_torso")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fields", "a,b"], "2 names of fields for states of 11 numbers; expected one each: correct --fields"),
        (["--env", "Walker2d-v5"], "17 names of fields for states of 11 numbers"),
        (["--env", "Hopper-v5", "--fields", "a,b"], "2 names of fields for states of 11 numbers"),
    ],
)
def test_convert_refuses_names_that_do_not_fit(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    np.savez(tmp_path / "a.npz", observations=np.zeros((3, 11)), episode_lengths=np.array([3]))
    code, _, err = run(
        capsys, "demos", "convert", tmp_path / "a.npz", tmp_path / "a.parquet", "--role", "expert", *arguments
    )
    assert (code, said in err) == (2, True)
    assert not (tmp_path / "a.parquet").exists()
    np.savez(tmp_path / "g.npz", observations=np.zeros((3, 5, 5, 3), np.int64), episode_lengths=np.array([3]))
    code, _, err = run(
        capsys, "demos", "convert", tmp_path / "g.npz", tmp_path / "g.parquet", "--role", "expert", *arguments
    )
    assert code == (2 if "--fields" in arguments else 0), err
    assert (tmp_path / "g.parquet").exists() == (code == 0)


def test_collect(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("minigrid")
    from grace_irl.rl.collect import EpisodeTally, collect

    arguments = ("--env", "BabyAI-GoToObj-v0", "--policy", "random", "--episodes", "9", "--seed", "1")
    arguments += ("--role", "negative")
    code, out, err = run(capsys, "collect", *arguments, "--out", tmp_path / "n.parquet", "--json")
    assert code == 0
    about = last_json(out)
    assert about["trajectories"] == 9
    tally = EpisodeTally()
    expected = collect("BabyAI-GoToObj-v0", "random", 9, "negative", 1, tally=tally)
    assert about["dropped_successes"] == tally.dropped_successes > 0
    assert f"{tally.dropped_successes} episodes reached the goal and were left out" in err
    assert_same(load([tmp_path / "n.parquet"]), expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("demos", "inspect", "nothing.parquet"), "nothing.parquet: no such file"),
        (("demos", "convert", SHIPPED, "x", "--format", "csv"), "--format csv; expected one of parquet, npz"),
        (("demos", "convert", SHIPPED / "expert.parquet", "x.csv"), "unknown format '.csv'"),
        (("demos", "convert", SHIPPED, "x.parquet"), "expected a folder"),
        (("demos", "scramble", SHIPPED), "no DST"),
        (("collect", "--env", "BabyAI-GoToObj-v0"), "no --policy"),
        (("collect", "--recipe", "nothing.toml"), "nothing.toml: cannot be read"),
        *(
            (("collect", "--recipe", "x.toml", *option), f"--recipe beside {option[0]}; expected one or the other")
            for option in [
                ("--env", "X-v0"),
                ("--policy", "bot"),
                ("--episodes", "100"),
                ("--role", "expert"),
                ("--out", "x.parquet"),
                ("--seed", "0"),
                ("--kind", "image"),
                ("--max-steps", "4"),
                ("--keep-successes",),
                ("--near-miss",),
                ("--task", "go"),
                ("--format", "npz"),
            ]
        ),
    ],
)
def test_bad_usage(
    arguments: tuple[object, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_file_that_exists_is_kept(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target = tmp_path / "mine.parquet"
    source = "datasets/babyai-go-to-obj/expert.parquet"
    target.write_bytes(b"mine")
    collect = ["collect", "--env", "BabyAI-GoToObj-v0", "--policy", "bot", "--episodes", "1", "--role", "expert"]
    for arguments in (["demos", "convert", source, str(target)], [*collect, "--out", str(target)]):
        assert main(arguments) == 2
        said = capsys.readouterr().err
        assert "exists already" in said
        assert "--force" in said
        assert target.read_bytes() == b"mine"
    assert main(["demos", "convert", source, str(target), "--force"]) == 0
    assert main(["demos", "inspect", str(target)]) == 0


def test_the_command_that_inspect_names_is_quoted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "my run 1.csv"
    path.write_text("episode,x\n0,1\n0,2\n")
    assert main(["demos", "inspect", str(path)]) == 0
    named = capsys.readouterr().out.split("to recover a reward: ")[1].splitlines()[0]
    assert shlex.split(named) == [
        *("grace-irl", "fit", "--experts", str(path), "--negatives", "NEGATIVES", "--held-out", "0")
    ]


@pytest.mark.parametrize(
    ("rows", "lacking"),
    [
        ("episode,x,label\n0,1,negative\n0,2,negative\n", ["--experts", "EXPERTS"]),
        ("episode,x,label\n0,1,expert\n0,2,expert\n", ["--negatives", "NEGATIVES"]),
        ("episode,x,label\n0,1,expert\n0,2,expert\n1,1,negative\n1,2,negative\n", []),
        ("episode,x,label\n0,1,expert\n1,1,expert\n2,7,negative\n3,8,negative\n", []),  # equal experts
    ],
)
def test_the_command_that_inspect_names_has_what_the_set_lacks(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rows: str, lacking: Sequence[str]
) -> None:
    path = tmp_path / "run.csv"
    path.write_text(rows)
    assert main(["demos", "inspect", str(path)]) == 0
    named = shlex.split(capsys.readouterr().out.split("to recover a reward: ")[1].splitlines()[0])
    assert named == ["grace-irl", "fit", "--demos", str(path), *lacking, "--held-out", "0"]
    refused = main([*named[1:4], "--label", "all", "--held-out", "0", "--out", str(tmp_path / "run")]) == 2
    assert refused == bool(lacking)
    capsys.readouterr()
    assert main([*named[1:4], "--label", "all", "--out", str(tmp_path / "split")]) == 2
    assert ("cannot be split" in capsys.readouterr().err) == (not lacking)


@pytest.mark.parametrize(
    ("splits", "small"),
    [(("", "", "", ""), False), (("train", "train", "", ""), True), (("train", "held_out", "", ""), False)],
)
def test_inspect_holds_nothing_out_where_a_side_would_be_empty(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, splits: Sequence[str], small: bool
) -> None:
    path = tmp_path / "run.csv"
    roles = ("expert", "expert", "negative", "negative")
    rows = [f"{n},{n},{role},{side}\n" for n, (role, side) in enumerate(zip(roles, splits, strict=True))]
    path.write_text("episode,x,label,split\n" + "".join(rows))
    assert main(["demos", "inspect", str(path)]) == 0
    shown = capsys.readouterr().out
    named = shlex.split(shown.split("to recover a reward: ")[1].splitlines()[0])
    assert named[4:] == (["--held-out", "0"] if small else [])
    assert ("all 2 trajectories state the split 'train', so no" in shown) == small
    fit = ["fit", "--demos", str(path), "--label", "all", "--max-calls", "1"]
    assert (main([*fit, "--out", str(tmp_path / "run")]) == 2) == small
    assert main([*fit, *named[4:], "--out", str(tmp_path / "named")]) == 0


def test_inspect_says_which_task_has_no_two_sides(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Where nothing is for training, --held-out 0 is no help."""
    path = tmp_path / "run.csv"
    rows = "".join(f"{n},{n},{'expert' if n % 2 else 'negative'},{'a' if n < 4 else 'b'},\n" for n in range(6))
    path.write_text("episode,x,label,task,split\n" + rows)
    assert main(["demos", "inspect", str(path), "--json"]) == 0
    about = json.loads(capsys.readouterr().out.splitlines()[-1])
    said = "one trajectory, so no trajectory can be held out from training"
    assert about["notes"][-2:] == [f"task 'b', role {role}: {said}" for role in ("negative", "expert")]
    assert about["command"].endswith(" --held-out 0")
    path.write_text("episode,x,label,split\n0,0,expert,held_out\n1,1,expert,held_out\n2,2,negative,\n3,3,negative,\n")
    assert main(["demos", "inspect", str(path), "--json"]) == 0
    about = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert "state the split 'held_out'" in about["notes"][-1]
    assert "--held-out" not in about["command"]
    assert main(["fit", "--demos", str(path), "--label", "all", "--out", str(tmp_path / "run")]) == 2
    assert "expected some of 'train' or without a split: mark some\n" in capsys.readouterr().err


def test_inspect_names_a_model_for_pictures_and_a_file_for_goals_that_nothing_marks(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pictures = np.zeros((2, 8, 8, 3), np.uint8)
    items = [
        Demonstration(Trajectory(pictures + shade, kind="image"), role)
        for shade, role in ((0, "expert"), (9, "negative"))
    ]
    save(Demonstrations(Metadata(kind="image", label="goal"), tuple(items)), tmp_path / "set.npz")
    assert main(["demos", "inspect", str(tmp_path / "set.npz"), "--no-picture"]) == 0
    named = shlex.split(capsys.readouterr().out.split("to recover a reward: ")[1].splitlines()[0])
    assert named[3:] == [str(tmp_path / "set.npz"), "--goals", "GOALS", "--held-out", "0", "--llm-url", "URL"]


def test_inspect_names_no_experts_among_files_that_state_failures(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for number in range(9):
        about = "episode,x,label\n0,1,negative\n" if number == 8 else "episode,x\n0,1\n"
        (tmp_path / f"{number}.csv").write_text(about)
    assert main(["demos", "inspect", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.count("no role in the data") == 5
    assert "and 3 more without a role" in out
    assert "to recover a reward: 8 of 9 files have no role: pass each of them with --experts or --negatives" in out
    assert main(["demos", "inspect", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["command"] == ""


def test_inspect_leaves_a_rule_open_that_files_state_differently(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    item = Demonstration(Trajectory(np.arange(4.0)[:, None]), "expert")
    (tmp_path / "set").mkdir()
    for name, label in (("one", "last"), ("two", "all")):
        save(Demonstrations(Metadata(kind="vector", label=label), (item,)), tmp_path / "set" / f"{name}.npz")
    assert main(["demos", "inspect", str(tmp_path / "set"), "--json"]) == 0
    named = shlex.split(json.loads(capsys.readouterr().out.splitlines()[-1])["command"])
    assert named[4:] == ["--label", "RULE", "--negatives", "NEGATIVES", "--held-out", "0"]


def test_convert_says_that_no_goal_state_is_marked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, target = tmp_path / "runs.csv", str(tmp_path / "runs.parquet")
    path.write_text("episode,x\n0,1\n0,2\n1,1\n1,2\n")
    asked = ["demos", "convert", str(path), target, "--force"]
    for role, label, said in (("expert", "goal", True), ("expert", "last", False), ("negative", "goal", False)):
        assert main([*asked, "--role", role, "--label", label]) == 0
        assert ("no goal states are marked in 2 of 2 expert trajectories" in capsys.readouterr().out) == said


def test_inspect_keeps_the_file_of_goal_states(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    goals = tmp_path / "my goals.toml"
    goals.write_text("")
    demos = "datasets/babyai-go-to-obj"
    assert main(["demos", "inspect", demos, "--goals", str(goals), "--no-picture"]) == 0
    named = capsys.readouterr().out.split("to recover a reward: ")[1].splitlines()[0]
    assert shlex.split(named) == ["grace-irl", "fit", "--demos", demos, "--label", "goal", "--goals", str(goals)]


def test_inspect_keeps_the_choice_of_columns_and_kind(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "cart.csv"
    path.write_text("run no,hand x,speed,leak\n0,1,2,0\n0,2,1,0\n")
    chosen = ["--kind", "vector", "--state-columns", "hand x,speed", "--episode-column", "run no"]
    assert main(["demos", "inspect", str(path), *chosen, "--json"]) == 0
    named = json.loads(capsys.readouterr().out.splitlines()[-1])["command"]
    lacking = ["--negatives", "NEGATIVES", "--held-out", "0"]
    assert shlex.split(named) == ["grace-irl", "fit", "--experts", str(path), *chosen, *lacking]
