"""Near misses: the bot does another task of the same world, and the right task stays undone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("minigrid")

from grace_irl.cli import main
from grace_irl.demos import load
from grace_irl.demos.label_rule import choose_rule
from grace_irl.demos.trajectory import Demonstrations, Metadata
from grace_irl.errors import GraceError, InputError
from grace_irl.rl.collect import EpisodeTally, collect
from grace_irl.rl.environments import make, quiet
from grace_irl.rl.fulfilled import fulfilments
from grace_irl.rl.instructions import actions_in
from grace_irl.rl.near_miss import NO_OTHER_TASK, OUT_OF_TIME, RIGHT_TASK_DONE
from grace_irl.rl.other_task import ABSENT, DEVIATIONS, absent_task, other_tasks
from tests.demos.equality import assert_same
from tests.rl.babyai import ALONE, OTHERS, OWN, id_of

DOOR, OPEN = 4, 0
COLORS = ("red", "green", "blue", "purple", "yellow", "grey")
FORMS = ("PutNextLocal", "GoToSeq", "MiniBossLevel", "OpenDoorsOrderN4", "SynthLoc", "MoveTwoAcrossS8N9")
"""Levels with other forms of instructions than the public levels."""


def misses(level: str, episodes: int = 6, seed: int = 3, near_miss: bool | str = True, **more: Any) -> Demonstrations:
    return collect(id_of(level), "bot", episodes, "negative", seed, near_miss=near_miss, **more)


def deed(item: Any) -> tuple[str, str]:
    """The name of an episode's deviation, and the text of its task."""
    name, _, text = item.trajectory.source.rpartition("near miss, ")[2].partition(": ")
    return name, text


def reset(level: str, seed: int) -> Any:
    with quiet():
        environment, _ = make(id_of(level))
        environment.reset(seed=seed)
    return environment.unwrapped


@pytest.mark.parametrize("level", [*OTHERS, *FORMS])
def test_the_other_task_is_done_at_the_end_and_the_right_one_never(level: str) -> None:
    for item in misses(level):
        trajectory = item.trajectory
        name, text = deed(item)
        assert item.role == "negative"
        assert name in DEVIATIONS
        assert text != trajectory.extra_info
        assert trajectory.rewards is not None
        assert not trajectory.rewards.any()
        assert (trajectory.terminated, trajectory.truncated) == (False, True)
        right, other = fulfilments(trajectory, [trajectory.extra_info, text])
        assert right is not None
        assert right.at is None
        assert other is not None
        assert other.at == trajectory.num_steps


@pytest.mark.parametrize("level", OWN)
def test_near_misses_of_our_own_levels(level: str) -> None:
    found = misses(level)
    for trajectory in (item.trajectory for item in found):
        (right,) = fulfilments(trajectory, [trajectory.extra_info])
        assert right is not None
        assert right.at is None
        assert not trajectory.rewards.any()
        assert trajectory.terminated == (level == "OpenMatchingDoor")  # the environment ends it at a wrong door
        assert trajectory.truncated != trajectory.terminated
    assert len({item.trajectory.digest for item in found}) > 1


