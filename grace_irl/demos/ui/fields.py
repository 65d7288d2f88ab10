"""Conversion of a screen element's fields to the attributes of uiautomator's XML. Field names differ between sources.

The readers for JSON trees and for AndroidWorld use this module.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from grace_irl.states.ui.screen import bounds_of

NAMES: dict[str, tuple[str, ...]] = {
    "text": ("text",),
    "resource-id": ("resourceid", "viewidresourcename", "resourcename"),
    "class": ("classname", "class"),
    "package": ("packagename", "package"),
    "content-desc": ("contentdescription", "contentdesc", "accessibilitytext"),
    "checkable": ("checkable",),
    "checked": ("checked",),
    "clickable": ("clickable",),
    "enabled": ("enabled",),
    "focusable": ("focusable",),
    "focused": ("focused",),
    "scrollable": ("scrollable",),
    "long-clickable": ("longclickable",),
    "password": ("password",),
    "selected": ("selected",),
    "visible-to-user": ("visibletouser", "visible"),
    "hint": ("hinttext", "hint"),
    "editable": ("editable",),
    "tooltip": ("tooltiptext", "tooltip"),
    "state-description": ("statedescription",),
    "pane-title": ("panetitle",),
    "drawing-order": ("drawingorder",),
}
"""Map from each XML attribute to the possible names of its field, in order of preference. For comparison, names are
reduced to letters and digits in lower case, without a leading "is". Fields with other names are ignored."""


SIDES = ("left", "top", "right", "bottom")


CORNERS = ("x1", "y1", "x2", "y2")


LIMITS = ("xmin", "ymin", "xmax", "ymax")


def attributes(*stated: Mapping[str, Any]) -> dict[str, object]:
    """The attributes of one node.

    Args:
        stated: mappings from field name to value, in order of preference. A later mapping supplies the fields that
            all earlier mappings lack. Values other than texts, numbers and booleans are ignored, except for bounds.
    """
    found: dict[str, Any] = {}
    for mapping in reversed(stated):
        found.update({_plain(name): value for name, value in mapping.items() if value is not None})
    out: dict[str, object] = {}
    for attribute, names in NAMES.items():
        values = [found[name] for name in names if isinstance(found.get(name), str | int | float)]
        if values:
            out[attribute] = next((value for value in values if value != ""), "")
    bounds = rectangle(found)
    if bounds is not None:
        out["bounds"] = spelled(bounds)
    return out


def rectangle(found: Mapping[str, Any]) -> tuple[int, int, int, int] | None:
    """The bounds of a node (left, top, right, bottom) in pixels; None without valid bounds.

    Sources use several notations, such as a text, a mapping with four sides, or two corners.

    Args:
        found: values by field name, with the names normalised by `_plain`.
    """
    for name in ("bboxpixels", "bounds", "boundsinscreen", "bbox"):
        value = found.get(name)
        if isinstance(value, str):
            return bounds_of(value)
        if isinstance(value, Mapping):
            named = {_plain(key): number for key, number in value.items()}
            for names in (SIDES, LIMITS):
                if names[2] in named or names[3] in named:  # sources may leave out a side that is 0
                    return _numbers([named.get(side, 0) for side in names])
        if isinstance(value, Sequence):
            flat = [number for part in value for number in (part if isinstance(part, Sequence) else [part])]
            return _numbers(flat)
    if any(corner in found for corner in CORNERS):
        return _numbers([found.get(corner, 0) for corner in CORNERS])
    return None


def spelled(bounds: Sequence[int]) -> str:
    """A rectangle in uiautomator's notation, `[left,top][right,bottom]`."""
    left, top, right, bottom = bounds
    return f"[{left},{top}][{right},{bottom}]"


def _plain(name: object) -> str:
    return _plainly(str(name)[:60])  # known names are shorter, and long names would fill the cache


@lru_cache(maxsize=1024)
def _plainly(name: str) -> str:
    plain = re.sub("[^a-z0-9]", "", name.lower())
    return plain[2:] if plain.startswith("is") and len(plain) > 2 else plain


def _numbers(values: Sequence[object]) -> tuple[int, int, int, int] | None:
    whole = [int(v) for v in values if isinstance(v, int | float) and abs(v) < 10**9]  # also excludes NaN
    return (whole[0], whole[1], whole[2], whole[3]) if len(whole) == len(values) == 4 else None
