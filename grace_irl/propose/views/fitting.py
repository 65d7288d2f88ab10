"""The lines of an outline within a number of tokens: long texts are cut first, then what says least goes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from grace_irl.propose.tokens import cut, estimate
from grace_irl.propose.views.outline import LONGEST, Item, Outline

CUTS = (LONGEST, 120, 60)
"""Characters of a text, tried in turn before a node is left out."""

SHORTEST = 20  # characters of a text where one node alone is too long
LEAST = 20  # tokens that are always enough to say how much is missing


@dataclass(frozen=True)
class Weights:
    """What says most about a screen, learned from all of them.

    Attributes:
        names, lines: by an item's name and key, on which share of the screens it is: what is rare says most.
        relevant: names of the items that tell positive screens from others, or share words with instructions.
    """

    names: Mapping[str, float]
    lines: Mapping[str, float]
    relevant: frozenset[str]

    def order(self, item: Item) -> tuple[bool, int, float, float]:
        """Sorts items, what says most first."""
        rare = self.names.get(item.name, 0.0), self.lines.get(item.key, 0.0)
        return item.name not in self.relevant, -item.importance, *rare


def fitted(outline: Outline, places: Collection[int], weights: Weights, tokens: int, ending: str) -> str:
    """A screen in full, at most so many tokens (estimated).

    Args:
        outline: of the screen.
        places: the items that are to be written.
        weights: which of them go last.
        tokens: for all of it; `LEAST` or more.
        ending: a line for the end, or "".
    """
    for longest in CUTS:
        if sum(outline.items[place].cost(longest) for place in places) > tokens + 1:  # the last line does not end
            continue
        if estimate(text := _text(outline, places, longest, 0, ending)) <= tokens:
            return text
    ranked = sorted(places, key=lambda place: (weights.order(outline.items[place]), place))
    for longest, last in ((CUTS[-1], ending), (SHORTEST, "")):
        count = _count(outline, ranked, longest, tokens)
        while count:
            text = _text(outline, ranked[:count], longest, len(ranked) - count, last)
            excess = estimate(text) - tokens
            if excess <= 0:
                return text
            while count and excess > 0:
                count -= 1
                excess -= outline.items[ranked[count]].cost(longest)
    text = f"{len(ranked)} nodes that do not fit here"
    return text if estimate(text) <= tokens else cut(text, tokens)


def _count(outline: Outline, ranked: Sequence[int], longest: int, tokens: int) -> int:
    """How many items fit at most, if nothing but their lines were written."""
    for count, place in enumerate(ranked):
        tokens -= outline.items[place].cost(longest)
        if tokens < 0:
            return count
    return len(ranked)


def _text(outline: Outline, places: Collection[int], longest: int, left_out: int, ending: str) -> str:
    lines = outline.write(frozenset(places), longest)
    if left_out:
        lines.append(f"  … {left_out} more node{'s' if left_out > 1 else ''}")
    if ending:
        lines.append(f"  {ending}")
    return "\n".join(lines)
