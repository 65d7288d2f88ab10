"""Files of other programs: each reader by the suite of readers, and what readers guess."""

import gzip
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import h5py
import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.demos import load
from grace_irl.demos.files import expand
from grace_irl.demos.foreign.columns import Columns
from grace_irl.demos.formats import _entries, open_source
from grace_irl.demos.memory import BeyondLimitError
from grace_irl.demos.trajectory import Demonstrations, Role
from grace_irl.errors import InputError
from grace_irl.testing.readers import vectors
from tests.demos.foreign.reading import WHOLE, numbers, read
from tests.demos.foreign.writing import (
    NAMES,
    described,
    flat,
    plain,
    rows,
    table,
    to_csv,
    to_hdf5,
    to_imitation,
    to_json_lines,
    to_lerobot,
    to_parquet,
    to_rlds,
    to_robomimic,
)
from tests.demos.test_readers_suite import Ours


class OfOthers(Ours):
    """A format of others, which holds no roles."""

    role: ClassVar[Role | None] = "expert"

    def demonstrations(self) -> Demonstrations:
        return plain()


class Tables(Ours):
    """A table with a row for each state. It holds all but the probabilities of actions and the label rule."""

    def demonstrations(self) -> Demonstrations:
        whole = vectors()
        items = tuple(replace(each, trajectory=replace(each.trajectory, log_probs=None, source="")) for each in whole)
        return replace(whole, metadata=replace(whole.metadata, label=""), items=items)


class TestCsv(Tables):
    file = "set.csv"

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        to_csv(rows(demonstrations), path)


class TestTabsAndGzip(Tables):
    file = "set.tsv.gz"

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        to_csv(rows(demonstrations), path, "\t")


class TestJsonLines(Tables):
    file = "set.jsonl"

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        to_json_lines(rows(demonstrations), path)


class TestWideParquet(Tables):
    file = "set.parquet"

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        to_parquet(rows(demonstrations), path)


class OfD4rl(OfOthers):
    """Flat arrays. An episode that the environment did not end was cut by a limit."""

    def demonstrations(self) -> Demonstrations:
        return plain(cut=True)


class TestHdf5OfD4rl(OfD4rl):
    file = "set.hdf5"

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        to_hdf5(demonstrations, path)


class TestNpzOfD4rl(OfD4rl):
    file = "set.npz"

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        np.savez(path, **flat(demonstrations))


class TestHdf5OfRobomimic(OfOthers):
    file = "low_dim.h5"

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        to_robomimic(demonstrations, path)


class TestImitationFolder(OfOthers):
    file = "trajectories"

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        to_imitation(demonstrations, path)


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
class TestLeRobot(OfOthers):
    file = "robot"

    @pytest.fixture(autouse=True)
    def _version(self, version: str) -> None:
        self.version = version

    def demonstrations(self) -> Demonstrations:
        whole = plain(NAMES)
        tasks = ("lift the cube", "push it")
        items = tuple(
            replace(each, trajectory=replace(each.trajectory, extra_info=task))
            for each, task in zip(whole, tasks, strict=True)
        )
        return replace(whole, items=items)

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        to_lerobot(demonstrations, path, self.version)


class TestRlds(OfOthers):
    """Numbers are stored in four bytes, so the set has none that need more."""

    file = "robot"

    @pytest.fixture(autouse=True)
    def _libraries(self) -> None:
        pytest.importorskip("google_crc32c")

    def demonstrations(self) -> Demonstrations:
        whole = plain(cut=True)
        items = []
        for each, task in zip(whole, ("lift the cube", ""), strict=True):
            trajectory = each.trajectory
            states, actions, rewards = (
                part.astype(np.float32).astype(np.float64)
                for part in (trajectory.states, trajectory.actions, trajectory.rewards)
            )
            changed = replace(trajectory, states=states, actions=actions, rewards=rewards, extra_info=task)
            items.append(replace(each, trajectory=changed))
        return replace(whole, items=tuple(items))

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        to_rlds(demonstrations, path)


@pytest.mark.parametrize("name", ["set.CSV", "set.csv.GZ"])
def test_the_case_of_an_ending_does_not_matter(name: str, tmp_path: Path) -> None:
    text = b"episode,x\n0,0.5\n0,1.5\n1,2.5\n1,3.5\n"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("GZ") else text)
    assert numbers(read(tmp_path / name)) == WHOLE


def test_a_file_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    to_parquet(table(), tmp_path / "a.parquet")
    np.savez(tmp_path / "b.npz", **flat(plain()))
    np.save(tmp_path / "c.npy", np.zeros((2, 3, 4)))
    to_hdf5(plain(), tmp_path / "d.hdf5")
    for name in ("a.parquet", "b.npz", "c.npy", "d.hdf5"):
        (tmp_path / name).rename(tmp_path / "data.bin")
        assert len(read(tmp_path / "data.bin")) == 2