@pytest.mark.parametrize("level", ALONE)
def test_a_level_without_another_task(level: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "negative.parquet"
    words = ["--policy", "bot", "--role", "negative", "--near-miss", "--out", str(out)]
    assert main(["collect", "--env", id_of(level), *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "none of 101 worlds has another task of the form of its instruction" in line
    assert not out.exists()


def test_the_command_writes_what_python_collects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, tally = tmp_path / "negative.parquet", EpisodeTally()
    words = ["--policy", "bot", "--role", "negative", "--near-miss", "--episodes", "12", "--seed", "3"]
    assert main(["collect", "--env", id_of("Open"), *words, "--out", str(out)]) == 0
    expected = misses("Open", 12, tally=tally)
    assert_same(load([out]), expected)
    assert tally.failures[RIGHT_TASK_DONE] > 0
    assert f"{RIGHT_TASK_DONE}: {tally.failures[RIGHT_TASK_DONE]}" in capsys.readouterr().err


def test_a_recipe_may_ask_for_near_misses(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        f"[[file]]\nout = 'n.parquet'\nenv = '{id_of('OpenTwoDoors')}'\npolicy = 'bot'\nrole = 'negative'\n"
        "episodes = 2\nseed = 3\nnear_miss = true\n"
    )
    assert main(["collect", "--recipe", str(recipe)]) == 0
    assert_same(load([tmp_path / "n.parquet"]), misses("OpenTwoDoors", 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((id_of("Open"), "bot", 1, "expert"), "--near-miss with --role expert; expected --role negative"),
        ((id_of("Open"), "random", 1, "negative"), "--near-miss with --policy random; expected --policy bot"),
        ((id_of("Open"), "model.zip", 1, "negative"), "--near-miss with --policy model.zip"),
        (("CartPole-v1", "bot", 1, "negative"), "CartPole-v1: no instruction of BabyAI"),
        (("MiniGrid-Empty-5x5-v0", "bot", 1, "negative"), "no instruction of BabyAI"),
    ],
)
def test_what_has_no_near_misses(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        collect(*arguments, near_miss=True)


def test_successes_cannot_be_kept() -> None:
    with pytest.raises(InputError, match="--near-miss with --keep-successes"):
        misses("Open", 1, keep_successes=True)


@pytest.mark.parametrize(
    ("level", "known"),
    [("SortColors", "'red ball', 'blue ball', 'same rooms'"), ("Open", "'similar object', 'other object'")],
)
def test_an_unknown_deviation(level: str, known: str) -> None:
    with pytest.raises(InputError, match=f"near_miss='beside'; expected True or one of {known}"):
        misses(level, 1, near_miss="beside")


@pytest.mark.parametrize("level", ["PickupLoc", "GoToSeq", "PlaceBetween"])
def test_the_same_seed_gives_the_same_near_misses(level: str) -> None:
    assert_same(misses(level, 3), misses(level, 3))
    other = {item.trajectory.digest for item in misses(level, 3, seed=4)}
    assert other.isdisjoint(item.trajectory.digest for item in misses(level, 3))


def opened(trajectory: Any) -> list[str]:
    """Colours of doors, in the order in which they open."""
    found: dict[str, None] = {}
    for state in trajectory.states:
        codes = state[(state[..., 0] == DOOR) & (state[..., 2] == OPEN)]
        found.update(dict.fromkeys(COLORS[code] for code in codes[:, 1]))
    return list(found)


def named(trajectory: Any) -> list[str]:
    return [word for word in trajectory.extra_info.replace(",", "").split() if word in COLORS]


@pytest.mark.parametrize("level", ["OpenTwoDoors", "OpenRedBlueDoors"])
def test_two_doors_in_the_wrong_order_or_one_of_them_alone(level: str) -> None:
    for item in misses(level, near_miss="other order"):
        assert opened(item.trajectory) == named(item.trajectory)[::-1]
    for item in misses(level, near_miss="other part"):
        assert len(opened(item.trajectory)) == 1


def test_put_next_exchanges_and_replaces_objects() -> None:
    for name, stays in (("other moved", 1), ("other fixed", 0), ("exchanged", None)):
        for item in misses("PutNextLocal", 3, near_miss=name):
            right, other = (
                text.removeprefix("put ").split(" next to ") for text in (item.trajectory.extra_info, deed(item)[1])
            )
            if stays is None:
                assert right == other[::-1]
            else:
                assert right[stays] == other[stays]
                assert right[1 - stays] != other[1 - stays]


@pytest.mark.parametrize("level", ["PickupDist", "PickupLoc", "GoToRedBall", "OpenDoorLoc"])
def test_no_object_of_another_task_fits_the_right_description(level: str) -> None:
    for seed in range(10):
        board = reset(level, seed)
        right = board.instrs
        for task in (task for tasks in other_tasks(board).values() for task in tasks):
            assert type(task) is type(right)
            assert task.desc.obj_set
            assert not {map(id, task.desc.obj_set)} & {map(id, right.desc.obj_set)}
            for part in ("type", "color", "loc"):  # of the same form
                assert (getattr(task.desc, part) is None) == (getattr(right.desc, part) is None)


def test_a_ball_is_no_near_miss_of_another_ball() -> None:
    """With two balls that fit, neither is another task."""
    from minigrid.core.world_object import Ball, Key
    from minigrid.envs.babyai.core.verifier import GoToInstr, ObjDesc

    board = reset("GoToRedBallNoDists", 0)
    board.place_obj(Ball("red"))
    board.instrs = GoToInstr(ObjDesc("ball", "red"))
    board.instrs.reset_verifier(board)
    assert other_tasks(board) == {}
    board.place_obj(Key("red"))
    (tasks,) = other_tasks(board).values()
    assert [task.surface(board) for task in tasks] == ["go to the red key"]


def test_an_order_of_equal_parts_is_not_turned() -> None:
    from minigrid.envs.babyai.core.verifier import BeforeInstr, ObjDesc, OpenInstr

    board = reset("OpenTwoDoors", 0)
    one = next(actions_in(board.instrs)).desc
    board.instrs = BeforeInstr(OpenInstr(ObjDesc("door", one.color)), OpenInstr(ObjDesc("door")))
    board.instrs.reset_verifier(board)
    assert set(other_tasks(board)) == {"other part"}


def test_the_world_and_its_instruction_stay_as_they_are() -> None:
    """The right task is that of the same seed without near misses."""
    for item in misses("GoToLocalS8N7", 4):
        board = reset("GoToLocalS8N7", int(item.trajectory.source.split(" seed ")[1].split(",")[0]))
        assert board.mission == item.trajectory.extra_info


def test_where_one_thing_is_the_instruction_is_about_another() -> None:
    """The bot does the world's own task. The instruction is one of the level's, and nothing here fits it."""
    found = misses("GoToObj", 8)
    texts = {reset("GoToObj", seed).mission for seed in range(200)}
    for item in found:
        name, own = deed(item)
        assert name == ABSENT
        board = reset("GoToObj", int(item.trajectory.source.split(" seed ")[1].split(",")[0]))
        assert own == board.mission != item.trajectory.extra_info
        assert item.trajectory.extra_info in texts
    assert len({item.trajectory.extra_info for item in found}) > 3
    assert_same(misses("GoToObj", 3), misses("GoToObj", 3))


@pytest.mark.parametrize("level", ["GoToLocalS8N7", "GoToSeq"])
def test_a_thing_that_is_not_there_is_asked_for_where_others_are(level: str) -> None:
    for item in misses(level, 3, near_miss=ABSENT):
        name, own = deed(item)
        assert name == ABSENT
        right, done = fulfilments(item.trajectory, [item.trajectory.extra_info, own])
        assert right is not None
        assert right.at is None
        assert done is None or done.at == item.trajectory.num_steps  # None: BabyAI's text leaves open what it means


def test_other_worlds_leave_the_environment_as_it_is() -> None:
    board = reset("GoToObj", 3)
    before = (board.mission, board.grid.encode().tobytes(), board.np_random.bit_generator.state["state"])
    assert absent_task(board, np.random.default_rng(0)) is not None
    assert (board.mission, board.grid.encode().tobytes(), board.np_random.bit_generator.state["state"]) == before
    assert absent_task(reset("OpenRedDoor", 3), np.random.default_rng(0)) is None


def test_endings_still_show_the_label_rule() -> None:
    """A set whose files say nothing: the environment ended the experts and not the near misses."""
    both = [*collect(id_of("OpenTwoDoors"), "bot", 3, "expert"), *misses("OpenTwoDoors", 3)]
    choice = choose_rule(Demonstrations(Metadata("grid"), tuple(replace(item, task="t") for item in both)))
    assert choice.rule == "last"
    assert choice.reason.startswith("the environment ended all 3 expert trajectories, and a time limit all 3 negative")


def test_a_time_limit_and_a_bot_that_fails_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GraceError, match=f"only 0 of 2 episodes kept, and 11 left out .*{OUT_OF_TIME}: 11"):
        misses("Open", 2, max_steps=1)
    from minigrid.utils import baby_ai_bot

    monkeypatch.setattr(baby_ai_bot.BabyAIBot, "replan", lambda self, last: 6)  # "done" at once
    with pytest.raises(GraceError, match="the bot gave the other task up: 11"):
        misses("Open", 2)


def test_worlds_without_another_task_are_counted() -> None:
    tally = EpisodeTally()
    assert len(misses("PlaceBetween", 3, near_miss="anchor", tally=tally)) == 3
    assert set(tally.failures) == {NO_OTHER_TASK}
    assert tally.failures[NO_OTHER_TASK] > 3


def test_all_deviations_are_drawn() -> None:
    levels = ("GoToObj", "GoToRedBall", "PutNextLocal", "OpenTwoDoors")
    names = {deed(item)[0] for level in levels for item in misses(level, 20)}
    assert names == set(DEVIATIONS)


@pytest.mark.parametrize("seed", range(3))
def test_deviations_take_turns(seed: int) -> None:
    """A few near misses show all deviations. By chance alone, the same one came three times in a row."""
    drawn = Counter(deed(item)[0] for item in misses("SortColors", 6, seed=seed))
    assert drawn == {"red ball": 2, "blue ball": 2, "same rooms": 2}
    names = [deed(item)[0] for item in misses("OpenTwoDoors", 4, seed=seed)]
    assert sorted(names[:2]) == sorted(names[2:]) == ["other order", "other part"]
    ended = misses("OpenRedBlueDoorsDebug", 6, seed=seed)  # the environment ends the other order at its first door
    assert Counter(deed(item)[0] for item in ended) == {"other order": 3, "other part": 3}
