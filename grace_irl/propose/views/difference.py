"""The difference between two screens of a user interface, as text for prompts.

A screen is given by its outline. The items of an outline are the informative nodes of the screen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher

from grace_irl.propose.views.outline import Item, ScreenOutline, named, quoted

MOST = 400
"""Maximum number of differing nodes in both screens together. If there are more, `difference` returns None."""

MANY = 8
"""`difference` returns None if the screen `after` has at least this number of distinct lines, and fewer than a quarter
of these lines are on the screen `before`."""
NEAR = 40  # maximum characters of a label that describes the position of a node


def difference(before: ScreenOutline, after: ScreenOutline) -> list[str] | None:
    """Write the changes between two screens: `~` for a changed node, `+` for a new one, `-` for a removed one.

    Each change has one line. A node that only moved has a line only if the description of its position (`_where`)
    changed. The result is [] if there is no line, and None if the screens differ too much.
    """
    if len(after.keys) >= MANY and 4 * len(before.keys & after.keys) < len(after.keys):
        return None
    old, new = _apart(before, after)
    if len(old) + len(new) > MOST:
        return None
    apart = frozenset(old), frozenset(new)
    pairs, old, new = _paired(before, after, old, new)
    foreground = Counter(item.package for item in after.items).most_common(1)
    main = foreground[0][0] if foreground else ""
    alike = Counter(item.bare for item in after.items)
    numbers: Counter[str] = Counter()
    number = []
    for item in after.items:
        numbers[item.bare] += 1
        number.append(numbers[item.bare])
    lines = []
    for one, two in pairs:
        item = after.items[two]
        if item.key == before.items[one].key:  # the node moved and is otherwise the same, such as a check mark
            here, there = _where(before, one, apart[0]), _where(after, two, apart[1])
            if here != there:
                lines.append(f"~ {_of(item, main)}{item.line}: {here or 'alone'} -> {there or 'alone'}")
            continue
        which = ""
        if (several := alike[item.bare]) > 1:
            where = _where(after, two, apart[1])
            which = f" ({number[two]} of {several}{f', {where}' if where else ''})"
        lines.append(f"~ {_of(item, main)}{_change(before.items[one], item)}{which}")
    lines += [
        f"- {_of(before.items[one], main)}{before.items[one].line}{_after(_where(before, one, old))}" for one in old
    ]
    fresh = frozenset(new)
    for two in new:
        depth, above = 0, after.above(two, fresh)
        while above >= 0:
            depth, above = depth + 1, after.above(above, fresh)
        where = "" if depth else _after(_where(after, two, new))
        lines.append(f"+ {' ' * depth}{_of(after.items[two], main)}{after.items[two].line}{where}")
    return lines


def _apart(before: ScreenOutline, after: ScreenOutline) -> tuple[list[int], list[int]]:
    """Compare the lines of two screens.

    Return the indices of items of `before` that were removed, changed or moved, and the indices of items of `after`
    that are new, changed or moved.
    """
    one, two = [item.key for item in before.items], [item.key for item in after.items]
    # The common beginning and end are skipped to save time, because most often only a few nodes differ.
    start = next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    rest = min(len(one), len(two)) - start
    end = next((n for n in range(rest) if one[-1 - n] != two[-1 - n]), rest)
    one, two = one[start : len(one) - end], two[start : len(two) - end]
    if len(one) + len(two) > 2 * MOST:  # the comparison takes time proportional to the product of the lengths
        return list(range(start, start + len(one))), list(range(start, start + len(two)))
    old: list[int] = []
    new: list[int] = []
    for kind, a, b, c, d in SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        if kind != "equal":
            old += range(start + a, start + b)
            new += range(start + c, start + d)
    return old, new


def _paired(
    before: ScreenOutline, after: ScreenOutline, old: Sequence[int], new: Sequence[int]
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Find the pairs of items that are the same node before and after a change.

    Items with equal lines are paired first, then items with equal class, id and texts, then items with equal class and
    id. Items without an id are not paired by their class alone.

    Args:
        before, after: outlines of the two screens.
        old, new: indices of the items to pair in these outlines.

    Returns:
        Pairs of indices, the indices of removed items, and the indices of new items.
    """
    pairs: list[tuple[int, int]] = []
    gone, fresh = list(old), list(new)
    for alike in (_same_line, _same_label, _same_slot):
        for two in list(fresh):
            one = next((n for n in gone if alike(before.items[n], after.items[two])), None)
            if one is not None:
                pairs.append((one, two))
                gone.remove(one)
                fresh.remove(two)
    return sorted(pairs, key=lambda pair: pair[1]), gone, fresh


def _same_line(one: Item, two: Item) -> bool:
    return one.key == two.key


def _same_label(one: Item, two: Item) -> bool:
    return one.slot == two.slot and bool(one.label) and (one.text, one.desc) == (two.text, two.desc)


def _same_slot(one: Item, two: Item) -> bool:
    return one.slot == two.slot and bool(one.identity)


def _change(one: Item, two: Item) -> str:
    """Describe the change of a node, such as `CheckBox* 'S' #day: unchecked -> checked`."""
    old, new = one.values(), two.values()
    told = [name for name in ("text", "desc", "hint") if getattr(one, name) != getattr(two, name)]
    parts = []
    for name in told:
        # If the description equals the text on each screen, the change of the text shows the change of both.
        if name == "desc" and old.get(name) == new.get(name) == "desc=text":
            parts.append("desc=text")
            continue
        label = "" if name == "text" else f"{name} "
        values = (quoted(getattr(item, name)) for item in (one, two))
        parts.append(label + " -> ".join(values))
    gone = [state for state in one.states if state not in two.states]
    come = [state for state in two.states if state not in one.states]
    if gone and come:
        parts.append(f"{' '.join(gone)} -> {' '.join(come)}")
    elif come:
        parts.append(f"now {' '.join(come)}")
    elif gone:
        parts.append(f"no longer {' '.join(gone)}")
    return f"{two.written(leave_out=(*told, 'states'))}: {'; '.join(parts)}"


def _where(outline: ScreenOutline, place: int, apart: Collection[int]) -> str:
    """Describe the position of a node, such as `in 'Alarms'` or `beside '8:25'`; "" if no label describes it.

    Args:
        outline: outline of the screen.
        place: index of the node.
        apart: indices of nodes that differ between the screens. Their labels are not used after `beside`.
    """
    above = outline.items[place].parent
    if above < 0:
        return ""
    if label := outline.items[above].label:
        return f"in {quoted(label, NEAR)}"
    for other in range(above + 1, len(outline.items)):
        if outline.items[other].parent < above:
            break
        if other not in apart and (label := outline.items[other].label):
            return f"beside {quoted(label, NEAR)}"
    return ""


def _after(where: str) -> str:
    return f" ({where})" if where else ""


def _of(item: Item, main: str) -> str:
    """The beginning of a node's line: its package, or "" if it is `main`, the package of most nodes."""
    return "" if item.package == main else f"{named(item.package)}: "