def test_arrays_one_for_each_episode_are_read_from_an_archive(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", np.array([[0.5], [1.5]]), np.array([[2.5], [3.5]]))
    assert numbers(read(tmp_path / "set.npz")) == WHOLE
    np.savez(tmp_path / "one.npz", episodes=np.array(WHOLE))
    assert numbers(read(tmp_path / "one.npz")) == WHOLE


def test_groups_of_observations_are_parts_and_none_is_lost(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "set.hdf5", "w") as file:
        group = file.create_group("data/demo_0")
        group["actions"] = np.zeros((3, 1))
        group["obs/robot/joints"], group["obs/grip"] = np.zeros((3, 7)), np.arange(3.0)
    (found,) = read(tmp_path / "set.hdf5")
    assert set(found.trajectory.states.parts) == {"robot/joints", "grip"}
    assert found.trajectory.actions.shape == (2, 1)


def test_folders_inside_folders_are_searched_if_there_is_nothing_above_them(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "set" / name).mkdir(parents=True)
        to_parquet(table(), tmp_path / "set" / name / "expert.parquet")
    assert [Path(file).parent.name for file in expand(tmp_path / "set")] == ["a", "b"]
    to_parquet(table(), tmp_path / "set" / "expert.parquet")
    assert expand(tmp_path / "set") == [tmp_path / "set" / "expert.parquet"]
    to_lerobot(plain(NAMES), tmp_path / "more" / "robot")
    assert expand(tmp_path / "more") == [tmp_path / "more" / "robot"]


def test_tables_beside_other_demonstrations_describe_them(tmp_path: Path) -> None:
    to_csv(table(), tmp_path / "notes.csv")
    to_parquet(table(), tmp_path / "expert.parquet")
    assert expand(tmp_path) == [tmp_path / "expert.parquet"]


def test_a_table_named_for_its_role_counts_beside_other_demonstrations(tmp_path: Path) -> None:
    to_parquet(table(), tmp_path / "expert.parquet")
    to_csv(table(), tmp_path / "negative.csv")
    (tmp_path / "tasks.jsonl").write_text('{"task": 1, "words": "go"}\n')
    assert [Path(each).name for each in expand(tmp_path)] == ["expert.parquet", "negative.csv"]
    (tmp_path / "shouted").mkdir()
    to_csv(table(), tmp_path / "shouted" / "EXPERT.CSV")
    assert [Path(each).name for each in expand(tmp_path / "shouted")] == ["EXPERT.CSV"]


def test_a_table_without_a_role_beside_tables_of_its_format_is_not_dropped(tmp_path: Path) -> None:
    to_csv(table(), tmp_path / "expert.csv")
    to_csv(table(), tmp_path / "anegative.tsv")
    with pytest.raises(InputError, match=r"anegative\.tsv: no role in the file, and its name starts with neither"):
        load([tmp_path])


def test_flags_of_databases_end_episodes(tmp_path: Path) -> None:
    path = tmp_path / "expert.csv"
    path.write_text("done,x\nf,1\nt,2\nN,3\nY,4\n")
    assert [each.trajectory.states.tolist() for each in load([path])] == [[[1.0], [2.0]], [[3.0], [4.0]]]


def test_pictures_that_are_not_read_are_named(tmp_path: Path) -> None:
    to_lerobot(plain(NAMES), tmp_path / "robot")
    assert any("observation.images.top" in note for note in read(tmp_path / "robot").notes)


def test_chosen_columns_count_on_the_command_line_and_are_kept_for_a_resume(tmp_path: Path) -> None:
    lines = [{**row, "which": row["episode"], "noise": 3.0} for row in table()]
    to_csv([{name: row[name] for name in ("which", "x", "noise")} for row in lines], tmp_path / "expert.csv")
    to_csv([{"which": 0, "x": 9.0, "noise": 3.0}] * 2, tmp_path / "negative.csv")
    words = ["--demos", str(tmp_path / "expert.csv"), str(tmp_path / "negative.csv"), "--label", "all"]
    words += ["--state-columns", "x", "--episode-column", "which", "--held-out", "0"]
    assert main(["fit", *words, "--out", str(tmp_path / "run"), "--max-calls", "3"]) == 0
    assert "noise" not in (tmp_path / "run" / "reward.py").read_text()
    assert main(["fit", "--resume", str(tmp_path / "run"), "--max-calls", "4"]) == 0
    assert main(["score", str(tmp_path / "run" / "reward.py"), *words[:-2]]) == 0


@pytest.mark.parametrize("name", ["set.csv", "set.jsonl", "set.parquet", "set.npy", "set.hdf5", "robot"])
def test_more_than_the_memory_is_refused_before_it_is_read(name: str, tmp_path: Path) -> None:
    many = [{**row, "episode": copy} for copy in range(500) for row in table()[:2]]
    to_csv(many, tmp_path / "set.csv")
    to_json_lines(many, tmp_path / "set.jsonl")
    to_parquet(many, tmp_path / "set.parquet")
    np.save(tmp_path / "set.npy", np.zeros((50, 20, 4)))
    to_hdf5(plain(), tmp_path / "set.hdf5")
    to_lerobot(plain(NAMES), tmp_path / "robot")
    with pytest.raises(InputError, match=r"needs .* of memory.*expected at most"):
        read(tmp_path / name, max_memory=100 if name == "set.hdf5" else 500)


@pytest.mark.parametrize(
    ("write", "pattern", "sizes"),
    [(to_lerobot, "episode_000000.parquet", 10), (to_imitation, "data-00000-of-00001.arrow", 30)],
)
def test_episodes_of_earlier_files_count_towards_the_memory(
    write: Callable[..., None], pattern: str, sizes: int, tmp_path: Path
) -> None:
    write(plain(NAMES), tmp_path / "robot")
    (file,) = (tmp_path / "robot").rglob(pattern)
    enough = sizes * file.stat().st_size
    read(tmp_path / "robot", max_memory=enough)
    for number in range(400):
        shutil.copy(file, file.with_stem(f"{file.stem}-{number:03}"))
    with pytest.raises(BeyondLimitError, match=r"(episode_|data-)0.* needs .* of memory"):
        read(tmp_path / "robot", max_memory=enough)


def test_screens_are_the_only_observation_of_a_robot(tmp_path: Path) -> None:
    pytest.importorskip("google_crc32c")
    from grace_irl.demos.tfrecord import read_records, write_record
    from grace_irl.demos.ui.androidcontrol_pb2 import Example

    folder = described(observation={"text": {}})(tmp_path)
    (shard,) = folder.glob("*.tfrecord*")
    examples = [Example.FromString(data) for data in read_records(shard)]
    with shard.open("wb") as stream:
        for example in examples:
            count, feature = len(example.features.feature["steps/reward"].float_list.value), example.features.feature
            del feature["steps/observation"]
            texts = [f'<hierarchy><node text="{number}"/></hierarchy>'.encode() for number in range(count)]
            feature["steps/observation"].bytes_list.value.extend(texts)
            write_record(stream, example.SerializeToString())
    found = read(folder)
    assert found.metadata.kind == "ui"
    assert [len(item.trajectory.states) for item in found] == [len(item.trajectory.states) for item in plain()]


def test_columns_are_chosen_for_tables_alone(tmp_path: Path) -> None:
    np.save(tmp_path / "set.npy", np.zeros((2, 3, 4)))
    with pytest.raises(InputError, match="columns were chosen, and this is no table"):
        read(tmp_path / "set.npy", columns=Columns(("x",)))


def test_without_h5py_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    to_hdf5(plain(), tmp_path / "set.hdf5")
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(InputError, match=r"h5py is not installed.*grace-irl\[minari\]"):
        open_source(tmp_path / "set.hdf5")


def test_another_distribution_adds_a_format_by_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    (site / "bags-1.0.dist-info").mkdir(parents=True)
    (site / "bags-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: bags\nVersion: 1.0\n")
    (site / "bags-1.0.dist-info" / "entry_points.txt").write_text("[grace_irl.formats]\n.bag = bags:opened\n")
    (site / "bags.py").write_text(
        "from grace_irl.demos.foreign.episode import Episode, EpisodesSource\n"
        "import numpy\n"
        "def opened(file, memory):\n"
        "    return EpisodesSource(file, [Episode(numpy.loadtxt(file, ndmin=2), f'{file}: episode 0')])\n"
    )
    monkeypatch.syspath_prepend(str(site))
    _entries.cache_clear()
    try:
        (tmp_path / "set").mkdir()
        (tmp_path / "set" / "expert.bag").write_text("1 2\n3 4\n")
        assert numbers(load([tmp_path / "set"])) == [[[1, 2], [3, 4]]]
        (tmp_path / "expert.doc").write_text("nothing")
        with pytest.raises(InputError, match=r"unknown format '.doc'; expected .*\.bag"):
            load([tmp_path / "expert.doc"])
    finally:
        _entries.cache_clear()
