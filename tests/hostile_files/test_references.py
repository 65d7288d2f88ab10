"""Demonstrations that refer to other files, to code, or to objects that are to be made. None of it is followed."""

from __future__ import annotations

import base64
import json
import mmap
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grace_irl.demos import hdf5, load, save
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError
from tests.fakes.data import vector_set
from tests.hostile_files.refusal import refused

h5py = pytest.importorskip("h5py")
pytest.importorskip("minari")

SECRET = b"root:x:0:0:nobody may read this through a data set\n" * 40


class Bomb:
    """An object whose pickle writes a file when it is opened."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.mark, "ran")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the user's, outside of every data set."""
    path = tmp_path / "elsewhere" / "secret"
    path.parent.mkdir()
    path.write_bytes(SECRET)
    return path


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A Minari data set in hdf5, whole."""
    save(vector_set(actions=True), tmp_path / "expert-v0", "minari")
    return tmp_path / "expert-v0"


@pytest.fixture
def arrow(tmp_path: Path) -> Path:
    """The same in arrow."""
    save(vector_set(), tmp_path / "expert-v0", "minari-arrow")
    return tmp_path / "expert-v0"


def rewrite(dataset: Path, name: str, make: Callable[[Any, str, Any], None]) -> None:
    """Replaces one object of the first episode; `make` is given its group, its name, and what was there."""
    with h5py.File(dataset / "data" / "main_data.hdf5", "a") as file:
        group = file["episode_0"]
        value = group[name][()]
        del group[name]
        make(group, name, value)


def restate(dataset: Path, **changes: Any) -> None:
    """Changes the metadata of a data set; None takes an entry out."""
    place = dataset / "data" / "metadata.json"
    about = {**json.loads(place.read_text()), **changes}
    place.write_text(json.dumps({name: value for name, value in about.items() if value is not None}))


def external_storage(secret: Path) -> Callable[[Any, str, Any], None]:
    def make(group: Any, name: str, value: Any) -> None:
        group.create_dataset(name, value.shape, value.dtype, external=[(str(secret), 0, value.nbytes)])

    return make


def external_link(secret: Path) -> Callable[[Any, str, Any], None]:
    def make(group: Any, name: str, value: Any) -> None:
        other = secret.with_name("other.hdf5")
        with h5py.File(other, "w") as file:
            file["x"] = value
        group[name] = h5py.ExternalLink(str(other), "x")

    return make


def virtual(secret: Path) -> Callable[[Any, str, Any], None]:
    def make(group: Any, name: str, value: Any) -> None:
        other = secret.with_name("other.hdf5")
        with h5py.File(other, "w") as file:
            file["x"] = value
        layout = h5py.VirtualLayout(value.shape, value.dtype)
        layout[...] = h5py.VirtualSource(str(other), "x", value.shape, value.dtype)
        group.create_virtual_dataset(name, layout)

    return make


def soft_link(secret: Path) -> Callable[[Any, str, Any], None]:
    def make(group: Any, name: str, value: Any) -> None:
        group[name] = h5py.SoftLink("/episode_1/" + name)

    return make


def cycle(secret: Path) -> Callable[[Any, str, Any], None]:
    def make(group: Any, name: str, value: Any) -> None:
        group[name] = h5py.SoftLink(f"/episode_0/{name}")

    return make


def references(secret: Path) -> Callable[[Any, str, Any], None]:
    def make(group: Any, name: str, value: Any) -> None:
        made = group.create_dataset(name, (len(value),), h5py.ref_dtype)
        made[...] = [group.ref] * len(value)

    return make


def committed(secret: Path) -> Callable[[Any, str, Any], None]:
    def make(group: Any, name: str, value: Any) -> None:
        group[name] = value.dtype

    return make


def unknown_filter(secret: Path) -> Callable[[Any, str, Any], None]:
    def make(group: Any, name: str, value: Any) -> None:
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_chunk(value.shape)
        made.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, ())  # zstd, a plugin
        space = h5py.h5s.create_simple(value.shape)
        h5py.h5d.create(group.id, name.encode(), h5py.h5t.py_create(value.dtype), space, made)

    return make


KINDS: dict[str, tuple[Callable[[Path], Callable[[Any, str, Any], None]], str]] = {
    "external storage": (external_storage, "its data lie in"),
    "external link": (external_link, "is a link to"),
    "virtual": (virtual, "a virtual dataset"),
    "soft link": (soft_link, "is a link to"),
    "cycle": (cycle, "is a link to"),
    "references": (references, "expected numbers"),
    "committed type": (committed, "expected a dataset"),
    "filter": (unknown_filter, "filter 32015"),
}


@pytest.mark.parametrize("name", ["observations", "actions", "rewards", "terminations"])
@pytest.mark.parametrize("kind", KINDS)
def test_hdf5_that_refers_elsewhere(
    kind: str, name: str, dataset: Path, secret: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, said = KINDS[kind]
    rewrite(dataset, name, make(secret))
    refused(capsys, ["demos", "inspect", str(dataset)], "episode 0", said)
    with pytest.raises(InputError, match=said):
        load([dataset])


def test_an_episode_that_is_a_link(dataset: Path, secret: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(dataset / "data" / "main_data.hdf5", secret.with_name("other.hdf5"))
    with h5py.File(dataset / "data" / "main_data.hdf5", "a") as file:
        del file["episode_1"]
        file["episode_1"] = h5py.ExternalLink(str(secret.with_name("other.hdf5")), "episode_1")
    refused(capsys, ["demos", "inspect", str(dataset)], "episode 1", "is a link to", "other.hdf5")


def test_infos_are_not_read(dataset: Path, tmp_path: Path, secret: Path) -> None:
    """Whatever lies there: a pickle, a jsonpickle, a terabyte, a link. Only log-probabilities count."""
    pickled = pickle.dumps(Bomb(tmp_path / "mark"))
    tagged = json.dumps({"py/reduce": [{"py/function": "os.system"}, {"py/tuple": ["touch mark"]}]})
    with h5py.File(dataset / "data" / "main_data.hdf5", "a") as file:
        infos = file["episode_0"].require_group("infos")
        infos.create_dataset("pickled", data=np.void(pickled))
        infos.create_dataset("jsonpickle", data=tagged)
        infos.create_dataset("much", (1 << 40,), np.float64, chunks=(1 << 20,))
        infos["link"] = h5py.ExternalLink(str(secret), "x")
        file["episode_0"].attrs["options"] = np.void(pickled)
    assert len(load([dataset])) == len(vector_set())
    assert not (tmp_path / "mark").exists()


def test_no_environment_is_made(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where spaces are missing, Minari makes the environment that the file names: any function with any arguments."""
    mark = tmp_path / "mark"
    spec = {"id": "Evil-v0", "entry_point": "os:system", "kwargs": {"command": f"touch {mark}"}}
    spec |= {"reward_threshold": None, "nondeterministic": False, "max_episode_steps": None, "order_enforce": True}
    spec |= {"disable_env_checker": True, "additional_wrappers": [], "vector_entry_point": None}
    restate(dataset, env_spec=json.dumps(spec), observation_space=None)
    refused(capsys, ["demos", "inspect", str(dataset)], "no observation_space", "runs its code")
    assert not mark.exists()


