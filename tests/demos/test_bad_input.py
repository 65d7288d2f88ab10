"""Data that cannot be used: one line says what was found, what was expected and what to do."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grace_irl.demos import iter_trajectories, load, save
from grace_irl.demos.label_rule import RuleChoice, require_roles_for
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError


def refuses(path: Path, *words: str) -> str:
    """The one line that `load` refuses a path with; it names the path and the words."""
    with pytest.raises(InputError) as caught:
        load([path])
    message = str(caught.value)
    assert "\n" not in message
    for word in (path.name, *words):
        assert word in message, message
    return message


def table(**columns: object) -> pa.Table:
    states = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6.0)), 2)
    return pa.table({"episode": [0, 0, 1], "state": states, **columns})


def write_parquet(changes: Callable[[pa.Table], pa.Table]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "expert.parquet"
        pq.write_table(changes(table()), path)
        return path

    return make


def write_npz(**arrays: object) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "expert.npz"
        np.savez(path, **arrays)  # type: ignore[arg-type]
        return path

    return make


def write_bytes(name: str, content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content)
        return path

    return make


ROWS = {"observations": np.zeros((5, 2)), "actions": np.zeros((5, 1)), "episode_lengths": np.array([5])}
NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 3, [None, pa.py_buffer(np.array([0, 2, 4, 6], np.int32)), pa.py_buffer(b"\xff\xfe" * 3)]
)
NAN = np.array([[0, 0], [0, 0], [0, np.nan], [1, 1], [1, 1.0]])

NULLS = pa.array([None, 1.0, None])

CASES: dict[str, tuple[Callable[[Path], Path], tuple[str, ...]]] = {
    "missing": (lambda folder: folder / "nothing.parquet", ("no such file", "check the path")),
    "empty file": (write_bytes("expert.parquet", b""), ("empty file", "expected demonstrations")),
    "unknown format": (write_bytes("expert.doc", b"1,2"), ("'.doc'", ".parquet, .npz", "Minari")),
    "no suffix": (write_bytes("expert", b"1,2"), ("unknown format",)),
    "no parquet": (
        write_bytes("expert.parquet", b"PAR1 and then nothing"),
        ("not readable as Parquet", "again"),
    ),
    "no npz": (write_bytes("expert.npz", b"PK nothing"), ("not readable as npz", "again")),
    "pkl": (write_bytes("expert.pkl", pickle.dumps([1])), ("pickle", "runs whatever code", "Parquet or npz")),
    "PKL": (write_bytes("expert.PKL", b"x"), ("pickle",)),
    "pt": (write_bytes("expert.pt", b"x"), ("pickle",)),
    "npy": (write_bytes("expert.npy", b"x"), ("pickle",)),
    "pickled array": (
        write_npz(**{**ROWS, "observations": np.array([{}] * 5)}),
        ("'observations'", "pickled objects"),
    ),
    "pickled lengths": (write_npz(**{**ROWS, "episode_lengths": np.array([{}])}), ("pickled objects",)),
    "no episode lengths": (
        write_npz(observations=np.zeros((5, 2))),
        ("no array 'episode_lengths'", "expected"),
    ),
    "lengths that do not sum up": (
        write_npz(**{**ROWS, "episode_lengths": np.array([2, 2])}),
        ("sum to 4 for 5",),
    ),
    "lengths of nothing": (
        write_npz(**{**ROWS, "episode_lengths": np.array([5, 0])}),
        ("expected one count",),
    ),
    "images": (write_npz(**{**ROWS, "observations": np.zeros((5, 8, 8))}), ("(5, 8, 8)", "(N, h, w, 3)")),
    "grids of floats": (
        write_npz(**{**ROWS, "observations": np.zeros((5, 4, 4, 3))}),
        ("float64", "expected integers"),
    ),
    "columns first": (
        write_npz(**{**ROWS, "observations": np.zeros((2, 5)).T}),
        ("by columns", "ascontiguousarray"),
    ),
    "next observations of others": (
        write_npz(**{**ROWS, "next_observations": np.ones((5, 2))}),
        ("episode 0", "one row later", "episode_lengths"),
    ),
    "NaN in npz": (
        write_npz(**{**ROWS, "observations": NAN}),
        ("episode 0, step 2, field number 1", "nan", "clean"),
    ),
    "obs and acts": (
        write_npz(obs=np.zeros((5, 2)), acts=np.zeros(5), indices=np.array([2])),
        ("5 obs for 5 acts in 2", "one more"),
    ),
    "NaN in Parquet": (
        write_parquet(
            lambda t: t.set_column(1, "state", pa.FixedSizeListArray.from_arrays(pa.array(NAN[:3].ravel()), 2))
        ),
        ("episode 1, step 0, field number 1",),
    ),
    "no rows": (write_parquet(lambda t: t.slice(0, 0)), ("no rows", "at least one")),
    "no state column": (
        write_parquet(lambda t: t.drop_columns("state")),
        ("no column 'state'", "/demonstrations"),
    ),
    "null state": (
        write_parquet(
            lambda t: t.set_column(1, "state", pa.array([[1.0, 2], None, [3, 4]], pa.list_(pa.float64(), 2)))
        ),
        ("a state is null",),
    ),
    "mixed episodes": (
        write_parquet(lambda t: t.set_column(0, "episode", pa.array([0, 1, 0]))),
        ("comes back", "sort"),
    ),
    "null action": (
        write_parquet(lambda t: t.set_column(0, "episode", pa.array([0] * 3)).append_column("action", NULLS)),
        ("episode 0: column 'action' is null in 1 of 2 rows", "expected a value in each, or in none"),
    ),
    "null reward": (
        write_parquet(lambda t: t.set_column(0, "episode", pa.array([0] * 3)).append_column("reward", NULLS)),
        ("episode 0: rewards that are missing or not finite",),
    ),
    "null episode": (
        write_parquet(lambda t: t.set_column(0, "episode", pa.array([0, None, 1]))),
        ("without nulls",),
    ),
    "unknown role": (
        write_parquet(lambda t: t.append_column("role", pa.array(["tutor"] * 3))),
        ("'tutor'", "'expert'"),
    ),
    "text that is not UTF-8": (
        write_parquet(lambda t: t.append_column("instruction", NOT_UTF8)),
        ("'instruction'", "not UTF-8", "again"),
    ),
    "unknown split": (
        write_parquet(lambda t: t.append_column("split", pa.array(["test"] * 3))),
        ("'test'", "'held_out'"),
    ),
    "metadata not JSON": (
        write_parquet(lambda t: t.replace_schema_metadata({"grace_irl": "{"})),
        ("not usable",),
    ),
    "metadata of a later version": (
        write_parquet(lambda t: t.replace_schema_metadata({"grace_irl": '{"kind": "vector", "format": 9}'})),
        ("format 9", "upgrade"),
    ),
    "unknown kind": (
        write_parquet(lambda t: t.replace_schema_metadata({"grace_irl": '{"kind": "sound"}'})),
        ("'sound'", "'vector'"),
    ),
    "ui": (
        write_parquet(lambda t: t.replace_schema_metadata({"grace_irl": '{"kind": "ui"}'})),
        ("column 'state'", "expected text: the XML of a screen"),
    ),
    "episode by name": (
        write_parquet(lambda t: t.set_column(0, "episode", pa.array(["a", "a", "b"]))),
        ("'episode' is string", "expected an integer"),
    ),
    "instruction by number": (
        write_parquet(lambda t: t.append_column("instruction", pa.array([1, 1, 2]))),
        ("'instruction' is int64", "expected text"),
    ),
    "action by name": (
        write_parquet(lambda t: t.append_column("action", pa.array(["left", None, None]))),
        ("'action' is string", "expected a number"),
    ),
    "end by name": (
        write_parquet(lambda t: t.append_column("terminated", pa.array(["no", "yes", "yes"]))),
        ("'terminated' is string", "expected a bool"),
    ),
    "lists of two sizes": (
        write_parquet(lambda t: t.set_column(1, "state", pa.array([[1.0, 2], [3], [3, 4]]))),
        ("episode 0", "different sizes"),
    ),
    "actions of two sizes": (
        write_parquet(
            lambda t: t.set_column(0, "episode", pa.array([0, 0, 0])).append_column(
                "action", pa.array([[1.0, 2], [3], None], pa.list_(pa.float64()))
            )
        ),
        ("'action' holds lists of different sizes",),
    ),
    "two roles in an episode": (
        write_parquet(lambda t: t.append_column("role", pa.array(["expert", "negative", "expert"]))),
        ("episode 0: role 'expert' and then 'negative'", "episode of its own"),
    ),
    "two instructions in an episode": (
        write_parquet(lambda t: t.append_column("instruction", pa.array(["go", "stop", "go"]))),
        ("instruction 'go' and then 'stop'",),
    ),
    "names of other fields": (
        write_parquet(lambda t: t.replace_schema_metadata({"grace_irl": '{"kind": "vector", "fields": ["x"]}'})),
        ("1 names of fields for states of 2 numbers",),
    ),
    "no numbers in a state": (
        write_npz(observations=np.zeros((5, 0)), episode_lengths=np.array([5])),
        ("shape (0,)", "at least one number"),
    ),
    "NaN among actions": (
        write_npz(**{**ROWS, "actions": np.array([[0], [1], [np.nan], [0], [0]])}),
        ("episode 0, step 2: found action [nan]", "leave the actions out"),
    ),
    "actions by name": (
        write_npz(**{**ROWS, "actions": np.array(["left"] * 5)}),
        ("actions are <U4", "expected numbers"),
    ),
    "too few actions": (write_npz(**{**ROWS, "actions": np.zeros((3, 1))}), ("3 actions for 5 rows",)),
    "lengths of half a row": (
        write_npz(**{**ROWS, "episode_lengths": np.array([2.5, 2.5])}),
        ("episode_lengths are float64", "expected one count"),
    ),
    "negative lengths": (write_npz(**{**ROWS, "episode_lengths": np.array([6, -1])}), ("the least -1", "at least 1")),
    "indices of half a row": (
        write_npz(obs=np.zeros((7, 2)), acts=np.zeros(5), indices=np.array([2.5])),
        ("indices",),
    ),
    "unknown role in npz": (write_npz(**{**ROWS, "roles": np.array(["tutor"])}), ("'tutor'", "'expert'")),
    "empty folder": (lambda folder: folder, ("no demonstrations in this folder",)),
}


@pytest.mark.parametrize("case", CASES)
def test_refused(case: str, tmp_path: Path) -> None:
    make, words = CASES[case]
    refuses(make(tmp_path), *words)


def test_fields_are_named_where_they_are_known(vectors: Demonstrations, tmp_path: Path) -> None:
    states = vectors[0].trajectory.states.copy()
    good = tmp_path / "good.parquet"
    save(vectors, good)
    read = pq.read_table(good)
    values = np.concatenate([d.trajectory.states for d in vectors])
    values[len(states) + 1 + 3, 2] = np.inf
    bad = tmp_path / "bad.parquet"
    column = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 3)
    pq.write_table(read.set_column(1, "state", column).replace_schema_metadata(metadata(good)), bad)
    refuses(bad, "episode 2, step 3, field 'angle' (number 2)", "inf")


def metadata(path: Path) -> dict[bytes, bytes]:
    return {b"grace_irl": pq.ParquetFile(path).metadata.metadata[b"grace_irl"]}


@pytest.mark.parametrize("name", ["expert.parquet", "expert.npz"])
def test_damaged_in_the_middle(name: str, vectors: Demonstrations, tmp_path: Path) -> None:
    """The directory at the end of the file is whole, what it points to is not."""
    many = replace(vectors, items=vectors.items * 50)
    save(many, tmp_path / name)
    content = bytearray((tmp_path / name).read_bytes())
    if name.endswith(".npz"):
        with zipfile.ZipFile(tmp_path / name) as archive:
            about = archive.getinfo("observations.npy")
        middle = about.header_offset + about.compress_size // 2
    else:
        column = pq.ParquetFile(tmp_path / name).metadata.row_group(0).column(1)
        middle = column.data_page_offset + column.total_compressed_size // 2
    content[middle : middle + 200] = bytes(200)
    (tmp_path / name).write_bytes(bytes(content))
    refuses(tmp_path / name, "damaged", "expected a whole")


def test_pickle_in_a_folder(vectors: Demonstrations, tmp_path: Path) -> None:
    save(vectors, tmp_path / "expert.parquet")
    (tmp_path / "negative.pkl").write_bytes(pickle.dumps([]))
    refuses(tmp_path, "negative.pkl", "pickle")


def test_other_files_of_a_folder_are_passed_over(vectors: Demonstrations, tmp_path: Path) -> None:
    save(vectors, tmp_path / "expert.parquet")
    (tmp_path / "README.md").write_text("a card")
    (tmp_path / ".expert.parquet.1.part").write_bytes(b"PAR1")
    assert len(load([tmp_path])) == len(vectors)


def test_mixed_kinds(vectors: Demonstrations, grids: Demonstrations, tmp_path: Path) -> None:
    save(vectors, tmp_path / "a.parquet")
    save(grids, tmp_path / "b.parquet")
    refuses(tmp_path, "b.parquet", "grid states beside", "a.parquet", "vector states")


def test_mixed_widths(vectors: Demonstrations, states_only: Demonstrations, tmp_path: Path) -> None:
    save(vectors, tmp_path / "a.parquet")
    save(states_only, tmp_path / "b.parquet")
    refuses(tmp_path, "b.parquet", "2 numbers", "a.parquet", "with 3")


def test_mixed_fields(vectors: Demonstrations, tmp_path: Path) -> None:
    save(vectors, tmp_path / "a.parquet")
    save(
        replace(vectors, metadata=replace(vectors.metadata, fields=("speed", "height", "depth"))),
        tmp_path / "b.parquet",
    )
    refuses(tmp_path, "b.parquet", "speed, height", "same fields")


def test_no_role(tmp_path: Path) -> None:
    np.savez(tmp_path / "rollouts.npz", **ROWS)
    refuses(tmp_path / "rollouts.npz", "no role", "demos convert --role", "--negatives")


@pytest.mark.parametrize(("role", "missing"), [("expert", "negative"), ("negative", "expert")])
def test_one_role_is_not_enough(role: str, missing: str, vectors: Demonstrations) -> None:
    only = replace(vectors, items=tuple(replace(d, role=role) for d in vectors))
    with pytest.raises(InputError, match=f"no {missing} trajectory.*expected at least one"):
        require_roles_for(RuleChoice("all", "asked for"), only)


def test_nothing_named() -> None:
    with pytest.raises(InputError, match="at least one file"):
        load([])


def test_roles_of_each_episode_go_before_the_name_of_the_file(tmp_path: Path) -> None:
    """docs/demonstrations.md lists `roles` among a plain npz's arrays; a name says only what the file does not."""
    lengths, roles = np.array([2, 3]), np.array(["negative", "expert"])
    for name in ("expert.npz", "rollouts.npz"):
        np.savez(tmp_path / name, **{**ROWS, "episode_lengths": lengths, "roles": roles})
        assert [demonstration.role for demonstration in load([tmp_path / name])] == ["negative", "expert"]


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
def test_lists_as_pandas_and_polars_write_them(kind: Callable[[pa.DataType], pa.DataType], tmp_path: Path) -> None:
    """Neither writes lists of a fixed size."""
    states, actions = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], [[0.5], [0.25], None, None]
    columns = {"episode": [0, 0, 0, 1], "state": pa.array(states, kind(pa.float64()))}
    pq.write_table(pa.table({**columns, "action": pa.array(actions, kind(pa.float64()))}), tmp_path / "expert.parquet")
    first, second = (demonstration.trajectory for demonstration in load([tmp_path / "expert.parquet"]))
    assert first.states.tolist() == states[:3]
    assert second.states.tolist() == states[3:]
    assert first.actions is not None
    assert first.actions.tolist() == [[0.5], [0.25]]


def test_a_stream_stops_at_the_damage(tmp_path: Path) -> None:
    np.savez(tmp_path / "expert.npz", **{**ROWS, "observations": NAN, "episode_lengths": np.array([2, 3])})
    stream = iter_trajectories(tmp_path / "expert.npz")
    assert len(next(stream).trajectory.states) == 2
    with pytest.raises(InputError, match="episode 1, step 0"):
        next(stream)


def test_a_column_whose_name_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = write_parquet(lambda t: t.append_column("zzzz", pa.array([1.0, 2.0, 3.0])))(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"zzzz", b"\xc0zzz"))
    refuses(path, "not readable as Parquet")
