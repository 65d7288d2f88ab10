"""Records through files, the sandbox, scrambling, prompts, the synthesiser and environments."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grace_irl
from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.files import Format, open_writer
from grace_irl.demos.labels import label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.methods.grace_operators import initialise
from grace_irl.propose.briefing import brief
from grace_irl.propose.material import Material
from grace_irl.propose.views.registry import view_of
from grace_irl.sandbox import open_sandbox
from grace_irl.states import as_state, kind_of_state
from grace_irl.states.layout import StateLayout
from grace_irl.states.record import MOST_PARTS, RECORD, RecordStates
from grace_irl.states.texts import pack
from tests.states.records import Reach, everything, experts, records

HERE = Path(__file__).parent

LOOKS = """
class Reward:
    def __init__(self, extra_info=None):
        assert extra_info == "reach it"

    def reward_fn(self, state):
        assert type(state) is dict and list(state) == ["goal/desired", "mode", "observation", "pixels", "said"]
        kinds = [str(getattr(part, "dtype", type(part).__name__)) for part in state.values()]
        assert kinds == ["float64", "int64", "float64", "uint8", "str"], kinds
        assert state["pixels"].shape == (6, 8, 3) and state["said"].startswith("hallo")
        state["observation"][0] = 7.0  # a copy of its own
        return float(state["goal/desired"][1]) + int(state["mode"])
