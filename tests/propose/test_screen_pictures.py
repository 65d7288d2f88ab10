"""Screens as pictures: drawings from the bounds, screenshots where there are some."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.demos.labels import label
from grace_irl.demos.screenshots import FileScreenshot
from grace_irl.demos.trajectory import Demonstrations, Metadata
from grace_irl.demos.ui.picture import picture
from grace_irl.errors import InputError
from grace_irl.propose.pictures import pictures, require_pictures
from grace_irl.propose.views.trajectory import Shown
from grace_irl.states.ui.drawing import FILLS, LINES, LONGEST, PAPER, drawing
from grace_irl.states.ui.screen import Screen
from tests.propose.screens import EPISODE, asking, demonstrations, episode, node, problem, screen, things, trajectory
from tests.propose.views.outlines import raw, trees

Image = pytest.importorskip("PIL.Image")
Color = pytest.importorskip("PIL.ImageColor")


def colours(image: Image.Image) -> set[tuple[int, int, int]]:
    return {colour for _, colour in image.getcolors(1 << 24)}


def rgb(name: str) -> tuple[int, int, int]:
    found: tuple[int, int, int] = Color.getrgb(name)
    return found


def drawn(*specs: object) -> Image.Image:
    return drawing(Screen.parse(screen(*specs)))


def test_nodes_are_where_their_bounds_are() -> None:
    image = drawn(
        node("Button", clickable=True, bounds="[0,0][40,30]"),
        node("CheckBox", checkable=True, checked=True, bounds="[50,0][90,30]"),
        node("View", bounds="[0,40][100,80]"),
    )
    assert image.size == (100, 80)
    assert image.getpixel((20, 15)) == rgb(FILLS["use"])
    assert image.getpixel((0, 15)) == image.getpixel((39, 15)) == rgb(LINES["use"])
    assert image.getpixel((55, 5)) == rgb(FILLS["checked"])
    assert image.getpixel((45, 15)) == image.getpixel((50, 60)) == rgb(PAPER)


@pytest.mark.parametrize(
    ("state", "colour"),
    [
        ({"checked": True}, FILLS["checked"]),
        ({"selected": True}, LINES["selected"]),
        ({"focused": True}, LINES["focused"]),
        ({}, LINES["plain"]),
    ],
)
def test_states_have_colours(state: dict[str, bool], colour: str) -> None:
    assert rgb(colour) in colours(drawn(node("View", "x", **state)))
    for other in {FILLS["checked"], LINES["selected"], LINES["focused"]} - {colour}:
        assert rgb(other) not in colours(drawn(node("View", "x", **state)))


def test_texts_are_written_inside() -> None:
    bounds = {"bounds": "[0,0][300,100]"}
    empty, short, long = (
        drawn(node("View", text, **bounds), node("View", **bounds)) for text in ("", "8:25", "word " * 99)
    )
    assert len(colours(empty)) < len(colours(short))
    dark = [sum(image.convert("L").histogram()[:100]) for image in (empty, short, long)]
    assert dark[0] < dark[1] < dark[2]


def test_large_screens_stay_within_a_size() -> None:
    assert max(drawn(node("View", "x", bounds="[0,0][1080,2400]")).size) == LONGEST
    assert drawn(node("View", "x", bounds="[0,0][999999999,2]")).size == (LONGEST, 1)


def test_sources_without_bounds_are_lists() -> None:
    image = drawn(*[node("TextView", f"line {n}", bounds="[0,0][0,0]") for n in range(5)])
    assert image.size == (LONGEST // 2, 5 * 26)


@given(st.lists(trees, max_size=3))
@settings(max_examples=60)
def test_odd_trees_are_drawn(specs: list[object]) -> None:
    image = drawing(Screen.parse(raw(*specs)))
    assert min(image.size) >= 1
    assert max(image.size) <= LONGEST


def test_prompts_say_what_is_drawn() -> None:
    titles = {f"Expert {n}": Shown(item) for n, item in enumerate(problem().train[:2], start=1)}
    shown = pictures(titles)
    assert len(shown.files) == 4
    assert shown.captions[:2] == ("drawing of state 1 of Expert 1", "drawing of state 4 of Expert 1, positive")
    assert "Programs are handed the XML alone." in shown.text
    assert shown == pictures(titles)
    require_pictures(problem())


def saved(path: Path, size: tuple[int, int], kind: str) -> FileScreenshot:
    Image.new("RGB", size, "#102030").save(path, format=kind)
    return FileScreenshot(path)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_screenshots_go_before_drawings(tmp_path: Path, kind: str) -> None:
    shot = saved(tmp_path / "shot", (1080, 2400), kind)
    one = replace(trajectory("mip", 85), screenshots=(shot, None, None, None))
    shown = picture(one, 0)
    assert shown.screenshot
    image = Image.open(io.BytesIO(shown.png))
    assert image.format == "PNG"
    assert image.size == (450, LONGEST)
    assert not picture(one, -1).screenshot
    items = [replace(demonstrations()[0], trajectory=one), *demonstrations()[1:]]
    train = label(Demonstrations(Metadata("ui"), tuple(items)), "last").train
    captions = pictures({f"Expert {n}": Shown(item) for n, item in enumerate(train[:2], start=1)}).captions
    assert [caption.split(" ")[0] for caption in captions] == ["screenshot", "drawing", "drawing", "drawing"]


def test_bad_screenshots_are_one_line(tmp_path: Path) -> None:
    whole = saved(tmp_path / "whole.png", (300, 300), "PNG").path.read_bytes()
    cases = {
        "gone": (None, "no screenshot"),
        "cut": (whole[:60], "cannot be decoded"),
        "text": (b"not a picture", "expected a screenshot"),
        "huge": (whole[:16] + (70_000).to_bytes(4) * 2 + whole[24:], "cannot be decoded|pixels"),
    }
    for name, (data, message) in cases.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
        shots = (FileScreenshot(tmp_path / name), None, None, None)
        with pytest.raises(InputError, match=message) as error:
            picture(replace(trajectory("mip", 85), screenshots=shots), 0)
        assert "\n" not in str(error.value)


def test_the_largest_picture_that_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grace_irl.demos.ui.picture.MAX_PIXELS", 99)
    shot = saved(tmp_path / "shot", (10, 10), "PNG")
    with pytest.raises(InputError, match="state 1: a screenshot of 10 x 10 pixels; expected at most 99"):
        picture(replace(trajectory("mip", 85), screenshots=(shot, None, None, None)), 0)


@pytest.mark.skipif(not EPISODE.is_dir(), reason="../shared/data/android/alarm_episode is not there")
def test_real_screens_are_drawn_in_their_shape() -> None:
    for xml in episode()[::8]:
        image = drawing(Screen.parse(xml))
        assert max(image.size) == LONGEST
        assert rgb(LINES["use"]) in colours(image)
    ticked = drawing(Screen.parse(episode()[10]))
    assert rgb(FILLS["checked"]) in colours(ticked)


def test_dialogs_and_lists_differ() -> None:
    images = [
        drawing(Screen.parse(xml)).tobytes() for xml in (asking("a", ""), asking("a", "7"), things({"a": (7, True)}))
    ]
    assert len(set(images)) == 3