@pytest.mark.parametrize(
    "space",
    [
        {"type": "Box", "dtype": "float64", "shape": [10**12], "low": 0.0, "high": 1.0},
        {"type": "Box", "dtype": "object", "shape": [2], "low": [0, 0], "high": [1, 1]},
        {"type": "Box", "dtype": "S999999999", "shape": [2], "low": ["a", "b"], "high": ["c", "d"]},
        {"type": "Box", "dtype": "float64", "shape": [-2], "low": [], "high": []},
        {"type": "Dict", "subspaces": {"../../secret": {"type": "Box", "dtype": "float64", "shape": [2]}}},
        {"type": "Dict", "subspaces": [[]]},
        {"type": "py/object"},
        [],
    ],
)
def test_spaces_are_not_made(space: object, dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    restate(dataset, observation_space=json.dumps(space))
    refused(capsys, ["demos", "inspect", str(dataset)], str(dataset))


def test_links_in_a_minari_folder(dataset: Path, secret: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inside = dataset / "data" / "main_data.hdf5"
    shutil.move(inside, secret.with_name("main_data.hdf5"))
    inside.symlink_to(secret.with_name("main_data.hdf5"))
    refused(capsys, ["demos", "inspect", str(dataset)], "a link out of its folder", "copy it there")


def test_links_in_an_arrow_folder(arrow: Path, secret: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = (arrow / "data" / "1").glob("*.arrow")
    shutil.move(file, secret.with_name("part.arrow"))
    file.symlink_to(secret.with_name("part.arrow"))
    refused(capsys, ["demos", "inspect", str(arrow)], "part-0.arrow", "a link out of its folder")


def test_an_arrow_dictionary(arrow: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = (arrow / "data" / "0").glob("*.arrow")
    table = pa.ipc.open_file(file.read_bytes()).read_all()
    place = table.schema.get_field_index("rewards")
    changed = table.set_column(place, "rewards", table["rewards"].dictionary_encode())
    with pa.ipc.new_file(file, changed.schema) as out:
        out.write(changed)
    refused(capsys, ["demos", "inspect", str(arrow)], "part-0.arrow", "a column of dictionary<")


def test_a_dataset_that_the_user_linked(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "mine-v0").symlink_to(dataset)
    assert len(load([tmp_path / "mine-v0"])) == len(vector_set())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of demonstrations that somebody sent."""
    (tmp_path / "sent").mkdir()
    save(vector_set(), tmp_path / "sent" / "expert.parquet")
    return tmp_path / "sent"


@pytest.mark.parametrize("name", ["negative.parquet", "negative.npz", "negative.xml", "negative.json"])
def test_a_link_out_of_a_folder(name: str, folder: Path, secret: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if name.endswith((".xml", ".json")):
        (folder / "expert.parquet").unlink()
    (folder / name).symlink_to(secret)
    said = refused(capsys, ["demos", "inspect", str(folder)], name, "a link out of its folder")
    assert "nobody may read this" not in said


def test_links_that_are_meant(folder: Path, tmp_path: Path) -> None:
    """The user's own: to the folder, to a file that they name, and within the folder, where a file counts once."""
    (tmp_path / "mine").symlink_to(folder)
    (tmp_path / "one.parquet").symlink_to(folder / "expert.parquet")
    (folder / "again.parquet").symlink_to("expert.parquet")
    count = len(vector_set())
    assert [len(load([tmp_path / name])) for name in ("mine", "one.parquet")] == [count, count]


def test_links_in_a_circle(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, other in (("one.parquet", "two.parquet"), ("two.parquet", "one.parquet")):
        (folder / name).symlink_to(other)
    refused(capsys, ["demos", "inspect", str(folder)], "parquet")


@pytest.mark.parametrize("name", ["step_1.xml", "task.json", "step_0.png"])
def test_a_link_out_of_an_episode(name: str, tmp_path: Path, secret: Path, capsys: pytest.CaptureFixture[str]) -> None:
    episode = tmp_path / "episode"
    episode.mkdir()
    (episode / "step_0.xml").write_text('<hierarchy rotation="0"><node text="OK"/></hierarchy>')
    (episode / name).symlink_to(secret)
    refused(capsys, ["demos", "inspect", str(episode)], name, "a link out of its folder")


def test_a_pipe_in_an_episode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever opens a pipe waits for who writes to it."""
    episode = tmp_path / "episode"
    episode.mkdir()
    os.mkfifo(episode / "step_0.xml")
    (episode / "task.json").write_text("{}")
    refused(capsys, ["demos", "inspect", str(episode)], "not a file")


@pytest.mark.parametrize("layout", ["plain", "imitation"])
def test_pickles_in_npz(layout: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, bomb = tmp_path / "expert.npz", np.array([Bomb(tmp_path / "mark")] * 4, object)
    if layout == "plain":
        np.savez(path, observations=np.zeros((4, 2)), episode_lengths=np.array([4]), actions=bomb)
        refused(capsys, ["demos", "inspect", str(path)], "pickled objects")
    else:
        infos = {"infos": bomb, "terminal": np.array([True])}
        np.savez(path, obs=np.zeros((5, 2)), acts=np.zeros(4), indices=np.array([], int), **infos)
        assert len(load([path], role="expert")) == 1
    assert not (tmp_path / "mark").exists()


def test_a_pickled_type_in_parquet(tmp_path: Path) -> None:
    """Arrow's extension type of Python, which was once made by opening a pickle."""
    mark = tmp_path / "mark"
    metadata = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(Bomb(mark)),
    }
    column = pa.field("state", pa.list_(pa.float64(), 2), metadata=metadata)
    schema = pa.schema(
        [("episode", pa.int64()), column], metadata={"pandas": base64.b64encode(pickle.dumps(Bomb(mark)))}
    )
    states = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6.0)), 2)
    path = tmp_path / "expert.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([0, 0, 0]), states], schema=schema), path)
    assert len(load([path])) == 1
    assert not mark.exists()


def test_what_is_whole_is_read(dataset: Path, tmp_path: Path) -> None:
    """gzip, shuffle and checksums are h5py's own, and as good as none."""

    def make(group: Any, name: str, value: Any) -> None:
        group.create_dataset(name, data=value, chunks=True, compression="gzip", shuffle=True, fletcher32=True)

    before: Demonstrations = load([dataset])
    rewrite(dataset, "observations", make)
    after = load([dataset])
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one.trajectory.states, other.trajectory.states)


