"""`datasets/android-clock/recipe.toml` on shards as AndroidControl's are: made-up episodes in its format."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path

import pytest

from grace_irl.cli import main
from grace_irl.demos import load
from grace_irl.demos.labels import label
from grace_irl.demos.tfrecord import write_record
from grace_irl.demos.ui import forest
from grace_irl.demos.ui.record import EpisodeRecord
from grace_irl.evaluate.columns import require_both_sides
from grace_irl.states.ui import markup

RECIPE = Path(__file__).parents[2] / "datasets" / "android-clock" / "recipe.toml"
CLOCK = "com.google.android.deskclock"
LAUNCHER = "com.google.android.apps.nexuslauncher"

TIMERS = [
    "Set a timer for 6 hours from now",
    "Open the clock app and set timer to 25 minutes",
    "In the Clock app, start a 10 minute timer",
]
PAUSES = ["Pause the stopwatch", "Open the Clock app and stop the stopwatch", "Let the stop watch run, then pause it"]
RUNS = ["Run the stopwatch in the clock app", "Start the stop watch", "I want the stopwatch to run"]
OTHER_CLOCK = [
    "Set an alarm for 7 am",
    "Delete the timer",
    "Show the time in Tokyo in the clock app",
    "Reset the stopwatch",
]
OTHERS = ["Send an email to Ann", "Find a route to the airport", "Play the song", "Add milk to my list"]
APPS = ["com.google.android.gm", "com.google.android.apps.maps", "com.spotify.music", "com.todoist"]


def screen(package: str, text: str) -> bytes:
    root = markup.hierarchy()
    window = markup.add(root, {"package": package, "class": "android.widget.FrameLayout", "bounds": "[0,0][1080,2400]"})
    markup.add(
        window, {"package": package, "class": "android.widget.TextView", "text": text, "bounds": "[0,0][500,90]"}
    )
    return bytes(forest.forest_of(root).SerializeToString(deterministic=True))


def record(number: int, goal: str, package: str) -> EpisodeRecord:
    """An episode of the data set: from the launcher into an app; nothing of ours in it."""
    trees = (screen(LAUNCHER, "Clock"), screen(package, "menu"), screen(package, f"{goal} {number}"))
    actions = (json.dumps({"action_type": "open_app", "app_name": "App"}), json.dumps({"action_type": "wait"}))
    return EpisodeRecord(number, goal, trees, actions, ("Open the app", "Wait"))


def shards(folder: Path, negatives: int) -> None:
    """Three shards with 15 experts' episodes of each goal, clock goals that are none of these, and other apps."""
    about = [(goal, CLOCK) for goals in (TIMERS, PAUSES, RUNS) for goal in goals * 5]
    about += [(goal, CLOCK) for goal in OTHER_CLOCK * 5]
    # A goal that the recipe wants, in an app that it does not: neither expert nor negative.
    about += [("Set a timer for the eggs", "com.cooking.recipes"), ("Pause the stopwatch", "com.sports.runner")]
    about += [(OTHERS[n % 4], APPS[n % 4]) for n in range(negatives)]
    random.Random(0).shuffle(about)
    records = [record(number, goal, package) for number, (goal, package) in enumerate(about)]
    folder.mkdir()
    for shard in range(3):
        with gzip.open(folder / f"android_control-{shard:05}-of-00003", "wb") as stream:
            for one in records[shard::3]:
                write_record(stream, one.serialise())


def run(source: Path, target: Path) -> int:
    return main(["demos", "select", "--recipe", str(RECIPE), "--from", str(source), "--out", str(target)])


def test_the_recipe_on_whole_shards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shards(tmp_path / "shards", 830)
    assert run(tmp_path / "shards", tmp_path / "set") == 0
    assert capsys.readouterr().err == ""
    loaded = load([tmp_path / "set"])
    assert loaded.metadata.label == "last"
    assert Counter((item.task, item.role) for item in loaded) == {
        ("set timer", "expert"): 12,
        ("pause stopwatch", "expert"): 8,
        ("run stopwatch", "expert"): 8,
        ("set timer", "negative"): 268,
        ("pause stopwatch", "negative"): 266,
        ("run stopwatch", "negative"): 266,
    }
    held_out = Counter((item.task, item.role) for item in loaded if item.split == "held_out")
    assert held_out == {
        ("set timer", "expert"): 2,
        ("pause stopwatch", "expert"): 2,
        ("run stopwatch", "expert"): 2,
        ("set timer", "negative"): 54,
        ("pause stopwatch", "negative"): 53,
        ("run stopwatch", "negative"): 53,
    }
    wanted = {"set timer": TIMERS, "pause stopwatch": PAUSES, "run stopwatch": RUNS}
    for item in loaded:
        goals = wanted[item.task] if item.role == "expert" else OTHERS
        assert item.trajectory.extra_info in goals
        assert any(b"deskclock" in bytes(state) for state in item.trajectory.states) is (item.role == "expert")
    assert len({item.trajectory.digest for item in loaded}) == len(loaded)
    require_both_sides(label(loaded, "last").train)


def test_too_few_negatives_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shards(tmp_path / "shards", 300)
    assert run(tmp_path / "shards", tmp_path / "set") == 2
    said = capsys.readouterr().err
    assert "negative-run-stopwatch.parquet: nothing is chosen (all 300 that meet its conditions" in said
    assert not (tmp_path / "set").exists()
