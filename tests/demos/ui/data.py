"""Real screens (../shared/data/android; its MANIFEST.md says whose)."""

from __future__ import annotations

from pathlib import Path

import pytest

ANDROID = Path(__file__).parents[4] / "shared" / "data" / "android"
ALARM = ANDROID / "alarm_episode"
DUMPS = sorted((ALARM / "hierarchy").glob("*.xml"))
HISTORIES = sorted((ANDROID / "androidworld").glob("*.json.gz"))
ELEMENTS = sorted((ANDROID / "androidworld").glob("*_ui_element.txt"))
RECORDS = sorted((ANDROID / "utg").glob("*.yaml"))
CALENDAR = ANDROID / "calendar" / "trailblaze_waypoint_examples.tar.xz"

needs_android = pytest.mark.skipif(not ANDROID.is_dir(), reason="../shared/data/android is not there")
