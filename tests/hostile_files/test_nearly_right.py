"""Files that are one change from right: the command line refuses each in one line with exit code 2."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory

SHIPPED = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"
DEEP = "[" * 3000
DIGITS = "9" * 5000
PLAIN: dict[str, Any] = {
    "observations": np.zeros((4, 2)),
    "episode_lengths": np.array([2, 2]),
    "rewards": np.ones(4),
    "roles": np.array(["expert", "negative"]),
    "tasks": np.array(["a", "b"]),
}


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that a command ends with."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    said = capsys.readouterr().err
    assert code == 2, said
    assert said.count("\n") == 1
    assert "defect" not in said
    assert len(said) < 1000
    return said


def set_of(**parts: Any) -> Demonstrations:
    states = np.arange(6.0).reshape(3, 2)
    trajectory = Trajectory(states, np.array([0, 1]), "go", rewards=np.ones(2), log_probs=-np.ones(2), **parts)
    return Demonstrations(Metadata("vector"), (Demonstration(trajectory, "expert"),))


ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "rewards of texts": ({"rewards": np.array(["a"] * 4)}, "rewards are <U1"),
    "a reward that is not finite": ({"rewards": np.array([np.nan, 1, 1, 1])}, "rewards that are missing or not finite"),
    "rewards in two columns": ({"rewards": np.ones((4, 2))}, "rewards of shape"),
    "one role for all": ({"roles": np.array("expert")}, "1 entries in 'roles' for 2 episodes"),
    "ends that are texts": ({"truncated": np.array(["no", "yes"])}, "expected one bool each"),
    "roles that are bytes": ({"roles": np.array([b"expert", b"negative"])}, "expected one text each"),
    "states of 128 bits": ({"observations": np.zeros((4, 2), np.longdouble)}, "at most 64 bits"),
    "half of a character": ({"tasks": np.array(["a", "\ud800"])}, "is not Unicode"),
    "lengths that are texts": ({"episode_lengths": np.array(["a", "b"])}, "episode_lengths are <U1"),
    "states that go on as others": ({"next_observations": np.zeros((4, 3))}, "states of one shape and type"),
    "last states of another type": ({"final_observations": np.zeros((2, 2), np.float32)}, "states of one shape"),
}


@pytest.mark.parametrize(("arrays", "said"), ARRAYS.values(), ids=ARRAYS)
def test_arrays(arrays: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "a.npz", **{**PLAIN, **arrays})
    assert said in refused(capsys, "demos", "inspect", tmp_path / "a.npz")


def test_a_folder_of_two_widths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "expert_a.npz", observations=np.zeros((4, 2)), episode_lengths=np.array([4]))
    np.savez(tmp_path / "expert_b.npz", observations=np.zeros((4, 3)), episode_lengths=np.array([4]))
    assert "expected one kind and width" in refused(capsys, "demos", "inspect", tmp_path)


@pytest.mark.parametrize("indices", [np.array([["a"]]), np.array([[2]]), np.array(2)])
def test_indices_of_imitation(indices: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "expert.npz", obs=np.zeros((6, 2)), acts=np.zeros(4), indices=indices)
    assert "indices are" in refused(capsys, "demos", "inspect", tmp_path / "expert.npz")


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 2",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, 2)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 70368744177664)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 8)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1," * 70 + ")}",
        "(" * 3000,
    ],
)
def test_headers_of_arrays(header: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "expert.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("observations", "episode_lengths"):
            text = header.encode()
            archive.writestr(f"{name}.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + bytes(64))
    assert "is damaged" in refused(capsys, "demos", "inspect", path)


def test_actions_of_another_shape_than_the_metadata_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.parquet"
    save(set_of(), path)
    table = pq.read_table(path)
    about = json.loads(pq.read_metadata(path).metadata[b"grace_irl"]) | {"action_shape": [3]}
    pq.write_table(table.replace_schema_metadata({"grace_irl": json.dumps(about)}), path)
    assert "one shape" in refused(capsys, "demos", "inspect", path)


def test_a_column_of_nulls_of_no_step_is_no_warning(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    path = tmp_path / "expert.parquet"
    pq.write_table(pa.table({"episode": [0], "state": [[1.0]], "reward": pa.nulls(1)}), path)
    assert main(["demos", "inspect", str(path)]) == 0
    assert not recwarn.list


@pytest.mark.parametrize("column", ["episode", "state"])
def test_columns_of_different_lengths(column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page that says it has one value of two: an episode would be lost without a word."""
    stream = io.BytesIO()
    table = pa.table({"episode": [0, 1], "state": [[1.0], [2.0]]})
    pq.write_table(table, stream, use_dictionary=False, compression="none")
    data = stream.getvalue()
    count = b"\x2c\x15\x04"  # Thrift: a header of a data page, which begins with the number of its values
    place = data.index(count) if column == "episode" else data.rindex(count)
    (tmp_path / "expert.parquet").write_bytes(data[:place] + b"\x2c\x15\x02" + data[place + 3 :])
    refused(capsys, "demos", "inspect", tmp_path / "expert.parquet")


