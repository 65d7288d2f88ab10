"""Shards of AndroidControl: what others write is read, what we write is read by others, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.demos import iter_trajectories, load, save
from grace_irl.demos.convert import Stated, convert
from grace_irl.demos.files import open_source, open_writer
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.states import screen
from grace_irl.states.ui import markup
from tests.demos.equality import assert_same
from tests.demos.ui import decoder
from tests.demos.ui.data import ALARM, ELEMENTS, HISTORIES, RECORDS, needs_android
from tests.demos.ui.shards import SCREENS, episode, png, shard
from tests.demos.ui.trees import markups
from tests.frame.tree import ROOT

pytest.importorskip("google.protobuf")

from grace_irl.demos.ui.androidcontrol import AndroidControlSource

NAME = "android_control-00003-of-00020"
UI = Metadata("ui", view="uiautomator")


def trajectory(texts: Sequence[str] = SCREENS, **parts: object) -> Trajectory:
    made = Trajectory(screen.pack([markup.write(markup.parse(text)) for text in texts]))
    return replace(made, **parts)  # type: ignore[arg-type]


def texts(found: Trajectory) -> list[str]:
    return [screen.text(state) for state in found.states]


@pytest.mark.slow
@needs_android
@pytest.mark.parametrize("zipped", [False, True])
def test_real_screens_come_back_node_by_node(zipped: bool, tmp_path: Path) -> None:
    """All the XML and element lists there are, as one shard each, and as a folder of shards."""
    paths = [ALARM, *HISTORIES, *ELEMENTS, *RECORDS]
    whole = load(paths, role="expert")
    target = tmp_path / (f"a{NAME}" if zipped else "all.tfrecord")
    save(whole, target, "androidcontrol")
    found = load([target])
    assert_same(found, whole)
    for one, other in zip(found, whole, strict=True):
        assert one.trajectory.digest == other.trajectory.digest
        for state, expected in zip(texts(one.trajectory), texts(other.trajectory), strict=True):
            root, wanted = markup.parse(state), markup.parse(expected)
            for node, like in zip(root.iter(), wanted.iter(), strict=True):
                assert (node.tag, len(node), list(node.attrib.items())) == (
                    like.tag,
                    len(like),
                    list(like.attrib.items()),
                )


@needs_android
def test_another_reader_finds_what_we_wrote(tmp_path: Path) -> None:
    """It knows of TFRecord and protocol buffers what their documents say, and of this project nothing."""
    whole = load([ALARM], role="expert")
    save(whole, tmp_path / NAME)
    (record,) = decoder.records((tmp_path / NAME).read_bytes())
    features = decoder.features(record)
    assert features["episode_id"] == [0]
    assert features["goal"] == [whole[0].trajectory.extra_info.encode()]
    trees = features["accessibility_trees"]
    assert len(trees) == 32
    for tree, text in zip(trees, texts(whole[0].trajectory), strict=True):
        assert isinstance(tree, bytes)
        windows = decoder.labels(tree)
        root = markup.parse(text)
        assert len(windows) == len(root)
        for window, top in zip(windows, root, strict=True):
            said = [tuple(node.get(name) for name in ("text", "class", "content-desc")) for node in top.iter()]
            assert sorted(window) == sorted(said)
            assert window[0] == said[0]
    assert set(features) == {
        "episode_id",
        "goal",
        "accessibility_trees",
        "actions",
        "step_instructions",
        "screenshots",
        "screenshot_widths",
        "screenshot_heights",
        "grace_irl",
    }


@pytest.mark.parametrize("name", [NAME, "shard.tfrecord", "shard.tfrecord.gz", "shard", "shard.gz"])
@pytest.mark.parametrize("zipped", [False, True])
def test_shards_of_others(name: str, zipped: bool, tmp_path: Path) -> None:
    path = shard(tmp_path / name, [episode(5), episode(9, SCREENS[:1])], zipped)
    source = open_source(path)
    assert isinstance(source, AndroidControlSource)
    assert source.header.metadata == UI
    first, second = load([tmp_path], role="negative")
    assert (first.role, first.task, first.split, first.goals) == ("negative", "default", None, None)
    assert (first.trajectory.extra_info, second.trajectory.extra_info) == ("set alarm 5", "set alarm 9")
    assert first.trajectory.source == f"{path}: episode 5"
    assert first.trajectory.actions is None
    states = texts(first.trajectory)
    assert markup.parse(states[1])[0][0].get("text") == "8:25"
    assert markup.parse(states[1])[0][0].get("clickable") == "true"
    assert [node.get("class") for node in markup.parse(states[1])] == ["a", "b"]
    assert states[2] == '<hierarchy rotation="0"/>'
    assert next(iter(source.records())) == episode(5)


def test_the_role_is_asked_for(tmp_path: Path) -> None:
    path = shard(tmp_path / NAME, [episode()])
    with pytest.raises(InputError, match="no role in the file, and its name"):
        load([path])
    assert load([shard(tmp_path / "expert.tfrecord", [episode()])])[0].role == "expert"
    assert load([], [path])[0].role == "negative"


def test_screenshots_are_found_again(tmp_path: Path) -> None:
    path = shard(tmp_path / NAME, [episode(number) for number in (4, 5, 6)])
    found = load([path], role="expert")
    for item in reversed(found):  # any order; the shard is gone through again
        pictures = item.trajectory.screenshots
        assert [picture and picture.read() for picture in pictures] == list(episode().screenshots)
    path.unlink()
    picture = found[0].trajectory.screenshots[1]
    assert picture is not None
    assert picture.read() == png(1080, 2401, b"\x01")  # of the record that was looked up last
    picture = found[1].trajectory.screenshots[0]
    assert picture is not None
    with pytest.raises(InputError, match="cannot be read"):
        picture.read()
    shard(path, [episode(4)])
    with pytest.raises(InputError, match="no record 1 any more"):
        picture.read()


def test_screenshots_are_written(tmp_path: Path) -> None:
    """From any source: here from another shard, and with a state that has none."""
    (item,) = load([shard(tmp_path / "expert.tfrecord", [episode()])])
    pictures = item.trajectory.screenshots
    changed = replace(item, trajectory=replace(item.trajectory, screenshots=(pictures[0], None, pictures[2])))
    save(Demonstrations(UI, (changed,)), tmp_path / NAME)
    (again,) = load([tmp_path / NAME])
    found = [picture and picture.read() for picture in again.trajectory.screenshots]
    assert found == [png(1080, 2400, b"\x00"), None, png(1080, 2402, b"\x02")]
    source = open_source(tmp_path / NAME)
    assert isinstance(source, AndroidControlSource)
    (record,) = source.records()
    assert record.sizes == ((1080, 2400), (0, 0), (1080, 2402))
    assert record.episode_id == 5


def test_actions_and_instructions_of_steps_stay_texts(tmp_path: Path) -> None:
    (item,) = load([shard(tmp_path / "expert.tfrecord", [episode()])])
    assert item.trajectory.actions is None
    assert json.loads(item.trajectory.action_texts[1]) == {"action_type": "click", "x": 1, "y": 7}
    assert item.trajectory.step_instructions == ("click 0", "click 1")
    save(Demonstrations(UI, (item, Demonstration(trajectory(), "expert"))), tmp_path / NAME)
    source = open_source(tmp_path / NAME)
    assert isinstance(source, AndroidControlSource)
    first, second = source.records()
    assert replace(first, about="") == episode()
    assert (second.actions, second.step_instructions) == ((), ())


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        (('{"action_type": "wait"}',), "screens: 1 actions for 3 accessibility trees; expected 2"),
        (("{}", "wait"), "screens, step 1: an action that cannot be read"),
    ],
)
def test_texts_that_are_no_actions_are_not_written(actions: tuple[str, ...], words: str, tmp_path: Path) -> None:
    annotated = trajectory(source="screens", action_texts=actions)
    with pytest.raises(InputError, match=words):
        save(Demonstrations(UI, (Demonstration(annotated, "expert"),)), tmp_path / NAME)
    assert not list(tmp_path.iterdir())


def test_everything_that_a_demonstration_has_comes_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    items = (
        Demonstration(
            trajectory(extra_info="stelle den Wecker ⏰", terminated=True), "expert", "Wecker", "train", (2,)
        ),
        Demonstration(
            trajectory(
                actions=rng.integers(0, 9, (2, 3), dtype=np.int32),
                rewards=np.array([0.1, -1e300]),
                log_probs=np.array([-0.5, -np.inf]),
                truncated=True,
            ),
            "negative",
            goals=(),
        ),
        Demonstration(trajectory(actions=np.array([0.25, 1e-30])), "negative", split="held_out"),
        Demonstration(trajectory(SCREENS[:1]), "expert"),
    )
    whole = Demonstrations(Metadata("ui", (), "android-v0", "uiautomator", "goal"), items)
    save(whole, tmp_path / NAME)
    assert_same(load([tmp_path / NAME]), whole)
    assert_same(Demonstrations(whole.metadata, tuple(iter_trajectories(tmp_path / NAME))), whole)


def test_equal_sets_are_equal_files(tmp_path: Path) -> None:
    whole = Demonstrations(UI, (Demonstration(trajectory(), "expert"),) * 2)
    for name in ("a.tfrecord", "b.tfrecord"):
        save(whole, tmp_path / name)
    assert (tmp_path / "a.tfrecord").read_bytes() == (tmp_path / "b.tfrecord").read_bytes()


@settings(max_examples=60)
@given(st.lists(st.lists(markups(), min_size=1, max_size=4), min_size=1, max_size=3))
def test_any_screens_come_back(tmp_path_factory: pytest.TempPathFactory, episodes: list[list[str]]) -> None:
    path = tmp_path_factory.mktemp("any") / NAME
    whole = Demonstrations(UI, tuple(Demonstration(trajectory(one), "expert") for one in episodes))
    save(whole, path)
    found = load([path])
    assert_same(found, whole)


def test_episodes_keep_their_numbers(tmp_path: Path) -> None:
    sources = ["a.parquet: episode 7", "b.parquet: episode 7", "", "c: episode 0", "d: episode 1", "notes"]
    items = tuple(Demonstration(trajectory(source=source), "expert") for source in sources)
    save(Demonstrations(UI, items), tmp_path / NAME)
    source = open_source(tmp_path / NAME)
    assert isinstance(source, AndroidControlSource)
    assert [record.episode_id for record in source.records()] == [7, 0, 1, 2, 3, 4]


def test_convert_from_and_to(tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    shard(folder / "android_control-00000-of-00002", [episode(1)])
    shard(folder / "android_control-00001-of-00002", [episode(2), episode(3)])
    (folder / "splits.json").write_text('{"train": [1, 2, 3]}')  # lies beside the real ones
    (folder / "README.md").write_text("about")
    copied = convert(folder, tmp_path / "out", "androidcontrol", Stated(role="expert", task="alarm"))
    assert [(Path(one.path).name, one.trajectories) for one in copied] == [
        ("android_control-00000-of-00002.tfrecord", 1),
        ("android_control-00001-of-00002.tfrecord", 2),
    ]
    found = load([tmp_path / "out"])
    assert [(item.role, item.task) for item in found] == [("expert", "alarm")] * 3
    for one, other in zip(found, load([folder], role="expert"), strict=True):
        assert one.trajectory.digest == other.trajectory.digest
        assert one.trajectory.screenshots[1].read() == other.trajectory.screenshots[1].read()  # type: ignore[union-attr]
    convert(folder / "android_control-00000-of-00002", tmp_path / "again-00000-of-00001", None, Stated(role="expert"))
    assert load([tmp_path / "again-00000-of-00001"])[0].trajectory.extra_info == "set alarm 1"


def test_names_of_shards(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not a name for format androidcontrol; expected one that ends in .tfrecord"):
        open_writer(tmp_path / "set.parquet", UI, "androidcontrol")
    with pytest.raises(InputError, match=r"AndroidControl holds screens; expected .parquet or .npz"):
        open_writer(tmp_path / "set.tfrecord", Metadata("vector"))


def test_pictures_of_another_format_are_refused(tmp_path: Path) -> None:
    class Jpeg:
        def read(self) -> bytes:
            return b"\xff\xd8\xff\xe0"

    item = Demonstration(trajectory(SCREENS[:1], screenshots=(Jpeg(),), source="folder"), "expert")
    with pytest.raises(InputError, match="folder, step 0: a screenshot that is no PNG"):
        save(Demonstrations(UI, (item,)), tmp_path / NAME)
    assert not list(tmp_path.iterdir())


MEMORY = """
import resource, sys
from pathlib import Path
import numpy as np
from grace_irl.demos.files import open_source

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

