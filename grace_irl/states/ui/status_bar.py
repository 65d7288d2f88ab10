"""The status bar of a screen: clock, battery, signals and notification icons. They show the device, not the task."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lxml import etree

from grace_irl.states.ui import markup

OWNER = "com.android.systemui"
"""Package of the nodes of a status bar."""

_BAR = re.compile(
    re.escape(OWNER)
    + r":id/(status_bar\w*|(system|status|notification)_?icons?\w*|clock|battery\w*|(wifi|mobile)_\w+)",
    re.IGNORECASE,
)
"""Resource ids of a status bar and of its nodes. Some file formats list these nodes without the bar around them."""

_PLACE = "<status/>"
"""XML that `part` leaves in place of a status bar, or at the end of a screen without a status bar."""


def part(screen: str) -> tuple[str, str]:
    """Cut the status bar out of a screen.

    Returns:
        The XML of the rest with `_PLACE`, and the XML of the bar's nodes. The second text is "" if the screen has no
        bar.

    Raises:
        InputError: an invalid screen.
    """
    root = markup.parse(screen)
    place = etree.Element("status")
    nodes = []
    for node in list(root.iter("node")):
        if _BAR.fullmatch(node.get("resource-id", "")) and not any(above in nodes for above in node.iterancestors()):
            nodes.append(node)
    if nodes:
        nodes[0].addprevious(place)
    else:
        root.append(place)
    bar = "".join(str(etree.tostring(node, encoding="unicode", with_tail=False)) for node in nodes)
    for node in nodes:
        parent = node.getparent()
        assert parent is not None  # the root is no <node>
        parent.remove(node)
    return markup.write(root), bar


def join(rest: str, bar: str) -> str:
    """The screen from two results of `part`: the rest of one screen, and the bar of the same or another screen."""
    return rest.replace(_PLACE, bar, 1)


def exchange(screens: Sequence[str], others: Sequence[str]) -> list[str] | None:
    """The screens, each with the status bar of the other screen at the same index; None if no screen has one."""
    if not any(OWNER in screen for screen in (*screens, *others)):
        return None
    parted = {screen: part(screen) for screen in {*screens, *others}}
    if not any(bar for _, bar in parted.values()):
        return None
    return [join(parted[own][0], parted[other][1]) for own, other in zip(screens, others, strict=True)]
