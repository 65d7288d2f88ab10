"""Parts of a screen's XML that a forest cannot say, kept beside it in the files that we write.

It is the difference between the screen and what the forest alone would be read as: attributes that a forest has no
field for (NAF, an index that is not the place, a rotation), values that a field cannot hold, and which attributes a
node has in which order. A screen that came from a forest leaves no residue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lxml import etree

from grace_irl.demos.ui.forest import DEFAULTS
from grace_irl.errors import InputError

Residue = Mapping[str, Any]
"""JSON: `hierarchy`, the attributes of the root; `layouts`, the different lists of names of attributes that nodes
have; `layout`, which of them each node has; and `values`, by number of the node, those that the forest does not say."""


def difference(screen: etree._Element, plain: etree._Element) -> Residue | None:
    """The difference of `screen` from `plain`, or None if they are the same.

    Args:
        screen: as it was.
        plain: as its forest is read, with the same nodes.
    """
    layouts: dict[tuple[str, ...], int] = {}
    layout: list[int] = []
    values: dict[str, dict[str, str]] = {}
    same = dict(screen.attrib) == dict(plain.attrib)
    for number, (node, other) in enumerate(zip(screen.iter("node"), plain.iter("node"), strict=True)):
        names = tuple(str(name) for name in node.attrib)
        layout.append(layouts.setdefault(names, len(layouts)))
        same &= names == tuple(other.attrib)
        unsaid = {
            str(name): str(value)
            for name, value in node.attrib.items()
            if other.get(name, DEFAULTS.get(str(name))) != value
        }
        if unsaid:
            values[str(number)] = unsaid
    if same and not values:
        return None
    return {"hierarchy": dict(screen.attrib), "layouts": list(layouts), "layout": layout, "values": values}


def restore(plain: etree._Element, residue: Residue, where: str) -> etree._Element:
    """The screen as it was: `plain` with its residue, in place.

    Raises:
        InputError: not the residue of this screen.
    """
    try:
        layouts, layout, values = residue["layouts"], residue["layout"], residue["values"]
        _set(plain, residue["hierarchy"])
        for number, (node, place) in enumerate(zip(plain.iter("node"), layout, strict=True)):
            said = {**DEFAULTS, **node.attrib, **values.get(str(number), {})}
            _set(node, {name: said[name] for name in layouts[place]})
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{where}: what is kept beside its tree does not fit it ({type(error).__name__}); expected what was "
            "written with it: write the file again"
        ) from None
    return plain


def _set(element: etree._Element, attributes: Mapping[str, str]) -> None:
    element.attrib.clear()
    element.attrib.update(attributes)