@pytest.fixture(params=["minari", "minari-arrow"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    pytest.importorskip("minari")
    save(set_of(), tmp_path / "expert-v0", request.param)
    return tmp_path / "expert-v0"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"total_episodes": "many"}, "total_episodes is 'many'"),
        ({"total_episodes": 2**70}, "expected a whole number from 0 to 1,099,511,627,775"),
        ({"observation_space": None}, "no observation_space"),
        ({"grace_irl": '{"kind": "vector", "shape": [-2]}'}, "a shape with a side below 0"),
        ({"grace_irl": '{"kind": "vector", "view": "\\ud800"}'}, "is not usable"),
    ],
)
def test_metadata_of_minari(
    change: dict[str, Any], said: str, dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = dataset / "data" / "metadata.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert said in refused(capsys, "demos", "inspect", dataset)


def test_minari_makes_no_environment_to_learn_its_spaces(
    dataset: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`entry_point` names code, which making the environment would run."""
    file = dataset / "data" / "metadata.json"
    about = json.loads(file.read_text())
    del about["observation_space"]
    (dataset.parent / "hostile_environment.py").write_text(f"open({str(dataset.parent / 'ran')!r}, 'w')\n")
    monkeypatch.syspath_prepend(str(dataset.parent))
    about["env_spec"] = json.dumps({"id": "A-v0", "entry_point": "hostile_environment:make"})
    file.write_text(json.dumps(about))
    assert "no observation_space" in refused(capsys, "demos", "inspect", dataset)
    assert not (dataset.parent / "ran").exists()


@pytest.mark.parametrize("value", ["3", "[", DEEP, '{"goals": 3}', '{"role": 3}', '{"task": "\\ud800"}', "null"])
def test_metadata_of_an_episode_of_minari(value: str, dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = dataset / "data" / "0" / "metadata.json"
    if file.exists():
        file.write_text(json.dumps(json.loads(file.read_text()) | {"grace_irl": value}))
    else:
        h5py = pytest.importorskip("h5py")
        with h5py.File(dataset / "data" / "main_data.hdf5", "r+") as data:
            data["episode_0"].attrs["grace_irl"] = value
    assert "episode 0 is damaged" in refused(capsys, "demos", "inspect", dataset)


def test_batches_of_arrow_that_end_before_they_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Reading them would end the process."""
    pytest.importorskip("minari")
    path = tmp_path / "expert-v0"
    save(set_of(), path, "minari-arrow")
    (file,) = (path / "data" / "0").glob("*.arrow")
    with pa.ipc.open_file(file) as reader:
        batch = reader.get_batch(0)
    observations = batch.column("observations")
    names = [observations.type.field(number).name for number in range(observations.type.num_fields)]
    far = pa.py_buffer(np.array([0, 2**30, 2, 2], np.int32))
    wild = pa.Array.from_buffers(pa.string(), 3, [None, far, pa.py_buffer(b"go")])
    parts = [wild if name == "mission" else observations.field(name) for name in names]
    columns = {name: batch.column(name) for name in batch.schema.names}
    columns["observations"] = pa.StructArray.from_arrays(parts, names)
    changed = pa.record_batch(columns)
    with pa.ipc.new_file(str(file), changed.schema) as writer:
        writer.write_batch(changed)
    assert "episode 0 is damaged" in refused(capsys, "demos", "inspect", path)


TOML = {
    "deep": (f"a = {DEEP}", "nested too deep"),
    "deep by dots": ("a." * 2000 + "a = 1", "nested too deep"),
    "many digits": (f"a = {DIGITS}", "not TOML"),
    "no text": ("\xff", "not a text in UTF-8"),
}
COMMANDS: dict[str, Callable[[Path], list[object]]] = {
    "config": lambda file: ["fit", "--demos", SHIPPED, "--config", file, "--out", file.parent / "run"],
    "goals": lambda file: ["demos", "inspect", SHIPPED, "--goals", file],
    "recipe": lambda file: ["demos", "select", "--recipe", file, "--from", SHIPPED, "--out", file.parent / "out"],
    "collect": lambda file: ["collect", "--recipe", file],
    "compare": lambda file: ["compare", "--resume", file.parent],
}


@pytest.mark.parametrize(("text", "said"), TOML.values(), ids=TOML)
@pytest.mark.parametrize("command", COMMANDS)
def test_settings(command: str, text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "compare.toml"
    file.write_bytes(text.encode("latin-1"))
    assert said in refused(capsys, *COMMANDS[command](file))
    assert [path.name for path in tmp_path.iterdir()] == ["compare.toml"]


@pytest.mark.parametrize("pattern", ["a{99999999999}", "(" * 3000, "a" * 3000 + "("])
def test_conditions(pattern: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.toml").write_text(f"[[file]]\nout = 'a.parquet'\ngoal = '{pattern}'\n")
    assert "no regular expression" in refused(capsys, *COMMANDS["recipe"](tmp_path / "r.toml"))


def test_a_pattern_that_is_searched_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each further letter doubles the time."""
    monkeypatch.setattr("grace_irl.demos.conditions.SEARCH_S", 1.0)
    states = np.zeros((2, 2))
    items = [Demonstration(Trajectory(states, extra_info="a" * 60 + "b"), "expert")]
    save(Demonstrations(Metadata("vector"), tuple(items)), tmp_path / "expert.parquet")
    (tmp_path / "r.toml").write_text("[[file]]\nout = 'a.parquet'\ngoal = '(a+)+$'\n")
    command = ["demos", "select", "--from", str(tmp_path / "expert.parquet"), "--recipe", str(tmp_path / "r.toml")]
    said = refused(capsys, *command, "--out", tmp_path / "out")
    assert "--goal '(a+)+$': searching a text of 61 characters takes more than 1 s" in said
    assert not (tmp_path / "out").exists()


def test_a_pattern_that_a_later_python_reads_otherwise_is_no_warning(tmp_path: Path, recwarn: Any) -> None:
    from grace_irl.demos.select_recipe import read_select_recipe

    (tmp_path / "r.toml").write_text("[[file]]\nout = 'a.parquet'\ngoal = '[[a]'\n")
    read_select_recipe(tmp_path / "r.toml")
    assert not recwarn.list


def test_a_name_that_no_file_can_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.toml").write_text('[[file]]\nout = "a\\u0000.parquet"\n')
    assert "expected the name of a file" in refused(capsys, *COMMANDS["recipe"](tmp_path / "r.toml"))


def test_statistics_of_another_column(tmp_path: Path) -> None:
    """pyarrow ends the process where it looks at such a column: a process of its own reads the file."""
    file = tmp_path / "expert.parquet"
    pq.write_table(pa.table({"episode": [0, 0, 1, 1], "state": [[0.0], [1.0], [2.0], [3.0]]}), file)
    optional, required = (b"\x25" + kind + b"\x18\x07episode" for kind in (b"\x02", b"\x00"))
    data = file.read_bytes()
    assert data.count(optional) == 1
    file.write_bytes(data.replace(optional, required))
    command = [sys.executable, "-m", "grace_irl", "demos", "inspect", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    assert "size statistics that do not fit the column" in done.stderr


def test_names_of_columns_that_are_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "expert.parquet"
    pq.write_table(pa.table({"episode": [0, 0], "state": [[0.0], [1.0]]}), file)
    data = file.read_bytes()
    for name in (b"episode", b"state"):
        file.write_bytes(data.replace(name, b"\xff" + name[1:]))
        refused(capsys, "demos", "inspect", file)


def test_policies_of_no_numbers(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from grace_irl.rl.checkpoint import require_tensors

    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="NaN or infinity"):
            require_tensors({"a": torch.tensor([0.0, value])})
