"""Charts of whatever values: whole SVG, within its frame, that shows every kind of state."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.methods.account import Curves
from grace_irl.report.charts import NARROW, POINTS, WIDTH, ChartLine, Dot, chart, histogram, reach, tallest, thinned
from grace_irl.report.plots import curves

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
PLACE = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


def drawn(text: str) -> ET.Element:
    assert "nan" not in text
    assert "inf" not in text
    return ET.fromstring(text)


@settings(max_examples=80)
@given(st.lists(st.lists(st.tuples(st.floats(0, 1e9), FLOATS), max_size=8), max_size=3), st.none() | FLOATS)
def test_lines_stay_within_their_frame(lines: list[list[tuple[float, float]]], level: float | None) -> None:
    made = [ChartLine(f"<{number}>", sorted(places), "c0", stairs=bool(number)) for number, places in enumerate(lines)]
    dots = [Dot(*line.places[0], "c1", "1") for line in made if line.places]
    level = None if level is None else min(max(level, -1e15), 1e15)
    root = drawn(chart(made, across="x", up="y & z", label='a "b" <c>', level=level, dots=dots))
    assert root.get("aria-label") == 'a "b" <c>'
    for element in root.iter("circle"):
        assert 0 <= float(element.get("cx", "")) <= WIDTH
        assert 0 <= float(element.get("cy", "")) <= 260
    for element in root.iter("path"):
        if "line" in element.get("class", ""):
            assert all(0 <= float(number) <= WIDTH for number in PLACE.findall(element.get("d", "")))


@settings(max_examples=80)
@given(st.lists(FLOATS, max_size=20), st.lists(FLOATS, max_size=20), st.none() | FLOATS)
def test_bars_stand_on_the_line_and_hold_every_state(
    above: list[float], below: list[float], level: float | None
) -> None:
    if not above + below:
        return
    one, two = np.array(above), np.array(below)
    least, most, beyond = reach(np.array(above + below))
    assert beyond >= 0
    share = tallest([one, two], least, most)
    root = drawn(histogram(one, two, least=least, most=most, level=level, label="x", share=share))
    bars = {kind: root.findall(f"rect[@class='bar {kind}']") for kind in ("expert", "negative")}
    assert (bool(bars["expert"]), bool(bars["negative"])) == (bool(above), bool(below))
    middle = {round(float(each.get("y", "")) + float(each.get("height", "")), 0) for each in bars["expert"]}
    assert len(middle | {round(float(each.get("y", "")), 0) for each in bars["negative"]}) <= 2  # both by rounding
    for bar in (*bars["expert"], *bars["negative"]):
        assert 0 <= float(bar.get("x", "")) <= NARROW
        assert float(bar.get("height", "")) >= 1.4


def test_a_few_far_values_do_not_flatten_the_others() -> None:
    values = np.concatenate([np.linspace(0, 1, 1000), [1e9]])
    least, most, beyond = reach(values)
    assert (least, beyond) == (0.0, 1)
    assert most < 3


@pytest.mark.parametrize("length", [POINTS, 10 * POINTS + 7])
def test_a_long_curve_keeps_its_ends_and_its_extremes(length: int) -> None:
    values = np.sin(np.arange(length) / 50.0)
    values[length // 3] = 9.0
    values[length // 2] = np.nan
    places = thinned(values, ~np.isnan(values))
    assert len(places) <= POINTS + 2
    assert [x for x, _ in places] == sorted({x for x, _ in places})
    assert (places[0][0], places[-1][0]) == (1.0, float(length))
    assert (length // 3 + 1.0, 9.0) in places


@pytest.mark.parametrize(
    "points",
    [
        (),
        ((0.0, math.nan), (1.0, 2.0)),
        ((math.nan, 1.0), (math.inf, 1.0)),
        ((0.0, math.inf), (1.0, -math.inf)),
        ((0.0, 1e308), (1e308, -1e308)),
    ],
)
def test_a_methods_chart_draws_what_has_a_place(points: tuple[tuple[float, float], ...]) -> None:
    """Somebody else's run may hold any numbers."""
    plot = curves(Curves("a <b>title", "steps", "<i>score", (("seed <b>1", points),)))
    assert plot.drawing.endswith("</svg>")
    assert not [word for word in ("nan", "inf", "<b>", "<i>") if word in plot.drawing]


def test_a_methods_chart_may_have_no_lines() -> None:
    assert curves(Curves("title", "steps", "score", ())).drawing.endswith("</svg>")
