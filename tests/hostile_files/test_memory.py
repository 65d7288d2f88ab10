"""Files of kilobytes that stand for gigabytes: what they need is known, and refused in one line, before it is taken."""

from __future__ import annotations

import io
import json
import resource
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grace_irl import score
from grace_irl.demos import load, memory, save
from grace_irl.demos.memory import Memory, available_memory, limited, size_of
from grace_irl.errors import InputError
from tests.fakes.data import vector_set
from tests.hostile_files.refusal import Ended, refused, run

MEGABYTE = 1 << 20
LIMIT = 256 * MEGABYTE
"""Of each set here. What Python, numpy and Arrow take themselves comes on top."""

BESIDE = 400 * MEGABYTE
ROWS = 6000
LONG = "x" * MEGABYTE
SCREEN = '<hierarchy rotation="0"><node text="OK"/></hierarchy>'


def screens(**columns: Any) -> pa.Table:
    """Screens of 60 trajectories, with other columns."""
    plain = {"episode": np.repeat(np.arange(ROWS // 100), 100), "state": [SCREEN] * ROWS, "role": ["expert"] * ROWS}
    return pa.table({**plain, **columns})


def repeated(text: str) -> pa.DictionaryArray:
    """One text in all rows: in the file once, as the entry of a dictionary."""
    return pa.DictionaryArray.from_arrays(np.zeros(ROWS, np.int32), [text])


def parquet(table: pa.Table, path: Path, **options: Any) -> Path:
    pq.write_table(table, path, compression="zstd", row_group_size=ROWS, dictionary_pagesize_limit=1 << 30, **options)
    return path


def screens_of_a_megabyte(folder: Path) -> Path:
    screen = SCREEN.replace("OK", LONG)
    return parquet(screens(state=repeated(screen)), folder / "expert.parquet")


def paths_of_a_megabyte(folder: Path) -> Path:
    paths = pa.StructArray.from_arrays([pa.array([LONG[: MEGABYTE // 8]] * ROWS)], ["path"])
    return parquet(screens(screenshot=paths), folder / "expert.parquet")


def texts_with_one_beginning(folder: Path) -> Path:
    texts = pa.array([LONG[: MEGABYTE // 8] + str(number) for number in range(ROWS)])
    encoding = {"action_text": "DELTA_BYTE_ARRAY"}
    path = folder / "expert.parquet"
    pq.write_table(
        screens(action_text=texts), path, compression="zstd", use_dictionary=["state"], column_encoding=encoding
    )
    return path


def a_page_of_two_gigabytes(folder: Path) -> Path:
    """One dictionary page, of a text that is no screen."""
    path = folder / "expert.parquet"
    text = pa.array(["x" * 300 * MEGABYTE])
    table = pa.table({"episode": [0], "state": [SCREEN], "role": ["expert"], "instruction": text})
    pq.write_table(table, path, compression="zstd", dictionary_pagesize_limit=1 << 30, store_schema=False)
    return path


def numbers_of_a_dictionary(folder: Path) -> Path:
    """One number, a hundred million times."""
    count = 100_000
    states = pa.FixedSizeListArray.from_arrays(np.zeros(count * 1000), 1000)
    path = folder / "expert.parquet"
    table = pa.table({"episode": np.zeros(count, np.int64), "state": states})
    pq.write_table(table, path, compression="zstd", row_group_size=count)
    return path


def zeros(folder: Path) -> Path:
    np.savez_compressed(
        folder / "expert.npz", observations=np.zeros((1 << 22, 96), np.uint8), episode_lengths=np.array([1 << 22])
    )
    return folder / "expert.npz"


def many_episodes(folder: Path) -> Path:
    count = 2_000_000
    np.savez_compressed(
        folder / "expert.npz", observations=np.zeros((count, 1), np.uint8), episode_lengths=np.ones(count, np.int64)
    )
    return folder / "expert.npz"


def wide_rewards(folder: Path) -> Path:
    """A byte for each reward becomes eight."""
    rows = 1 << 26
    arrays = {"observations": np.zeros((rows, 1), np.uint8), "rewards": np.zeros(rows, np.uint8)}
    np.savez_compressed(folder / "expert.npz", **arrays, episode_lengths=np.array([rows]))
    return folder / "expert.npz"


def several_files(folder: Path) -> Path:
    """Each of them would do."""
    inside = folder / "several"
    inside.mkdir()
    for number in range(3):
        rows = 1 << 20
        np.savez_compressed(
            inside / f"expert-{number}.npz", observations=np.zeros((rows, 120), np.uint8), episode_lengths=[rows]
        )
    return inside


def minari(folder: Path, change: Callable[[Any], None]) -> Path:
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("minari")
    save(vector_set(actions=True), folder / "expert-v0", "minari")
    with h5py.File(folder / "expert-v0" / "data" / "main_data.hdf5", "a") as file:
        change(file["episode_0"])
    return folder / "expert-v0"


def states_that_nobody_wrote(folder: Path) -> Path:
    """Chunks that are not there are zeros."""

    def change(group: Any) -> None:
        del group["rewards"]
        group.create_dataset("rewards", (1 << 36,), np.float64, chunks=(1 << 16,))

    return minari(folder, change)


def a_chunk_that_goes_on(folder: Path) -> Path:
    """HDF5 unpacks a chunk to its end, and not to the size that it has."""
    import zlib

    def change(group: Any) -> None:
        value = group["rewards"][()]
        del group["rewards"]
        made = group.create_dataset("rewards", value.shape, value.dtype, chunks=value.shape, compression="gzip")
        made.id.write_direct_chunk((0,), zlib.compress(bytes(700 * MEGABYTE), 9))

    return minari(folder, change)


def arrow_that_unpacks(folder: Path) -> Path:
    pytest.importorskip("minari")
    save(vector_set(), folder / "expert-v0", "minari-arrow")
    (file,) = (folder / "expert-v0" / "data" / "0").glob("*.arrow")
    table = pa.ipc.open_file(file.read_bytes()).read_all()
    more = pa.table({**{n: table[n] for n in table.column_names}, "infos": pa.array([LONG * 60] * len(table))})
    with pa.ipc.new_file(file, more.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as out:
        out.write(more)
    return folder / "expert-v0"


HUGE: dict[str, Callable[[Path], Path]] = {
    function.__name__.replace("_", " "): function
    for function in (
        screens_of_a_megabyte,
        paths_of_a_megabyte,
        texts_with_one_beginning,
        a_page_of_two_gigabytes,
        numbers_of_a_dictionary,
        zeros,
        many_episodes,
        wide_rewards,
        several_files,
        states_that_nobody_wrote,
        a_chunk_that_goes_on,
        arrow_that_unpacks,
    )
}

REWARD = "class Reward:\n    def __init__(self, extra_info=None): pass\n    def reward_fn(self, state): return 0.0\n"


def scored(path: Path, folder: Path, size: str = "256M") -> Ended:
    """Scores a reward on a set, in little memory."""
    (folder / "reward.py").write_text(REWARD)
    return run(folder, ["score", str(folder / "reward.py"), "--demos", str(path), "--max-memory", size])


@pytest.mark.parametrize("case", HUGE)
def test_refused_before_it_is_taken(case: str, tmp_path: Path) -> None:
    path = HUGE[case](tmp_path)
    ended = scored(path, tmp_path)
    assert ended.code == 2, ended
    assert ended.said.count("\n") == 1, ended.said
    assert path.name in ended.said
    assert ended.peak < LIMIT + BESIDE, ended
    assert ended.seconds < 60, ended


@pytest.mark.parametrize("column", ["action_text", "instruction", "task"])
def test_a_text_in_all_rows_is_in_memory_once(column: str, tmp_path: Path) -> None:
    """Seven gigabytes, when every row had its own."""
    table = screens(episode=np.arange(ROWS), **{column: repeated(LONG)})
    ended = run(tmp_path, ["demos", "inspect", "--json", str(parquet(table, tmp_path / "expert.parquet"))])
    assert ended.code == 0, ended
    assert ended.peak < LIMIT + BESIDE, ended


def claims(path: Path, name: str, header: dict[str, Any], data: bytes, size: int | None = None) -> None:
    """An npz whose array says something else of itself than it is."""
    text = repr(header).encode().ljust(118) + b"\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for other, array in (("observations", np.zeros((4, 2))), ("episode_lengths", np.array([4]))):
            if other != name:
                buffer = io.BytesIO()
                np.save(buffer, array)
                archive.writestr(f"{other}.npy", buffer.getvalue())
        archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data)
    if size is not None:
        content = path.read_bytes()
        place = content.rindex(f"{name}.npy".encode()) - 46 + 24  # the size in the directory
        path.write_bytes(content[:place] + struct.pack("<I", size) + content[place + 4 :])


@pytest.mark.parametrize("name", ["observations", "episode_lengths"])
@pytest.mark.parametrize("shape", [(10**15, 2), (4, 10**12), (10**30,), (-4, -2), (4, 2, 2)])
def test_an_npz_that_lies_of_its_shape(
    shape: tuple[int, ...], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "expert.npz"
    claims(path, name, {"descr": "<f8", "fortran_order": False, "shape": shape}, bytes(64))
    refused(capsys, ["demos", "inspect", str(path)], name, "is damaged")


def test_an_npz_that_lies_of_its_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "expert.npz"
    shape = (1 << 27, 2)
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    claims(path, "observations", header, bytes(64), (1 << 31) + 128)
    refused(capsys, ["demos", "inspect", str(path)], "observations", "cannot be packed into")


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_an_npz_in_another_compression(method: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "expert.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, array in (("observations", np.zeros((1000, 2))), ("episode_lengths", np.array([1000]))):
            buffer = io.BytesIO()
            np.save(buffer, array)
            archive.writestr(f"{name}.npy", buffer.getvalue())
    refused(capsys, ["demos", "inspect", str(path)], "compressed in another way than numpy does")


def test_a_parquet_file_that_lies_of_its_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page's own number of values is what Arrow allocates by."""
    path = tmp_path / "expert.parquet"
    states = pa.array([[0.0] * 2] * 3, pa.list_(pa.float64()))
    table = pa.table({"episode": [0, 0, 0], "state": states})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False, store_schema=False)
    column = pq.ParquetFile(path).metadata.row_group(0).column(1)
    content = bytearray(path.read_bytes())
    header = content.index(b"\x2c\x15\x0c", column.data_page_offset)  # the header of the data, and 6 as a varint
    content[header + 2] = 0x7E  # 63
    path.write_bytes(bytes(content))
    refused(capsys, ["demos", "inspect", str(path)], "pages of 63 values, and 6 in the footer")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of Stable-Baselines3."""
    sb3 = pytest.importorskip("stable_baselines3")
    path = tmp_path_factory.mktemp("model") / "model.zip"
    sb3.PPO("MlpPolicy", "CartPole-v1", device="cpu", n_steps=8, batch_size=8).save(path)
    return path


def collected(policy: Path, folder: Path) -> Ended:
    """Plays two episodes with a policy."""
    out = folder / "out.parquet"
    arguments = ["collect", "--env", "CartPole-v1", "--policy", str(policy), "--episodes", "2", "--role", "expert"]
    ended = run(folder, [*arguments, "--out", str(out), "--max-memory", "512M"])
    assert out.exists() == (ended.code == 0)
    return ended


def test_a_whole_policy_plays(model: Path, tmp_path: Path) -> None:
    assert collected(model, tmp_path).code == 0


def changed(model: Path, path: Path, data: dict[str, Any], parts: dict[str, bytes] | None = None) -> Path:
    """A checkpoint that says something else of itself."""
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = (parts or {}).get(name, old.read(name))
            new.writestr(name, json.dumps({**json.loads(content), **data}) if name == "data" else content)
    return path


@pytest.mark.parametrize(
    "kwargs",
    [
        {"net_arch": [10**9]},
        {"net_arch": [10**9, 10**9]},
        {"net_arch": {"pi": [64, 64], "vf": [10**9]}},
        {"net_arch": [1] * 100_000},
        {"net_arch": [10**30]},
        {"net_arch": [-1]},
        {"net_arch": "64"},
        {"net_arch": [True]},
    ],
)
def test_layers_that_the_weights_are_not_of(kwargs: dict[str, Any], model: Path, tmp_path: Path) -> None:
    ended = collected(changed(model, tmp_path / "a.zip", {"policy_kwargs": kwargs}), tmp_path)
    assert ended.code == 2, ended
    assert ended.said.count("\n") == 1, ended.said
    assert ended.seconds < 60, ended


def test_weights_that_are_views_of_one_number(model: Path, tmp_path: Path) -> None:
    """A tensor of a terabyte, whose rows are all the same number."""
    torch = pytest.importorskip("torch")
    with zipfile.ZipFile(model) as archive:
        weights = torch.load(io.BytesIO(archive.read("policy.pth")), weights_only=True)
    name = next(iter(weights))
    weights[name] = torch.zeros(1).expand(1 << 38)
    buffer = io.BytesIO()
    torch.save(weights, buffer)
    path = changed(model, tmp_path / "a.zip", {}, {"policy.pth": buffer.getvalue()})
    ended = collected(path, tmp_path)
    assert ended.code == 2, ended
    assert "fewer numbers than its shape" in ended.said


@pytest.mark.parametrize("name", ["data", "policy.pth"])
def test_a_policy_that_unpacks_to_gigabytes(name: str, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for other in old.namelist():
            new.writestr(other, bytes(600 * MEGABYTE) if other == name else old.read(other))
    ended = collected(path, tmp_path)
    assert ended.code == 2, ended
    assert ended.said.count("\n") == 1, ended.said
    assert ended.peak < 1000 * MEGABYTE, ended


def test_the_limit_counts_in_python(tmp_path: Path) -> None:
    save(vector_set(), tmp_path / "expert.parquet")
    assert len(load([tmp_path / "expert.parquet"], max_memory="1M"))
    for refusing in (
        lambda: load([tmp_path / "expert.parquet"], max_memory=1024),
        lambda: score(tmp_path / "reward.py", [tmp_path / "expert.parquet"], max_memory="1K"),
    ):
        with pytest.raises(InputError, match=r"expert.parquet.* needs .* expected at most 1 KiB.* raise --max-memory"):
            refusing()


def test_the_variable_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save(vector_set(), tmp_path / "expert.parquet")
    arguments = ["demos", "inspect", str(tmp_path / "expert.parquet")]
    monkeypatch.setenv("GRACE_IRL_MAX_MEMORY", "1K")
    refused(capsys, arguments, "needs", "at most 1 KiB", "--max-memory")
    refused(capsys, [*arguments, "--max-memory", "much"], "--max-memory 'much'", "such as 4G")
    with pytest.raises(InputError, match="at most 1 KiB"):
        load([tmp_path / "expert.parquet"])
    assert len(load([tmp_path / "expert.parquet"], max_memory="1G"))


def test_an_option_holds_for_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(vector_set(), tmp_path / "expert.parquet")
    refused(capsys, ["demos", "inspect", "--max-memory", "1K", str(tmp_path / "expert.parquet")], "at most 1 KiB")
    assert len(load([tmp_path / "expert.parquet"]))


@pytest.mark.parametrize(
    ("text", "size"),
    [("4G", 4 << 30), ("512M", 512 << 20), ("1.5 GiB", 3 << 29), ("2kb", 2048), (77, 77), ("1T", 1 << 40)],
)
def test_sizes(text: int | str, size: int) -> None:
    assert size_of(text, "--max-memory") == size


@pytest.mark.parametrize("text", ["", "G", "-1", "0", "4 apples", "1e9", "0x10", "nan", "9" * 99])
def test_no_sizes(text: str) -> None:
    with pytest.raises(InputError, match="expected a size such as 4G"):
        size_of(text, "--max-memory")


def test_the_default_is_what_the_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRACE_IRL_MAX_MEMORY", raising=False)
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    assert Memory().limit == 800
    with limited("1M"):
        assert Memory().limit == MEGABYTE


@pytest.mark.parametrize("version", [1, 2])
def test_control_groups_count(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of a group holds for those inside; files that are kept in memory can go."""
    root, line, names = tmp_path, "0::/a/b", ("memory.max", "memory.current", "inactive_file")
    if version == 1:
        root, line = tmp_path / "memory", "4:cpu,memory:/a/b"
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / names[0]).write_text("100000\n")
    (root / "a" / names[1]).write_text("30000\n")
    (root / "a" / "memory.stat").write_text(f"anon 1\n{names[2]} 5000\n")
    (root / "a" / "b" / names[0]).write_text("max\n")
    lines = memory._lines
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    monkeypatch.setattr(memory, "_lines", lambda file: [line] if file == Path("/proc/self/cgroup") else lines(file))
    assert available_memory() == 75_000


def test_the_address_space_counts(tmp_path: Path) -> None:
    path = zeros(tmp_path)
    (tmp_path / "reward.py").write_text(REWARD)
    ended = run(tmp_path, ["score", str(tmp_path / "reward.py"), "--demos", str(path)], limit=900 * MEGABYTE)
    assert ended.code == 2, ended
    assert "needs" in ended.said


def test_a_limit_above_the_memory_uses_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever allows more than there is gets it: on disk, as before."""
    save(vector_set(), tmp_path / "expert.parquet")
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    monkeypatch.setattr("grace_irl.demos.arena.available_memory", lambda: 1000)
    with pytest.raises(InputError, match="at most 800 B"):
        load([tmp_path / "expert.parquet"])
    assert len(load([tmp_path / "expert.parquet"], max_memory="1G"))


def test_a_run_does_not_record_it(tmp_path: Path) -> None:
    from grace_irl import fit

    run_ = fit(vector_set(), out=tmp_path / "run", max_memory="1G", max_calls=5, max_seconds=60.0)
    assert "max_memory" not in (run_.folder / "config.toml").read_text()
    shutil.rmtree(run_.folder)


def test_hard_limits_are_not_touched() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with limited("1M"):
        assert resource.getrlimit(resource.RLIMIT_AS) == before
