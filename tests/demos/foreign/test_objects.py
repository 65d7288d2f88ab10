"""Python objects as demonstrations: what becomes of their states, and what is refused in one line."""

from typing import Any

import numpy as np
import pandas
import polars
import pytest

from grace_irl.demos.foreign.columns import Columns
from grace_irl.demos.foreign.objects import source_of
from grace_irl.demos.given import in_memory, trajectories_of
from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from tests.demos.foreign.walks import path, read, walks

NAMES = ("across", "height")


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


def test_pictures_are_images_and_codes_are_grids() -> None:
    random = np.random.default_rng(0)
    assert read([random.integers(0, 256, (3, 8, 8, 3), np.uint8)])[0].trajectory.kind == "image"
    assert read([random.integers(0, 9, (3, 8, 8, 3), np.uint8)])[0].trajectory.kind == "grid"
    assert read([random.integers(0, 9, (3, 8, 8, 3), np.uint8)], kind="image")[0].trajectory.kind == "image"


def test_demos_in_memory_need_roles() -> None:
    with pytest.raises(
        InputError, match=r"^demos: episodes without a role; expected the arguments experts and negatives"
    ):
        in_memory([walks()[0]], (), ())
    assert in_memory([path(walks()[0], role="expert")], (), ()) is not None


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
