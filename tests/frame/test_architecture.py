"""The ways on docs/architecture.md, held against a real fit: it calls each named function, in the order of the page."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import grace_irl
from tests.frame.pages import Section, sections
from tests.frame.tree import ROOT, files

STEP = re.compile(r"`(?P<file>[\w/]+\.py):(?P<function>[\w.]+)`")
WAYS = ("The way of a trajectory", "The way of a program")


def steps(section: Section) -> list[str]:
    """The functions of a way, as `file:function`, in order."""
    rows = [row for table in section.tables if "function" in table.head for row in table.rows]
    return [found[0].strip("`") for row in rows for found in STEP.finditer(" ".join(row))]


def code_of(step: str) -> CodeType:
    """The code that runs for a step.

    Raises:
        AssertionError: the package has no such function.
    """
    file, _, function = step.partition(":")
    assert (ROOT / "grace_irl" / file).is_file(), f"{step}: no such file"
    module = importlib.import_module("grace_irl." + file.removesuffix(".py").replace("/", "."))
    try:
        found = reduce(getattr, function.split("."), module)
    except AttributeError:
        raise AssertionError(f"{step}: no such function") from None
    inner = getattr(found, "fget", None) or getattr(found, "func", None) or getattr(found, "__wrapped__", None) or found
    return inner.__code__  # type: ignore[no-any-return]


@contextmanager
def traced(wanted: dict[CodeType, str]) -> Iterator[list[str]]:
    """Lists functions in the order of their first calls, in every thread that starts meanwhile.

    Calls by which the sandbox attacks itself before the search do not count.
    """
    calls: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in wanted and not probing(frame):
            calls.setdefault(wanted[frame.f_code])

    found: list[str] = []
    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]
        found += calls


def probing(frame: FrameType | None) -> bool:
    """Whether a call is part of the sandbox's probe."""
    while frame is not None:
        if frame.f_code.co_filename.endswith("sandbox/tiers.py"):
            return True
        frame = frame.f_back
    return False


def missed(way: Sequence[str], calls: Sequence[str]) -> str:
    """The first step that was not called after the one before it; "" if each was called in order."""
    rest = iter(calls)
    return next((step for step in way if step not in rest), "")


@pytest.fixture(scope="module")
def ways() -> dict[str, list[str]]:
    """Steps by the heading of their way."""
    page = Path("docs/architecture.md")
    return {each.heading: steps(each) for each in sections() if each.page == page and each.heading in WAYS}


@pytest.fixture(scope="module")
def calls(ways: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Those that a fit on the shipped set makes to functions that the page names."""
    wanted = {code_of(step): step for way in ways.values() for step in way}
    with traced(wanted) as found:
        grace_irl.fit(ROOT / "datasets" / "babyai-go-to-obj", out=tmp_path_factory.mktemp("way") / "run", workers=1)
    return found


@pytest.mark.parametrize("heading", WAYS)
def test_a_fit_takes_the_steps_of_the_page_in_order(heading: str, ways: dict[str, list[str]], calls: list[str]) -> None:
    assert len(ways[heading]) > 3
    step = missed(ways[heading], calls)
    assert not step, f"docs/architecture.md, {heading}: {step} was not called after the steps before it"


@pytest.mark.parametrize("heading", WAYS)
def test_another_order_is_noticed(heading: str, ways: dict[str, list[str]], calls: list[str]) -> None:
    way = ways[heading]
    for first in range(len(way) - 1):
        assert missed([*way[:first], way[first + 1], way[first], *way[first + 2 :]], calls) == way[first]


def test_the_picture_shows_every_room() -> None:
    shown = set(re.findall(r">(\w+/)</text>", (ROOT / "docs" / "pictures" / "parts.svg").read_text()))
    rooms = {path.parent.name + "/" for path in files(ROOT / "grace_irl", "__init__.py")}
    rooms = {room for room in rooms if (ROOT / "grace_irl" / room / "__init__.py").exists()}
    assert shown == rooms - {"grace_irl/"}


def test_the_picture_is_what_its_script_draws() -> None:
    done = subprocess.run([sys.executable, ROOT / "docs" / "parts.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("step", ["demos/none.py:load", "demos/files.py:none", "runs/engine.py:Engine.none"])
def test_unknown_functions_are_noticed(step: str) -> None:
    with pytest.raises(AssertionError, match="no such"):
        code_of(step)
