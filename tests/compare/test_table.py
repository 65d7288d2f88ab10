"""Drawings of learning curves: valid SVG, within its frame, that says what it shows."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.compare.plot import HEIGHT, WIDTH, Line, plot


def curve(*values: float, success: bool = False) -> list[dict[str, float | None]]:
    return [
        {"steps": 100 * number, "mean": value, "success": value if success else None}
        for number, value in enumerate(values, 1)
    ]


def test_a_band_is_mean_least_and_most_at_the_looks_that_all_seeds_had() -> None:
    line = Line("grace", [curve(1.0, 2.0, 9.0), curve(3.0, 6.0), []])
    assert line.band("mean") == [(100.0, 2.0, 1.0, 3.0), (200.0, 4.0, 2.0, 6.0)]


def test_success_is_drawn_where_all_have_one() -> None:
    with_goal, without = Line("grace", [curve(0.5, success=True)]), Line("bc", [curve(0.5)])
    assert "success rate" in plot("x", [with_goal])
    assert ">-0<" not in plot("x", [with_goal])
    assert "return" in plot("x", [with_goal, without])


def test_a_method_without_steps_is_a_line_across() -> None:
    drawn = plot("x", [Line("bc", [[{"steps": 0, "mean": 5.0, "success": None}]]), Line("grace", [curve(1.0, 2.0)])])
    assert "stroke-dasharray" in drawn
    assert drawn.count("<polyline") == 1


def test_names_cannot_break_the_drawing() -> None:
    root = ET.fromstring(plot("a<b & c", [Line("<g>", [curve(1.0)])]))
    texts = [element.text for element in root.iter() if element.text and element.text.strip()]
    assert {"a<b & c", "<g>"} <= set(texts)


@settings(max_examples=60)
@given(
    st.lists(
        st.lists(st.lists(st.floats(-1e6, 1e6), max_size=4), max_size=3),
        max_size=8,
    )
)
def test_whatever_the_curves_the_drawing_is_within_its_frame(methods: list[list[list[float]]]) -> None:
    text = plot("any", [Line(f"m{number}", [curve(*each) for each in seeds]) for number, seeds in enumerate(methods)])
    ET.fromstring(text)
    assert "nan" not in text
    for points in re.findall(r'points="([^"]+)"', text):
        for x, y in (map(float, point.split(",")) for point in points.split()):
            assert 0 <= x <= WIDTH
            assert 0 <= y <= HEIGHT
