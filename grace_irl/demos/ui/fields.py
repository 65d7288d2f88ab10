"""Conversion of a screen element's fields to the attributes of uiautomator's XML. Field names differ between sources.

The readers for JSON trees and for AndroidWorld use this module.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from grace_irl.errors import InputError
from grace_irl.states.ui.markup import ATTRIBUTES
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


FLAGS = frozenset(name for name, default in ATTRIBUTES.items() if default in ("true", "false")) | {
    "visible-to-user",
    "editable",
}
"""Attributes whose value is "true" or "false"."""

TRUTHS: dict[object, bool] = {"true": True, "1": True, 1: True, "false": False, "0": False, 0: False}
"""Map from the values of a flag's field to their meaning. Texts are in lower case. The key `1` also stands for `True`
and `1.0`, and the key `0` for `False` and `0.0`."""


BOUNDS = ("bboxpixels", "bounds", "boundsinscreen", "bbox")
"""Possible names of the field with the bounds, in order of preference. They are reduced like the names in `NAMES`."""


SIDES = ("left", "top", "right", "bottom")


CORNERS = ("x1", "y1", "x2", "y2")


LIMITS = ("xmin", "ymin", "xmax", "ymax")


CORNER_AND_SIZE = ("x", "y", "width", "height")


def attributes(where: str, *stated: Mapping[str, Any]) -> dict[str, object]:
    """The attributes of one node.

    Args:
        where: file and element, for messages.
        stated: mappings from field name to value, in order of preference. A later mapping supplies the fields that
            all earlier mappings lack. Values other than texts, numbers and booleans are ignored, except for bounds.

    Raises:
        InputError: a flag that is neither true nor false, or bounds that cannot be read. Without this error, a program
            would see a switch that is off, or an element without a place.
    """
    found: dict[str, Any] = {}
    for mapping in reversed(stated):
        found.update({_plain(name): value for name, value in mapping.items() if value is not None})
    out: dict[str, object] = {}
    for attribute, names in NAMES.items():
        values = [found[name] for name in names if isinstance(found.get(name), str | int | float)]
        if values:
            value = next((value for value in values if value != ""), "")
            out[attribute] = _flag(value, f"{where}: {attribute}") if attribute in FLAGS and value != "" else value
    bounds = rectangle(found, where)
    if bounds is not None:
        out["bounds"] = spelled(bounds)
    return out


def rectangle(found: Mapping[str, Any], where: str) -> tuple[int, int, int, int] | None:
    """The bounds of a node (left, top, right, bottom) in pixels; None without bounds.

    Sources use several notations, such as a text, a mapping with four sides, or two corners.

    Args:
        found: values by field name, with the names normalised by `_plain`.
        where: file and element, for messages.

    Raises:
        InputError: bounds in another notation.
    """
    stated = next((value for name in BOUNDS if (value := found.get(name)) not in (None, "", [], {})), None)
    if stated is None:
        stated = {corner: found[corner] for corner in CORNERS if corner in found} or None
    bounds = None if stated is None else _rectangle(stated)
    if stated is not None and bounds is None:
        raise InputError(
            f"{where}: bounds {reprlib.repr(stated)}; expected '[left,top][right,bottom]', four numbers, or an object "
            "of left, top, right and bottom, or of x, y, width and height"
        )
    return bounds


def _rectangle(value: object) -> tuple[int, int, int, int] | None:
    if isinstance(value, str):
        return bounds_of(value)
    if isinstance(value, Mapping):
        named = {_plain(key): number for key, number in value.items()}
        for names in (SIDES, LIMITS, CORNERS):
            if names[2] in named or names[3] in named:  # sources may leave out a side that is 0
                return _numbers([named.get(side, 0) for side in names])
        if all(name in named for name in CORNER_AND_SIZE) and _numbers([named[name] for name in CORNER_AND_SIZE]):
            x, y, width, height = (named[name] for name in CORNER_AND_SIZE)
            return _numbers([x, y, x + width, y + height])
    if isinstance(value, Sequence):
        return _numbers([number for part in value for number in (part if isinstance(part, Sequence) else [part])])
    return None


def _flag(value: object, what: str) -> bool:
    found = TRUTHS.get(value.lower() if isinstance(value, str) else value)
    if found is None:
        raise InputError(f"{what} is {reprlib.repr(value)}; expected true or false (or 1 or 0)")
    return found


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