"""


@pytest.fixture(autouse=True)
def _minari_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


@pytest.mark.parametrize(
    ("name", "kind"), [("set.parquet", None), ("set.npz", None), ("set-v0", "minari"), ("set-v0", "minari-arrow")]
)
def test_files_hold_every_part(name: str, kind: Format | None, tmp_path: Path) -> None:
    if kind is not None:
        pytest.importorskip("minari")
    wanted = records()
    save(wanted, tmp_path / name, kind)
    found = load([tmp_path / name])
    assert found.metadata.kind == "record"
    assert [item.trajectory.digest for item in found] == [item.trajectory.digest for item in wanted]
    assert [item.trajectory.extra_info for item in found] == [item.trajectory.extra_info for item in wanted]
    for one, other in zip(found, wanted, strict=True):
        for part, array in other.trajectory.states.parts.items():
            assert one.trajectory.states.parts[part].dtype.kind == array.dtype.kind
            assert not one.trajectory.states.parts[part].flags.writeable


def test_imitations_layout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="records, which imitation's layout cannot hold"):
        save(records(), tmp_path / "set.npz", "imitation")
    assert list(tmp_path.iterdir()) == []


def test_digests_tell_parts_apart() -> None:
    numbers = np.arange(6.0).reshape(3, 2)
    made = [
        {"a": numbers, "b": numbers},
        {"a": numbers, "c": numbers},
        {"a": numbers, "b": numbers + 1},
        {"a": numbers.astype(np.float32), "b": numbers},
        {"a": numbers, "b": pack(["x", "y", "z"])},
        {"a": numbers, "b": pack(["xy", "", "z"])},
        {"a": numbers[:, :1], "b": np.concatenate([numbers[:, 1:], numbers], axis=1)},
    ]
    digests = {Trajectory(RecordStates(parts)).digest for parts in made}
    assert len(digests) == len(made)
    wide = pack(["x", "y", "z"]).astype("S40")
    assert Trajectory(RecordStates({"a": numbers, "b": wide})).digest in digests  # padding is no part of a text


@pytest.mark.parametrize("mode", ["batch", "strict"])
def test_programs_get_a_dict(mode: str) -> None:
    trajectories = [item.trajectory for item in records()]
    with open_sandbox(workers=1) as sandbox:
        handle = sandbox.put(trajectories)
        outcome = sandbox.run(LOOKS, handle, range(len(trajectories)), mode=mode)  # type: ignore[arg-type]
    assert (outcome.status, outcome.message) == ("ok", "")
    for rewards, trajectory in zip(outcome.rewards, trajectories, strict=True):
        parts = trajectory.states.parts
        np.testing.assert_allclose(rewards, parts["goal/desired"][:, 1].astype(np.float64) + parts["mode"])


def test_bytes_that_are_no_text_are_refused() -> None:
    assert as_state({"said": "ä".encode()}) == {"said": "ä"}
    with pytest.raises(InputError, match="part 'said' of a state: a text that is not UTF-8"):
        as_state({"said": b"\xff"})


def test_types_say_nothing_of_the_file() -> None:
    """A part that one file stores in single precision and another in double reaches programs alike."""
    fine = RecordStates({"x": np.full((2, 1), 1 / 3), "n": np.arange(2, dtype=np.int16)})
    coarse = RecordStates({"x": np.full((2, 1), 1 / 3, np.float32), "n": np.arange(2)})
    source = (
        "class Reward:\n    def __init__(self, extra_info=None): pass\n"
        "    def reward_fn(self, state): return float(state['x'][0]) + state['n'].itemsize\n"
    )
    with open_sandbox(workers=1) as sandbox:
        handle = sandbox.put([Trajectory(fine), Trajectory(coarse)])
        outcome = sandbox.run(source, handle, [0, 1])
    np.testing.assert_array_equal(outcome.rewards[0], outcome.rewards[1])


def test_a_state_on_the_wire_comes_back() -> None:
    state = everything(1, 0)[0]
    layout = StateLayout.from_json(json.loads(json.dumps(StateLayout.of(RECORD, state).to_json())))
    found = layout.state(layout.encoded(state))
    for name, part in as_state(state).items():
        np.testing.assert_array_equal(found[name], part)
        assert type(found[name]) is type(part)
    with pytest.raises(InputError, match="expected parts"):
        layout.encoded({"observation": 1.0})


@pytest.mark.parametrize(
    ("first", "later", "said"),
    [
        (0, 0.5, "part 'x' of a state: float64; expected int64"),
        (np.uint8(0), 300, "part 'x' of a state: int64; expected uint8"),
        (0.5, "half", "part 'x' of a state: <U4; expected float64"),
    ],
)
def test_a_state_whose_numbers_would_change_on_the_wire_is_refused(first: Any, later: Any, said: str) -> None:
    with pytest.raises(InputError, match=f"{said}, as in the first one: "):
        StateLayout.of(RECORD, {"x": first}).encoded({"x": later})


HOSTILE = ("../x", "/etc/x", "", "a//b", "a/", "..", "a\nb", "a\x1b[2J", "x" * 201, "a\\b", "\u202e", "a\0b")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_refused(name: str, tmp_path: Path) -> None:
    numbers = np.zeros((2, 1))
    with pytest.raises(InputError, match="printable characters") as caught:
        Trajectory(RecordStates({"a": numbers, name: numbers}))
    assert "\x1b" not in str(caught.value)
    state = pa.array(numbers.tolist(), pa.list_(pa.float64(), 1))
    table = pa.table({"episode": [0, 0], f"state/{name}": state, "state/b": state})
    pq.write_table(table, tmp_path / "expert.parquet")
    with pytest.raises(InputError):
        load([tmp_path / "expert.parquet"])


def test_too_many_names_and_names_inside_others_are_refused() -> None:
    numbers = np.zeros((2, 1))
    with pytest.raises(InputError, match="expected 1 to 1,000"):
        Trajectory(RecordStates({f"p{n}": numbers for n in range(MOST_PARTS + 1)}))
    with pytest.raises(InputError, match="no name inside another"):
        Trajectory(RecordStates({"a": numbers, "a/b": numbers}))


def test_parts_of_an_archive_may_not_leave_it(tmp_path: Path) -> None:
    save(records(), tmp_path / "good.npz")
    with zipfile.ZipFile(tmp_path / "good.npz") as good, zipfile.ZipFile(tmp_path / "expert.npz", "w") as bad:
        for name in good.namelist():
            bad.writestr(name.replace("observations/mode", "observations/../mode"), good.read(name))
    with pytest.raises(InputError, match=r"a part named '\.\./mode'"):
        load([tmp_path / "expert.npz"])


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"x": np.array([[0.0], [np.nan]])}, "step 1, part 'x': NaN"),
        ({"x": np.array([b"\xff", b"a"])}, "not UTF-8"),
        ({"x": np.zeros((2, 1), np.complex128)}, "complex128; expected numbers"),
        ({"x": np.zeros((2, 0))}, "at least one number"),
        (
            {"x": np.array([0, 1 << 63], np.uint64)},
            r"part 'x': 9223372036854775808; expected whole numbers below 2\*\*63",
        ),
    ],
)
def test_parts_that_cannot_be_used_are_refused(parts: dict[str, np.ndarray], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Trajectory(RecordStates(parts))


@pytest.mark.parametrize(
    ("first", "later", "said"),
    [
        ({"a": 1}, {"b": 2}, "part 'a' of the state after step 1: missing; expected shape ()"),
        ({"a": 1}, {"a": 1, "b": "x"}, "part 'b' of the state after step 1: a text; expected no such part"),
        ({"a": np.zeros(2)}, {"a": np.zeros(3)}, "part 'a' of the state after step 1: shape (3,); expected shape (2,)"),
        ({"a": "x"}, {"a": 3}, "part 'a' of the state after step 1: shape (); expected a text"),
        (np.zeros(2), np.zeros(3), "the state after step 1: shape (3,); expected shape (2,)"),
    ],
)
def test_states_that_change_their_form_within_an_episode_are_refused(first: Any, later: Any, said: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(said)}, as in the first state: correct the environment$"):
        kind_of_state(first, "here").online([first, later])


def test_a_set_has_one_form() -> None:
    one, other = RecordStates({"x": np.zeros((2, 1))}), RecordStates({"x": np.zeros((2, 1), np.int64)})
    items = tuple(Demonstration(Trajectory(states, source="a"), "expert") for states in (one, other))
    with pytest.raises(InputError, match=r"'x' \(int64 of shape \(1,\)\) beside a with 'x' \(float64"):
        Demonstrations(Metadata("record"), items)


def test_a_column_that_is_no_part_is_refused(tmp_path: Path) -> None:
    table = pa.table({"episode": [0], "observation.state": [[1.0]], "observation.image": [{"bytes": b"x"}]})
    pq.write_table(table, tmp_path / "expert.parquet")
    with pytest.raises(InputError, match=r"column 'observation.image' is struct.*expected numbers"):
        load([tmp_path / "expert.parquet"])


def test_robots_columns_are_read(tmp_path: Path) -> None:
    """As LeRobot writes them: one row per step, the last action leads to no state that is recorded."""
    table = pa.table(
        {
            "observation.state": pa.array([[0.0, 1.0]] * 5, pa.list_(pa.float32(), 2)),
            "observation.environment.phase": [0, 1, 2, 0, 1],
            "action": pa.array([[0.5]] * 5, pa.list_(pa.float32(), 1)),
            "episode_index": [0, 0, 0, 1, 1],
            "frame_index": [0, 1, 2, 0, 1],
            "next.reward": [0.0, 0.0, 1.0, 0.0, 1.0],
            "next.done": [False, False, True, False, True],
        }
    )
    pq.write_table(table, tmp_path / "expert.parquet")
    found = load([tmp_path / "expert.parquet"])
    assert [len(item.trajectory.states) for item in found] == [3, 2]
    assert list(found[0].trajectory.states.parts) == ["environment/phase", "state"]
    assert found[0].trajectory.states.parts["environment/phase"].tolist() == [0, 1, 2]
    assert found[0].trajectory.actions.shape == (2, 1)
    assert found[0].trajectory.terminated


def test_memory_is_asked_for(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    states = RecordStates({"pixels": rng.integers(0, 255, (40, 84, 84, 3), dtype=np.uint8), "x": np.zeros((40, 1))})
    item = Demonstration(Trajectory(states), "expert")
    save(Demonstrations(Metadata("record"), (item,)), tmp_path / "set.parquet")
    with pytest.raises(InputError, match=r"needs .* of memory"):
        load([tmp_path / "set.parquet"], max_memory="400K")


def test_a_scrambled_copy_says_nothing_and_keeps_what_is_equal(tmp_path: Path) -> None:
    save(records(), tmp_path / "set.parquet")
    assert (
        main(["demos", "scramble", str(tmp_path / "set.parquet"), str(tmp_path / "copy.parquet"), "--seed", "3"]) == 0
    )
    again = ["demos", "scramble", str(tmp_path / "set.parquet"), str(tmp_path / "again.parquet")]
    assert main([*again, "--map", str(tmp_path / "copy.scramble.json")]) == 0
    first, copies = records(), load([tmp_path / "copy.parquet"])
    assert [c.trajectory.digest for c in copies] == [c.trajectory.digest for c in load([tmp_path / "again.parquet"])]
    about = json.loads((tmp_path / "copy.scramble.json").read_text())["parts"]
    assert sorted(part["name"] for part in about.values()) == [f"p{n}" for n in range(5)]
    for one, other in zip(copies, first, strict=True):
        mine, theirs = one.trajectory.states.parts, other.trajectory.states.parts
        assert len(set(mine[about["said"]["name"]].tolist())) == len(set(theirs["said"].tolist()))
        assert not set(mine[about["said"]["name"]].tolist()) & set(theirs["said"].tolist())
        pixels, codes = mine[about["pixels"]["name"]], np.array(about["pixels"]["codes"])
        back = np.empty_like(pixels.reshape(len(pixels), -1))
        back[:, about["pixels"]["order"]] = np.argsort(codes)[pixels.reshape(len(pixels), -1)]
        np.testing.assert_array_equal(back.reshape(pixels.shape), theirs["pixels"])


def test_whole_numbers_that_scrambling_would_overflow_are_refused() -> None:
    states = RecordStates({"x": np.array([[5], [5 - 2**63]])})
    with pytest.raises(InputError, match=r"part 'x': .* times its factor is beyond int64; expected smaller whole"):
        RECORD.draw_scrambler(states, 0).states(states, str, "set")


def test_prompts_name_parts() -> None:
    problem = label(records(), "last")
    view = view_of(problem.items, problem.metadata)
    assert "state['mode']: a number (int64)" in view.about
    assert "state['pixels']: a numpy array of uint8 with shape (6, 8, 3)" in view.about
    states = problem.items[0].trajectory.states
    shown = view.state(states[0])
    assert "said='hallo 0 – é'" in shown
    assert "mode=" in shown
    assert view.change(states[0], states[0]) == "no change"
    assert "said='hallo 1 – é'" in view.change(states[0], states[1])


@pytest.mark.parametrize("names", [("said",), ("pixels",), ("pixels", "said")])
def test_prompts_about_records_without_small_numbers(names: tuple[str, ...]) -> None:
    parts = [{"pixels": np.full((8, 8, 3), step, np.uint8), "said": f"step {step}"} for step in (0, 0, 0, 1)]
    states = RECORD.online([{name: part[name] for name in names} for part in parts])
    items = (Demonstration(Trajectory(states), "expert"), Demonstration(Trajectory(states[:3]), "negative"))
    briefing = brief(label(Demonstrations(Metadata("record"), items), "last"))
    prompt = initialise(briefing, Material(seed=1))
    assert "2..3: no change\n" in prompt.user
    assert ("said='step 1'" in prompt.user) == ("said" in names)
    assert ("Too large to be written here, even where they change: pixels." in prompt.user) == ("pixels" in names)


def test_names_cannot_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(experts(4), tmp_path / "expert.parquet")
    command = ["fit", "--demos", str(tmp_path / "expert.parquet"), "--no-field-names", "--out", str(tmp_path / "run")]
    assert main([*command, "--proposer", "synthesis"]) == 2
    assert "programs need the names of their parts" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_from_an_environment_to_a_reward_that_trains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("stable_baselines3")
    save(experts(16), tmp_path / "expert.parquet")
    environment = f"{HERE / 'records.py'}:make"
    collect = [
        "collect",
        "--env",
        environment,
        "--policy",
        "random",
        "--episodes",
        "16",
        "--role",
        "negative",
        "--task",
        "default",
    ]
    assert main([*collect, "--out", str(tmp_path / "negative.parquet")]) == 0
    assert main(["demos", "inspect", str(tmp_path / "negative.parquet")]) == 0
    assert "inner/phase" in capsys.readouterr().out
    sets = {"demos": [tmp_path / "expert.parquet"], "negatives": [tmp_path / "negative.parquet"]}
    grace_irl.fit(**sets, out=tmp_path / "run", max_seconds=15)
    assert 'state["achieved_goal"]' in (tmp_path / "run" / "reward.py").read_text()
    assert "achieved_goal[0]" in (tmp_path / "run" / "report.html").read_text()
    trained(tmp_path / "run" / "reward.py")


def trained(path: Path) -> None:
    """Trains a few steps of PPO on a reward, wrapped in both ways."""
    import gymnasium
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    class Flat(gymnasium.ObservationWrapper[dict[str, np.ndarray], np.ndarray, dict[str, object]]):
        """SB3 takes no nested dicts."""

        def __init__(self, environment: Reach) -> None:
            super().__init__(environment)
            spaces = environment.observation_space
            self.observation_space = gymnasium.spaces.Dict(
                {"inner/phase": spaces["inner"]["phase"], **{k: spaces[k] for k in ("achieved_goal", "desired_goal")}}
            )

        def observation(self, observation: dict[str, object]) -> dict[str, np.ndarray]:
            return RECORD.copied(observation)

    reward = grace_irl.load_reward(path)
    venv = reward.wrap_vec(DummyVecEnv([lambda: Flat(Reach())] * 2))
    PPO("MultiInputPolicy", venv, n_steps=32, batch_size=32, n_epochs=1).learn(64)
    venv.close()
    alone, trusted = reward.wrap(Reach()), grace_irl.load_reward(path, trust=True).wrap(Reach())
    for environment in (alone, trusted):
        environment.reset(seed=0)
        environment.action_space.seed(0)
    for _ in range(5):
        action = alone.action_space.sample()
        assert alone.step(action)[1] == pytest.approx(trusted.step(action)[1])
    alone.close()
    trusted.close()


def test_a_record_is_written_with_one_form(tmp_path: Path) -> None:
    forms = ({"x": np.zeros((2, 1))}, {"x": np.zeros((2, 1)), "y": np.zeros((2, 1))})
    one, other = (Demonstration(Trajectory(RecordStates(parts)), "expert") for parts in forms)
    with open_writer(tmp_path / "set.parquet", Metadata("record")) as writer:
        writer.add(one)
        with pytest.raises(InputError, match="no part 'y'"):
            writer.add(other)
