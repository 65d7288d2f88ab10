"""The census of a set's screens."""

from __future__ import annotations

import pytest

from grace_irl.demos import save
from grace_irl.demos.summary import summarise
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError
from grace_irl.states.texts import pack
from grace_irl.states.ui import markup
from grace_irl.states.ui.census import ScreenCensus, Spread


def of(package: str, nodes: int) -> str:
    root = markup.hierarchy()
    for _ in range(nodes):
        markup.add(root, {"package": package, "class": "android.widget.TextView", "bounds": "[0,0][9,9]"})
    return markup.write(root)


def test_counts() -> None:
    one, two, empty = of("a.clock", 2), of("a.mail", 4), of("", 0)
    census = ScreenCensus()
    census.add(pack([one, two, one, one]))
    census.add(pack([two, empty]))
    assert (census.screens, census.distinct) == (6, 3)
    assert census.packages == {"a.clock": 3, "a.mail": 2, "": 1}
    assert census.classes == {"android.widget.TextView": 6}  # of the different ones
    assert census.nodes == Spread(0, (3 * 2 + 2 * 4) / 6, 4)
    assert census.sizes == Spread(len(empty), (3 * len(one) + 2 * len(two) + len(empty)) / 6, len(two))
    about = census.to_json((), 1)["screens"]
    assert about["packages"] == {"a.clock": 3}
    assert (about["distinct_packages"], about["nodes"]["max"]) == (3, 4)


def test_nothing() -> None:
    assert (ScreenCensus().screens, ScreenCensus().nodes) == (0, Spread(0, 0.0, 0))


def test_what_is_no_screen() -> None:
    with pytest.raises(InputError, match="the odd one, step 1: root <a>"):
        ScreenCensus().add(pack([of("a", 1), "<a/>"]), "the odd one")


def test_a_summary_has_it(screens: Demonstrations, tmp_path: object) -> None:
    path = f"{tmp_path}/set.parquet"
    save(screens, path)
    about = summarise(path).to_json()
    assert about["shapes"] == [{"shape": [], "dtype": "str", "trajectories": 4}]
    assert (about["screens"]["screens"], about["screens"]["distinct"]) == (10, 6)
    assert about["label"] == "last"
