"""Screens as prompts write them, and screens of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from lxml import etree

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Demonstration, Metadata, Trajectory
from grace_irl.propose.views.ui import STATE, UiView
from grace_irl.states.texts import pack
from grace_irl.states.ui import markup
from tests.propose.screens import APP, screen


def view(*screens: str, tokens: int = STATE) -> UiView:
    """A view that has seen these screens; few enough for none to be background."""
    states = pack(screens or (screen(),))
    item = Labelled(Demonstration(Trajectory(states), "expert"), np.zeros(len(states), dtype=np.bool_))
    return UiView([item], Metadata("ui"), tokens)


def lines(*specs: Any) -> list[str]:
    """The lines of a screen of the app, below that of its package."""
    head, *rest = view().state(screen(*specs).encode()).splitlines()
    assert head == f"{APP}:"
    return [line[3:] for line in rest]


NAMES = ("text", "content-desc", "resource-id", "class", "package", "bounds", "checked", "enabled", "selected", "hint")
values = st.sampled_from(
    ["", "null", "None", "true", "false", "x", "[0,0][9,9]", "[9,9][0,0]", "[-5,0][1", "a.b.C", "a:id/b", "🎉" * 9]
) | st.text(max_size=30).map(markup.rinse)
trees = st.recursive(
    st.tuples(st.dictionaries(st.sampled_from(NAMES), values, max_size=6), st.just(())),
    lambda children: st.tuples(
        st.dictionaries(st.sampled_from(NAMES), values, max_size=6), st.lists(children, max_size=4).map(tuple)
    ),
    max_leaves=12,
)


def raw(*specs: Any) -> str:
    """A screen whose nodes have only these attributes."""
    root = markup.hierarchy()

    def add(parent: Any, about: dict[str, str], children: Any) -> None:
        element = etree.SubElement(parent, "node", about)
        for child in children:
            add(element, *child)

    for spec in specs:
        add(root, *spec)
    return markup.write(root)