@pytest.mark.parametrize("size", [0, 8, 1 << 40, 2**64 - 16])
def test_a_heap_without_end(size: int, dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """HDF5 goes on by the size that an object states, for ever."""
    path = dataset / "data" / "main_data.hdf5"
    content = bytearray(path.read_bytes())
    heap = content.index(b"GCOL\1\0\0\0")
    content[heap + 16 : heap + 18] = b"\0\0"
    content[heap + 24 : heap + 32] = size.to_bytes(8, "little")
    path.write_bytes(bytes(content))
    refused(capsys, ["demos", "inspect", str(dataset)], "main_data.hdf5", "a heap of texts is damaged")


@pytest.mark.parametrize("start", [512, mmap.PAGESIZE - 3, mmap.PAGESIZE, 3 * mmap.PAGESIZE - 8, 5 * mmap.PAGESIZE + 1])
def test_a_heap_is_found_wherever_it_lies(start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is searched in windows, and a heap may begin in one and end in the next."""
    monkeypatch.setattr(hdf5, "WINDOW", mmap.PAGESIZE)
    path = tmp_path / "file.hdf5"
    content = bytearray(6 * mmap.PAGESIZE)
    content[:8], content[8:9], content[13:15] = hdf5.SUPERBLOCK, b"\0", b"\x08\x08"
    path.write_bytes(bytes(content))
    hdf5.require_whole_heaps(path)
    content[start : start + 8] = hdf5.SIGNATURE
    content[start + 8 : start + 16] = (1 << 40).to_bytes(8, "little")
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match=rf"a heap of texts is damaged \(at byte {start:,}\)"):
        hdf5.require_whole_heaps(path)