source = open_source(sys.argv[1])
episodes = source.demonstrations("expert", np.empty)
next(episodes)
before = peak()
count = 1 + sum(1 for _ in episodes)
print(count, peak() - before)
"""


def test_a_shard_does_not_have_to_fit_in_memory(tmp_path: Path) -> None:
    """Going through 40 episodes takes no more than going through one, give or take two."""
    rng = np.random.default_rng(0)
    pictures = [png(1080, 2400, rng.bytes(700_000)) for _ in SCREENS]  # bytes that GZIP cannot shrink
    path = shard(tmp_path / NAME, [episode(number, screenshots=tuple(pictures)) for number in range(40)])
    size = path.stat().st_size
    assert size > 80_000_000
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, path], capture_output=True, text=True, timeout=120, cwd=ROOT, check=True
    )
    count, grown = map(int, done.stdout.split())
    assert count == 40
    assert grown < size / 20


ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("google", "google_crc32c"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from grace_irl.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("command", [["inspect", NAME], ["convert", "expert.xml", "out.tfrecord"]])
def test_without_the_extra(command: list[str], tmp_path: Path) -> None:
    shard(tmp_path / NAME, [episode()])
    (tmp_path / "expert.xml").write_text(SCREENS[0])
    done = subprocess.run(
        [sys.executable, "-c", ABSENT, "demos", *command],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "is not installed; install the extra, pip install 'grace-irl[android]'" in done.stderr
    assert not (tmp_path / "out.tfrecord").exists()


def test_what_is_kept_beside_is_checked(tmp_path: Path) -> None:
    def about(**changed: object) -> str:
        plain = {"metadata": {"kind": "ui", "view": "uiautomator"}, "role": "expert", "task": "t"}
        return json.dumps({**plain, **changed})

    numbers = {"dtype": "<f8", "shape": [2], "values": [1.0, 2.0]}
    good = shard(tmp_path / "good.tfrecord", [episode(about=about(arrays={"rewards": numbers}))])
    assert load([good])[0].trajectory.rewards is not None
    for changed, words in (
        ({"metadata": None}, "cannot be used"),
        ({"metadata": {"kind": "ui", "label": "best"}}, "metadata.label"),
        ({"role": "judge"}, "role: Input should be 'expert'"),
        ({"split": "test"}, "split: Input should be 'train'"),
        ({"goals": 3}, "cannot be used"),
        ({"goals": ["x"]}, "cannot be used"),
        ({"screens": [None]}, "1 residues for 3 trees"),
        ({"screens": [1, 2, 3]}, "screens.0"),
        ({"screens": 3}, "cannot be used"),
        ({"arrays": {"rewards": {**numbers, "shape": [3]}}}, "cannot be used"),
        ({"arrays": {"rewards": {**numbers, "dtype": "O"}}}, "numbers of dtype object"),
        ({"arrays": {"rewards": {**numbers, "values": ["a", "b"]}}}, "cannot be used"),
        ({"arrays": {"rewards": {**numbers, "values": [1.0], "shape": [1]}}}, "1 rewards for 3 states"),
        ({"arrays": {"actions": []}}, "cannot be used"),
        ({"arrays": {"rewards": {**numbers, "shape": [], "values": 1.0}}}, r"rewards of shape \(\)"),
        ({"arrays": {"rewards": {**numbers, "shape": [2, 1]}}}, r"rewards of shape \(2, 1\)"),
        ({"task": "\ud800"}, "cannot be used"),
        ({"arrays": 3}, "cannot be used"),
    ):
        require_refused(shard(tmp_path / "bad.tfrecord", [episode(about=about(**changed))]), words)
    for kept in ("[]", "{", "[" * 10**6):
        require_refused(shard(tmp_path / "bad.tfrecord", [episode(about=kept)]), "cannot be used")


def require_refused(path: Path, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        load([path])
    assert "\n" not in str(caught.value)
