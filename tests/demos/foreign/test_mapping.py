"""Episodes as dicts: which entries are states, goals, ends and rewards, and which are left out."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grace_irl.demos import load
from grace_irl.demos.given import in_memory
from grace_irl.errors import InputError
from tests.demos.foreign.walks import path, read, walks


def test_named_arrays_of_several_numbers_are_a_record_and_none_is_lost() -> None:
    episodes = [{"arm": {"joints": each, "grip": each[:, 0]}, "text": ["a"] * len(each)} for each in walks()]
    (first, *_) = read(episodes)
    assert first.trajectory.kind == "record"
    assert set(first.trajectory.states.parts) == {"arm/joints", "arm/grip", "text"}


def test_observations_that_are_dicts_for_each_state_become_parts() -> None:
    episodes = [{"observations": [{"pixels": np.full((2, 2), n), "state": row} for n, row in enumerate(walks()[0])]}]
    (first,) = read(episodes)
    assert set(first.trajectory.states.parts) == {"pixels", "state"}
    assert first.trajectory.states.parts["pixels"].shape == (4, 2, 2)


def test_as_many_actions_as_states_lose_the_last_one() -> None:
    (first,) = read([{"obs": walks()[0], "acts": np.arange(4), "rews": np.arange(4.0), "terminal": True}])
    assert first.trajectory.actions.tolist() == [0, 1, 2]
    assert first.trajectory.rewards.tolist() == [0, 1, 2 + 3]
    assert not first.trajectory.terminated  # the state after the last action is not there
    (whole,) = read([{"obs": walks()[0], "acts": np.arange(3), "terminal": True}])
    assert whole.trajectory.terminated


def test_the_last_state_of_an_episode_is_its_last_next_observation() -> None:
    (first,) = read([path(walks()[0])])
    np.testing.assert_array_equal(first.trajectory.states, walks()[0])
    assert first.trajectory.actions.tolist() == [0, 1, 2]
    assert first.trajectory.rewards.tolist() == [0, 0, 1]
    assert first.trajectory.terminated
    named = {key: {"arm": rows, "grip": rows[:, 0]} for key, rows in path(walks()[0]).items() if "observation" in key}
    (parts,) = read([path(walks()[0]) | named])
    np.testing.assert_array_equal(parts.trajectory.states.parts["arm"], walks()[0])


def test_next_observations_beside_all_states_add_none() -> None:
    (first,) = read([path(walks()[0]) | {"observation": walks()[0]}])
    np.testing.assert_array_equal(first.trajectory.states, walks()[0])


@pytest.mark.parametrize(
    "following",
    [
        walks()[0][1:, :1],
        [*walks()[0][1:-1].tolist(), None],
        np.full((3, 2), np.nan),
        {"arm": walks()[0][1:]},
        walks()[0][1:].astype(str),
        walks()[0][1:] + 0.5,
    ],
    ids=["another shape", "null", "nan", "parts", "texts", "fractions beside integers"],
)
def test_a_last_next_observation_that_is_no_state_is_left_out_with_the_last_action(following: Any) -> None:
    states = walks()[0][:-1].astype(np.int64)
    found = in_memory((), [path(walks()[0]) | {"observation": states, "next_observation": following}], ())
    assert found is not None
    np.testing.assert_array_equal(found[0].trajectory.states, states)
    assert found[0].trajectory.num_steps == 2
    assert found.notes == ("experts: left out: next_observation",)


@pytest.mark.parametrize(
    "flags", [[None, True, False, True], np.array([0, 1, 0, 1], bool), [0, 1, 0, 1], np.eye(4)[1] + np.eye(4)[3]]
)
def test_an_episode_marks_its_goal_states(flags: Any) -> None:
    first, second = read(
        [{"observations": walks()[0], "goal": flags}, {"observations": walks()[1], "goal": [None] * 4}]
    )
    assert first.goals == (1, 3)
    assert second.goals is None


@pytest.mark.parametrize("flags", [[0, 1], [0, 0, 2, 0], [0.5, 0.5], np.array([True]), [3], "reach"])
def test_what_may_be_something_else_than_a_flag_for_each_state_is_left_out(flags: Any) -> None:
    found = in_memory((), [path(walks()[0], goal=flags)], ())
    assert found is not None
    assert found[0].goals is None
    assert found.notes == ("experts: left out: goal",)


@pytest.mark.parametrize(
    ("key", "flags", "said"),
    [
        ("goal", [False, False, True], r"episode 0, goal: 3 flags for 4 states; expected one for each state"),
        ("terminations", [False, True, False], r"episode 0, terminations: flag 2 of 3 says that the episode ends"),
        ("terminations", np.array([True, False]), r"episode 0, terminations: 2 flags for 4 states; expected one"),
        ("truncations", [True, False, False], r"episode 0, truncations: flag 1 of 3 says that the episode ends"),
        ("done", np.array([[True], [False], [False], [False]]), r"episode 0, done: flag 1 of 4 says"),
    ],
)
def test_flags_that_do_not_fit_an_episode_are_refused(key: str, flags: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read([{"observations": walks()[0], key: flags}])


@pytest.mark.parametrize(
    "flags",
    [True, np.True_, [False, False, True], np.array([False, False, True, True]), [False, False, True, False], [True]],
)
def test_one_flag_or_a_flag_for_each_step_or_state_ends_an_episode(flags: Any) -> None:
    (first,) = read([{"observations": walks()[0], "done": flags}])
    assert first.trajectory.terminated


@pytest.mark.parametrize("flags", [[0, 0, 1], [False, False, True]])
def test_flags_must_include_the_state_that_next_observations_add(flags: Any) -> None:
    with pytest.raises(InputError, match="3 flags for 4 states, of which next observations gave the last"):
        read([path(walks()[0]) | {"goal": flags}])


@pytest.mark.parametrize("beside", ["observations", "x"])
def test_all_episodes_decide_whether_goals_are_flags(beside: str) -> None:
    """A target position may be 0 or 1 in some of them."""
    rows = walks()[0] if beside == "observations" else walks()[0][:, 0]
    flags, place = {beside: rows, "goal": [1.0, 1.0, 1.0, 1.0]}, {beside: rows, "goal": [0.5, 0.5, 0.5, 0.5]}
    for items in ([flags, place], [place, flags]):
        found = in_memory((), items, ())
        assert found is not None
        assert [each.goals for each in found] == [None, None]
        assert found.metadata.fields == (("x", "goal") if beside == "x" else ())
    found = in_memory((), [{"observations": walks()[0], "goal": [0, 0, 0, 1]}], ())
    assert found is not None
    assert found.notes == ("experts: 1 in 'goal' marks a goal state",)


@pytest.mark.parametrize("word", [np.array("go"), "go", ["go"] * 4, np.array(["go"] * 4)])
def test_an_instruction_may_stand_once_or_beside_each_state(word: Any) -> None:
    (first,) = read([{"observations": walks()[0], "instruction": word}])
    assert first.trajectory.extra_info == "go"


def test_entries_of_other_shapes_than_a_columns_are_parts() -> None:
    rows = walks()[0]
    (first,) = read([{"arm": rows, "frame": np.zeros((4, 2, 2)), "task": np.eye(4)}])
    assert set(first.trajectory.states.parts) == {"arm", "frame", "task"}


def test_the_line_about_parts_is_that_of_any_episode() -> None:
    parts = {"x": walks()[0][:, 0], "y": walks()[0][:, 1]}
    found = in_memory((), [parts, parts | {"reward": [0.0, 0.0, 1.0]}], ())
    assert found is not None
    assert found.notes == ("experts: states are 'x', 'y'; 'reward' read beside them",)


def test_entries_beside_named_parts_are_read_as_columns_of_a_table_are() -> None:
    """A true reward, an end, an outcome or a clock among the parts would tell experts by itself."""
    rows = walks()[0]
    parts = {"x": rows[:, 0], "y": rows[:, 1]}
    told = {"reward": [0.0, 0.0, 1.0, 0.0], "done": [False, False, True], "action": [2, 1, 2], "goal": [0, 0, 0, 1]}
    words = {"instruction": ["go"] * 4, "task": "reach", "role": "expert"}
    found = in_memory((), [parts | told | words | {"success": [0, 0, 0, 1], "t": [0, 1, 2, 3]}], ())
    assert found is not None
    (first,) = found
    assert found.metadata.fields == ("x", "y")
    np.testing.assert_array_equal(first.trajectory.states, rows[:, :2])
    assert first.trajectory.rewards is not None
    assert first.trajectory.rewards.tolist() == [0.0, 0.0, 1.0]
    assert first.trajectory.actions is not None
    assert first.trajectory.actions.tolist() == [2, 1, 2]
    assert (first.trajectory.terminated, first.goals) == (True, (3,))
    assert (first.trajectory.extra_info, first.task) == ("go", "reach")
    assert found.notes == (
        "experts: states are 'x', 'y'; 'reward', 'done', 'action', 'goal', 'instruction', 'task', 'role' read beside "
        "them; left out: success, t",
    )
    others = {"Reward": [0.0] * 4, "Done": [0] * 4, "infos": {"success": [0] * 4}, "goal": np.eye(4)[:, 3:]}
    found = in_memory((), [parts | others | {"next_x": rows[:, 0], "action_0": [0, 0, 0, 0]}], ())
    assert found is not None
    assert (found.metadata.fields, found[0].goals) == (("x", "y"), (3,))
    assert "left out: Reward, Done, infos, next_x, action_0" in found.notes[0]
    (record,) = read([{"arm": rows, "goal": rows[:, :2], "reward": np.zeros(3)}])
    assert set(record.trajectory.states.parts) == {"arm", "goal"}  # a goal of numbers is something to see
    with pytest.raises(InputError, match="episode 0: a dict of 'reward', 'done' alone; expected observations"):
        read([{"reward": [0.0, 1.0], "done": [False, True]}])


def test_what_is_not_read_of_an_episode_is_named() -> None:
    found = in_memory((), [path(walks()[0], goal=[0.5, 0.5], image_obs=[], task="go", infos={})], ())
    assert found is not None
    assert found.notes == ("experts: left out: goal, image_obs, infos",)
    assert found[0].goals is None


def test_goals_beside_observations_are_parts_of_the_states() -> None:
    parts = {"observation": walks()[0], "achieved_goal": walks()[0] + 1, "desired_goal": walks()[0] + 2}
    whole, beside = in_memory((), [{"observations": parts}], ()), in_memory((), [parts], ())
    assert whole is not None
    assert beside is not None
    assert beside.notes == ()
    assert beside[0].trajectory.kind == whole[0].trajectory.kind == "record"
    for name, part in parts.items():
        np.testing.assert_array_equal(beside[0].trajectory.states.parts[name], part)
    following = {f"next_{name}": part + 3 for name, part in parts.items()}
    acting = {"actions": np.zeros((4, 1)), "terminated": True}
    (last,) = read([parts | following | acting])
    assert last.trajectory.num_steps == 4
    assert last.trajectory.terminated
    assert last.trajectory.states.parts["achieved_goal"][-1].tolist() == (walks()[0][-1] + 4).tolist()
    (last,) = read([parts | {"next_observation": {name: part + 3 for name, part in parts.items()}} | acting])
    assert last.trajectory.states.parts["desired_goal"][-1].tolist() == (walks()[0][-1] + 5).tolist()
    alone = in_memory((), [parts | {"next_observation": walks()[0]} | acting], ())
    assert alone is not None
    assert alone[0].trajectory.num_steps == 3  # nothing says what the goals are after the last action
    assert alone.notes == ("experts: left out: next_observation",)
    later = in_memory((), [parts | {"next_achieved_goal": walks()[0]}], ())
    assert later is not None
    assert later.notes == ("experts: left out: next_achieved_goal",)


@pytest.mark.parametrize("goal", [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0], "reach", None, walks()[0][1:]])
def test_goals_that_are_not_one_for_each_observation_are_left_out(goal: Any) -> None:
    found = in_memory((), [{"observation": walks()[0], "achieved_goal": walks()[0], "desired_goal": goal}], ())
    assert found is not None
    np.testing.assert_array_equal(found[0].trajectory.states, walks()[0])
    assert found.notes == ("experts: left out: achieved_goal, desired_goal",)


def test_lines_of_named_parts_are_read_as_dicts_are(tmp_path: Path) -> None:
    """A file of JSON Lines with a true reward and outcomes beside the parts."""
    rows = walks()[0]
    parts = {"x": rows[:, 0].tolist(), "y": rows[:, 1].tolist()}
    told = {"reward": [0.0, 0.0, 1.0], "success": [0, 0, 0, 1], "done": True}
    marked = {**parts, **told, "goal": [0, 0, 0, 1], "role": "expert"}
    others = {**parts, **told, "goal": None, "role": "negative"}
    file = tmp_path / "set.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in (marked, others)))
    found = load([file])
    assert found.metadata.fields == ("x", "y")
    assert [(each.role, each.goals, each.trajectory.terminated) for each in found] == [
        ("expert", (3,), True),
        ("negative", None, True),
    ]
    rewards = found[0].trajectory.rewards
    assert rewards is not None
    assert rewards.tolist() == [0.0, 0.0, 1.0]
    memory = in_memory([marked, others], (), ())
    assert memory is not None
    for one, other in zip(found, memory, strict=True):
        np.testing.assert_array_equal(one.trajectory.states, other.trajectory.states)
    assert found.notes == (
        f"{file}: states are 'x', 'y'; 'reward', 'done', 'goal', 'role' read beside them; left out: success",
    )
