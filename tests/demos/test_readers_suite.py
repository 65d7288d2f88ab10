"""Every format's reader, by the suite of readers: what we write, and the screens of others."""

from __future__ import annotations

import gzip
import json
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from grace_irl.demos import iter_trajectories, load, save
from grace_irl.demos.files import open_source
from grace_irl.demos.source import Source
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.states.texts import pack, text
from grace_irl.states.ui import markup
from grace_irl.states.ui.screen import Node, Screen
from grace_irl.testing.readers import ReaderSuite, require_same
from tests.demos.conftest import screen
from tests.demos.matrix import FORMATS, FormatCase
from tests.demos.regions import region_of


class Ours(ReaderSuite):
    """A reader that `load` knows."""

    file: str

    @abstractmethod
    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        """Writes a set."""

    def make(self, demonstrations: Demonstrations, folder: Path) -> Callable[[], Source]:
        self.write(demonstrations, folder / self.file)
        return lambda: open_source(folder / self.file)

    def test_load_gives_the_same_in_one_region_that_nobody_writes(self, tmp_path: Path) -> None:
        whole, path = self.demonstrations(), tmp_path / self.file
        self.write(whole, path)
        found = load([path], role=self.role)
        assert found.metadata == whole.metadata
        regions = set()
        for one, other in zip(found, whole, strict=True):
            require_same(one, other)
            for array in (one.trajectory.states, one.trajectory.actions):
                if array is not None:
                    with pytest.raises(ValueError, match="read-only"):
                        array[...] = 0
                    regions |= {id(region_of(array))} if array.size else set()
        assert len(regions) == 1
        for one, other in zip(iter_trajectories(path, role=self.role), whole, strict=True):
            require_same(one, other)


def sets(case: FormatCase) -> list[str]:
    """Fixtures with sets that a format holds; "" is the suite's own."""
    arrays = ["", "grids", "vectors", *([] if case.actions_needed else ["states_only"])]
    return [*(arrays if case.arrays else ()), *(["screens"] if case.screens else ())]


class TestSaved(Ours):
    """Formats that we write, too."""

    @pytest.fixture(
        autouse=True,
        params=[(case, name) for case in FORMATS for name in sets(case)],
        ids=lambda param: f"{param[0].name}-{param[1] or 'all'}",
    )
    def _set(self, request: pytest.FixtureRequest) -> None:
        self.case, name = request.param
        self.file = self.case.file
        self.whole = self.case.held(request.getfixturevalue(name) if name else super().demonstrations())

    def demonstrations(self) -> Demonstrations:
        return self.whole

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        save(demonstrations, path, self.case.name)


class OfScreens(Ours):
    """A format of others, with one episode in a file."""

    role: ClassVar[Role | None] = "expert"
    instruction: ClassVar[str] = ""
    success: ClassVar[bool] = False
    several: ClassVar[bool] = False

    def screens(self) -> list[str]:
        """The states, as markup; only the first if a file has one."""
        return [screen("Alarm", "Überall 起床 😀"), screen(), screen("Alarm", "8:25", "PM")]

    def demonstrations(self) -> Demonstrations:
        states = pack(self.screens() if self.several else self.screens()[:1])
        trajectory = Trajectory(states, extra_info=self.instruction, terminated=self.success)
        return Demonstrations(Metadata("ui", view="uiautomator"), (Demonstration(trajectory, "expert"),))


def nodes(demonstrations: Demonstrations) -> list[tuple[Node, ...]]:
    """The nodes of each state of the one episode."""
    return [Screen.parse(bytes(state)).nodes for state in demonstrations[0].trajectory.states]


def fields(node: Node) -> dict[str, Any]:
    """What AndroidWorld has of a node."""
    assert node.bounds is not None
    sides = dict(zip(("x_min", "y_min", "x_max", "y_max"), node.bounds, strict=True))
    return {"text": node.text, "resource_id": node.resource_id, "bbox_pixels": sides}


class TestDumpsInAFolder(OfScreens):
    file = "episode"
    role = None
    instruction = "set an alarm"
    success = True
    several = True

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        (path / "hierarchy").mkdir(parents=True)
        (path / "task.json").write_text(json.dumps({"task": self.instruction, "success": True}))
        for step, state in enumerate(demonstrations[0].trajectory.states):
            (path / "hierarchy" / f"step_{step + 8}.xml").write_text(text(state))


class TestDump(OfScreens):
    file = "screen.xml"

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        path.write_bytes(demonstrations[0].trajectory.states[0])


class TestHistory(OfScreens):
    file = "history.json.gz"
    role = None
    instruction = "set an alarm"
    success = True
    several = True

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        about = {"task_goal": self.instruction, "result": True}
        steps = [{**about, "ui_description": [fields(node) for node in each]} for each in nodes(demonstrations)]
        path.write_bytes(gzip.compress(json.dumps(steps).encode()))


class TestElements(OfScreens):
    file = "a_ui_element.txt"

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        lines = []
        for node in nodes(demonstrations)[0]:
            about = {name: repr(value) for name, value in fields(node).items() if name != "bbox_pixels"}
            about["bbox_pixels"] = f"BoundingBox({named(fields(node)['bbox_pixels'])})"
            lines.append(f"UIElement({named(about)})")
        path.write_text("\n".join(lines))


def named(values: dict[str, Any]) -> str:
    """Keyword arguments, as Python prints them."""
    return ", ".join(f"{name}={value}" for name, value in values.items())


class TestTree(OfScreens):
    file = "screen.json"
    instruction = "set an alarm"

    def screens(self) -> list[str]:
        root = markup.hierarchy()
        above = markup.add(root, {"class": "android.widget.FrameLayout"})
        for label in ("Alarm", "Überall 起床 😀"):
            markup.add(above, {"text": label, "clickable": True, "bounds": "[0,1][9,10]"})
        return [markup.write(root)]

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        above, *others = nodes(demonstrations)[0]
        children = [{"text": node.text, "isClickable": True, "bounds": "[0,1][9,10]"} for node in others]
        tree = {"className": above.class_name, "children": children}
        path.write_text(json.dumps({"task": self.instruction, "root": tree}))


class TestRecords(OfScreens):
    file = "utg.yaml"
    instruction = "set an alarm"
    several = True

    @pytest.fixture(autouse=True)
    def _yaml(self) -> None:
        pytest.importorskip("yaml")

    def screens(self) -> list[str]:
        found = []
        for labels in (("Alarm", "Überall 起床 😀"), ("8:25\nPM",)):
            root = markup.hierarchy()
            for label in labels:
                markup.add(root, {"text": label, "class": "android.widget.TextView"})
            found.append(markup.write(root))
        return found

    def write(self, demonstrations: Demonstrations, path: Path) -> None:
        states = []
        for each in nodes(demonstrations):
            lines = (f"<p id={node.index}>{node.text}</p>".replace("\n", "<br>") for node in each)
            states.append({"State": "\n".join(lines)})
        path.write_text(json.dumps({"records": states, "task_name": self.instruction}, ensure_ascii=False))
