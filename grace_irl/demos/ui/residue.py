"""The residue of a screen: the parts of the XML that AndroidControl's accessibility forest cannot represent.

A forest holds one tree of nodes per window of the screen. The residue is the difference between the XML of the screen
and the XML that `forest.py` makes from the screen's forest. AndroidControl files from grace-irl store the residue
beside the forest, so that the screen can be restored.

The residue holds attributes without a field in a forest (such as `NAF` and `rotation`), values that a field cannot
hold, and the order of each node's attributes. A screen that came from a forest has no residue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lxml import etree

from grace_irl.demos.ui.forest import DEFAULTS
from grace_irl.errors import InputError

Residue = Mapping[str, Any]
"""A JSON object with four keys:

- `hierarchy`: attributes of the root;
- `layouts`: the distinct lists of attribute names among the nodes;
- `layout`: for each node, the index of its list in `layouts`;
- `values`: map from the index of a node (in document order) to the attributes with values that the forest lacks.
"""


def difference(screen: etree._Element, plain: etree._Element) -> Residue | None:
    """The residue of a screen, or None if the screen equals the XML of its forest.

    Args:
        screen: root of the screen's XML.
        plain: root of the XML from the screen's forest, with the same nodes.
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
    """Restore the original screen by adding its residue to `plain`. `plain` is modified and returned.

    Args:
        plain: root of the XML from the screen's forest.
        residue: result of `difference`.
        where: file and state, for messages.

    Raises:
        InputError: the residue does not fit this screen.
    """
    try:
        layouts, layout, values = residue["layouts"], residue["layout"], residue["values"]
        _set(plain, residue["hierarchy"])
        for number, (node, place) in enumerate(zip(plain.iter("node"), layout, strict=True)):
            said = {**DEFAULTS, **node.attrib, **values.get(str(number), {})}
            _set(node, {name: said[name] for name in layouts[place]})
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{where}: the stored residue does not fit its tree ({type(error).__name__}); expected the one that was "
            "written with it: write the file again"
        ) from None
    return plain


def _set(element: etree._Element, attributes: Mapping[str, str]) -> None:
    element.attrib.clear()
    element.attrib.update(attributes)
