"""Python objects as demonstrations: what becomes of their states, and what is refused in one line."""

from typing import Any

import numpy as np
import pandas
import polars
import pytest

from grace_irl.demos.foreign.columns import Columns
from grace_irl.demos.foreign.objects import source_of
from grace_irl.demos.given import in_memory, trajectories_of
from grace_irl.demos.trajectory import Demonstration, Trajectory
from grace_irl.errors import InputError

NAMES = ("across", "height")


def walks(count: int = 3, steps: int = 4) -> list[np.ndarray]:
    return [np.arange(steps * 2, dtype=float).reshape(steps, 2) + 10 * number for number in range(count)]


def read(value: Any, **more: Any) -> list[Demonstration]:
    found = in_memory((), value, (), **more)
    assert found is not None
    assert {each.role for each in found} == {"expert"}
    return list(found)


def states(value: Any, **more: Any) -> list[np.ndarray]:
    return [each.trajectory.states for each in read(value, **more)]


def rows(episodes: list[np.ndarray]) -> dict[str, list[Any]]:
    ids = [number for number, each in enumerate(episodes) for _ in each]
    numbers = np.concatenate(episodes)
    return {"episode": ids, **{name: numbers[:, place].tolist() for place, name in enumerate(NAMES)}}


SHAPES = {
    "a list": walks(),
    "a tuple": tuple(walks()),
    "lists of lists": [each.tolist() for each in walks()],
    "an array": np.stack(walks()),
    "an array of objects": np.array([*walks(), None], object)[:-1],
    "observations": [{"observations": each} for each in walks()],
    "pandas": pandas.DataFrame(rows(walks())),
    "polars": polars.DataFrame(rows(walks())),
    "lazy polars": polars.LazyFrame(rows(walks())),
    "an index": pandas.DataFrame(rows(walks())).set_index("episode"),
    "arrow": polars.DataFrame(rows(walks())).to_arrow(),
    "a dict of columns": rows(walks()),
    "rows": pandas.DataFrame(rows(walks())).to_dict("records"),
    "trajectories": [Trajectory(each) for each in walks()],
    "cells of lists": pandas.DataFrame(
        {"episode": rows(walks())["episode"], "state": list(np.concatenate(walks()))},
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_states_come_out_of_every_shape(name: str) -> None:
    found = states(SHAPES[name])
    assert len(found) == 3
    for one, other in zip(found, walks(), strict=True):
        np.testing.assert_array_equal(one, other)
    for trajectory in trajectories_of(SHAPES[name], "trajectories"):
        assert trajectory.kind == "vector"


def test_columns_in_another_order_are_put_in_the_order_of_the_first_set() -> None:
    frame = pandas.DataFrame(rows(walks()))
    found = in_memory((), frame, frame[["height", "episode", "across"]])
    assert found is not None
    assert found.metadata.fields == NAMES
    experts, negatives = ([*found.select(role=role)] for role in ("expert", "negative"))
    for one, other in zip(experts, negatives, strict=True):
        np.testing.assert_array_equal(one.trajectory.states, other.trajectory.states)


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


def test_pictures_are_images_and_codes_are_grids() -> None:
    random = np.random.default_rng(0)
    assert read([random.integers(0, 256, (3, 8, 8, 3), np.uint8)])[0].trajectory.kind == "image"
    assert read([random.integers(0, 9, (3, 8, 8, 3), np.uint8)])[0].trajectory.kind == "grid"
    assert read([random.integers(0, 9, (3, 8, 8, 3), np.uint8)], kind="image")[0].trajectory.kind == "image"


def test_as_many_actions_as_states_lose_the_last_one() -> None:
    (first,) = read([{"obs": walks()[0], "acts": np.arange(4), "rews": np.arange(4.0), "terminal": True}])
    assert first.trajectory.actions.tolist() == [0, 1, 2]
    assert first.trajectory.rewards.tolist() == [0, 1, 2 + 3]
    assert not first.trajectory.terminated  # the state after the last action is not there
    (whole,) = read([{"obs": walks()[0], "acts": np.arange(3), "terminal": True}])
    assert whole.trajectory.terminated


def path(states: np.ndarray, **more: Any) -> dict[str, Any]:
    """An episode with one row for each step, as rollout loops write it."""
    ends = np.arange(1, len(states)) == len(states) - 1
    return {
        "observation": states[:-1],
        "next_observation": states[1:],
        "action": np.arange(len(states) - 1),
        "reward": ends.astype(float),
        "terminal": ends,
        **more,
    }


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


def test_demos_in_memory_need_roles() -> None:
    with pytest.raises(
        InputError, match=r"^demos: episodes without a role; expected the arguments experts and negatives"
    ):
        in_memory([walks()[0]], (), ())
    assert in_memory([path(walks()[0], role="expert")], (), ()) is not None


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


def test_what_the_data_say_beside_the_states_is_kept() -> None:
    table = rows(walks(2))
    table |= {"role": ["negative"] * 8, "task": ["reach"] * 8, "instruction": ["go"] * 8, "reward": [1.0] * 8}
    table |= {"action_x": [5.0] * 8, "action_y": [6.0] * 8, "done": [False] * 7 + [True], "note": ["?"] * 8}
    found = in_memory(pandas.DataFrame(table), None, walks())
    assert found is not None
    first, second = (each for each in found if each.task == "reach")
    assert first.role == "negative"
    assert first.trajectory.extra_info == "go"
    assert first.trajectory.actions.tolist() == [[5.0, 6.0]] * 3
    assert first.trajectory.rewards.tolist() == [1, 1, 1 + 1]
    assert (first.trajectory.terminated, second.trajectory.terminated) == (False, True)
    assert any("left out: 'note'" in note for note in found.notes)


def buffers() -> Any:
    return pytest.importorskip("stable_baselines3.common.buffers")


def boxes(width: int = 2) -> Any:
    box = pytest.importorskip("gymnasium").spaces.Box
    return box(-99, 99, (width,), np.float32), box(-9, 9, (1,), np.float32)


@pytest.mark.parametrize("optimised", [False, True])
def test_a_full_replay_buffer_of_two_environments_is_read_in_the_order_of_time(optimised: bool) -> None:
    buffer = buffers().ReplayBuffer(
        12, *boxes(), device="cpu", n_envs=2, optimize_memory_usage=optimised, handle_timeout_termination=not optimised
    )
    for step in range(9):  # 6 places for each environment: the first three steps are overwritten
        done = np.array([step % 3 == 2, False])
        infos = [{"TimeLimit.truncated": bool(step == 5)}, {}]
        state = np.array([[step, 0.0], [step, 1.0]])
        buffer.add(state, state + np.array([1, 0]), np.zeros((2, 1)), np.zeros(2), done, infos)
    found = read(buffer)
    numbers = [each.trajectory.states[:, 0].tolist() for each in found]
    if optimised:  # the state after the last step of an episode is the first one of the next
        assert numbers == [[4, 5], [6, 7, 8], [4, 5, 6, 7, 8]]
    else:
        assert numbers == [[3, 4, 5, 6], [6, 7, 8, 9], [3, 4, 5, 6, 7, 8, 9]]
        assert [(each.trajectory.terminated, each.trajectory.truncated) for each in found] == [
            (False, True),
            (True, False),
            (False, False),
        ]


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("n_envs", [1, 2])
def test_a_rollout_buffer_is_read_before_and_after_it_has_been_flattened(n_envs: int, width: int) -> None:
    torch = pytest.importorskip("torch")
    buffer = buffers().RolloutBuffer(4, *boxes(width), device="cpu", n_envs=n_envs)
    for step in range(4):
        start = np.array([step in (0, 2), step == 0])[:n_envs]
        state = np.array([[step, 0.0], [step, 1.0]], np.float32)[:n_envs, :width]
        zeros = torch.zeros(n_envs)
        buffer.add(state, np.full((n_envs, 1), step), np.zeros(n_envs), start, zeros, zeros)

    def found() -> list[tuple[list[list[float]], list[list[float]]]]:
        return [(each.trajectory.states.tolist(), each.trajectory.actions.tolist()) for each in read(buffer)]

    before = found()
    expected = [([[0, 0], [1, 0]], [[0]]), ([[2, 0], [3, 0]], [[2]])]
    expected += [([[0, 1], [1, 1], [2, 1], [3, 1]], [[0], [1], [2]])] if n_envs == 2 else []
    assert before == [([state[:width] for state in states], actions) for states, actions in expected]
    next(iter(buffer.get(2)))
    assert found() == before


def test_infos_of_imitation_are_never_read() -> None:
    class Infos:
        def __len__(self) -> int:
            raise AssertionError("read")

        __getitem__ = __iter__ = __len__

    class TrajectoryOfOthers:
        obs, acts, infos, terminal = walks()[0], np.zeros(3), Infos(), True

    assert read([TrajectoryOfOthers()])[0].trajectory.num_steps == 3


BAD: dict[str, tuple[Any, str]] = {
    "a number": (5, "int '5'; expected paths"),
    "a function": (walks, "function"),
    "an array of one episode": (walks()[0], r"shape \(4, 2\).*: pass \[experts\] if it is one episode"),
    "states in place of episodes": (list(walks()[0]), r"episode 0: states are float64 of shape \(2,\)"),
    "ragged": ([[[1, 2], [3]]], "episode 0: rows of different lengths"),
    "texts": ([np.array([["a"], ["b"]])], "episode 0: "),
    "other widths": ([walks()[0], walks()[1][:, :1]], "states of 1 numbers beside"),
    "an empty dict": ([{}], "episode 0: an empty dict"),
    "other parts": ([{"a": [1, 2]}, {"b": [1, 2]}], "episode 1: parts 'b'; expected 'a'"),
    "parts of other lengths": ([{"a": [1, 2], "b": [1, 2, 3]}], r"parts of \[2, 3\] numbers"),
    "parts of other numbers of episodes": (
        {"a": np.zeros((5, 4, 2)), "b": np.zeros((3, 4, 2))},
        "parts of {'a': 5, 'b': 3} episodes",
    ),
    "a dict of nothing known": ({"x": walks()[0]}, "a dict of 'x'; expected a list of dicts"),
    "too few actions": ([{"obs": walks()[0], "acts": np.zeros(2)}], "2 actions for 4 states; expected 3"),
    "actions that are texts": ([{"obs": walks()[0], "acts": ["a", "b", "c"]}], "actions are texts"),
    "an empty frame": (pandas.DataFrame({"episode": [], "x": []}), "an empty table"),
    "no column of episodes": (pandas.DataFrame({"x": [1, 2]}), r"no column of episodes among 'x'.*episode_column"),
    "no column of states": (pandas.DataFrame({"episode": [1], "note": ["a"]}), "no column of numbers for the states"),
    "episodes that come back": (pandas.DataFrame({"episode": [0, 1, 0], "x": [1, 2, 3]}), "episode 0 comes back"),
    "another role": (
        pandas.DataFrame({"episode": [0], "x": [1.0], "label": ["good"]}),
        "column 'label' holds 'good'; expected 'expert' or 'negative'",
    ),
    "an empty list": ([], "experts: an empty list"),
    "the text of a table": ("episode,x\n0,1\n", "experts: a text of 14 characters"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_holds_no_episodes_is_refused_in_one_line(name: str) -> None:
    value, said = BAD[name]
    with pytest.raises(InputError, match=said.replace("episode_column", "episode.column")) as error:
        in_memory((), value, ())
    assert "\n" not in str(error.value)
    assert "expected" in str(error.value)


def test_a_nan_in_a_frame_names_its_field() -> None:
    table = pandas.DataFrame(rows(walks()))
    table.loc[5, "height"] = np.nan
    with pytest.raises(InputError, match="episode 1, step 1, field 'height'"):
        in_memory((), table, ())


def test_the_chosen_columns_are_the_states_in_their_order() -> None:
    from grace_irl.demos.foreign.table import Columns

    table = pandas.DataFrame(rows(walks())).rename(columns={"episode": "which"})
    found = in_memory((), table, (), columns=Columns(("height", "across"), "which"))
    assert found is not None
    assert found.metadata.fields == ("height", "across")
    np.testing.assert_array_equal(found[0].trajectory.states, walks()[0][:, ::-1])
    with pytest.raises(InputError, match="no column 'width'; expected one of 'which', 'across', 'height'"):
        in_memory((), table, (), columns=Columns(("width",), "which"))


def test_paths_stay_paths() -> None:
    assert in_memory("a.parquet", None, ()) is None
    assert in_memory((), ["a.parquet"], ["b.parquet"]) is None


def test_a_source_hands_out_copies() -> None:
    held = walks()
    source = source_of(held, "experts")
    (first, *_) = source.demonstrations("expert", np.empty)
    first.trajectory.states[:] = 0
    assert held[0].any()


def test_chosen_columns_of_what_is_no_table_are_refused() -> None:
    """They would have no effect, and a flag that tells the sides apart would stay in the states."""
    rows = [{"x": np.zeros(4), "done": np.zeros(4)} for _ in range(2)]
    with pytest.raises(InputError, match="experts: a list of dict, and columns are chosen; expected a table"):
        source_of(rows, "experts", Columns(("x",)))
    with pytest.raises(InputError, match="experts: a list of ndarray, and columns are chosen"):
        source_of(walks(), "experts", Columns((), "episode"))


MASKED = np.ma.masked_array(walks()[0], walks()[0] == 3)


@pytest.mark.parametrize(
    "value",
    [
        [MASKED],
        np.ma.stack([MASKED, MASKED]),
        [list(MASKED)],
        [{"observations": walks()[0], "actions": MASKED[:3]}],
        [{"across": MASKED[:, 0], "height": MASKED[:, 1]}],
    ],
    ids=["an episode", "an array", "rows", "actions", "parts"],
)
def test_a_value_under_a_mask_is_no_number(value: Any) -> None:
    with pytest.raises(InputError, match=r"experts: episode 0.*: masked values; expected numbers"):
        read(value)
    (whole,) = read([np.ma.masked_array(walks()[0])])  # a mask that hides nothing
    np.testing.assert_array_equal(whole.trajectory.states, walks()[0])
