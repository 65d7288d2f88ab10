"""The view of images. It writes a state as a list of colours, each with its number of pixels and bounding box."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Metadata
from grace_irl.propose.tokens import cut
from grace_irl.states.image import CHANNELS

MOST_COLOURS = 8
"""Maximum number of colours in the text of a state. Each coarser view (`ImageView.coarser`) writes half as many."""

MOST_SIZES = 8  # maximum number of image sizes in `about`

SHADES = 32
"""Width of the ranges into which the values of a channel are divided.

All pixels whose values lie in the same ranges form one colour. Without ranges, a shaded surface would have
thousands of colours."""

MAX_PIXELS = 20_000_000
"""Maximum number of pixels for the statistics in the legend. In larger sets, only every n-th state is read."""


class ImageView:
    """View of images `(h, w, c)`. It lists the colours with the most pixels.

    Args:
        items: training data.
        metadata: metadata of the set.
    """

    modules, tokens_of, helps = "numpy", "colours", False
    recalls = 1

    def __init__(self, items: Sequence[Labelled], metadata: Metadata) -> None:
        del metadata
        self._items, self._most = items, MOST_COLOURS
        stacks = [item.trajectory.states for item in items]
        self._channels = int(stacks[0].shape[3])
        self._sizes = list(dict.fromkeys((stack.shape[1], stack.shape[2]) for stack in stacks))
        every = -(-sum(stack.size // self._channels for stack in stacks) // MAX_PIXELS)
        counts: Counter[int] = Counter()
        for stack in stacks:
            found, numbers = np.unique(_shades(stack[::every]), return_counts=True)
            counts.update(dict(zip(found.tolist(), numbers.tolist(), strict=True)))
        total = counts.total()
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        self._shares = [(shade, count / total) for shade, count in ranked[:MOST_COLOURS]]

    @cached_property
    def coarser(self) -> ImageView | None:
        """See `View`. The coarser view has half as many colours."""
        if self._most == 1:
            return None
        half = copy(self)  # with the same statistics
        half._most //= 2
        return half

    @property
    def about(self) -> str:
        """See `View`."""
        names = ", ".join(f"{name} [{number}]" for number, name in enumerate(CHANNELS[self._channels]))
        sizes = ", ".join(f"{h} x {w}" for h, w in self._sizes[:MOST_SIZES])
        more = f" and {len(self._sizes) - MOST_SIZES} more" if len(self._sizes) > MOST_SIZES else ""
        return (
            f"A state is a picture: a numpy array of int64 with shape (h, w, {self._channels}), values 0 to 255. "
            f"state[i, j] is the pixel in row i and column j, row 0 at the top; its channels are {names}. "
            f"Sizes (h, w) seen so far: {sizes}{more}."
        )

    def legend(self, tokens: int) -> str:
        """See `View`."""
        form = (
            "A state is written by its colours, those of most pixels first: the colour, the number of its pixels, and "
            f"the rows and columns between which they lie. Values of a channel that differ by less than {SHADES} may "
            "count as one colour: then ~ stands before their mean. Of colours beyond those listed, only their number "
            "and that of their pixels. Of later states only the pixels that changed since the state shown before are "
            "written, with the colours that they have now."
        )
        sides = {
            name: [item.trajectory.states[item.positive == side] for item in self._items]
            for name, side in (("Positive", True), ("Negative", False))
        }
        return cut("\n".join([form, *self._colour_lines(sides)]), tokens)

    def figures(self, tokens: int) -> str:
        """See `View`."""
        sides = {
            name: [item.trajectory.states for item in self._items if item.demonstration.role == role]
            for name, role in (("Experts'", "expert"), ("Negatives'", "negative"))
        }
        if not all(sides.values()):  # one role, as of random episodes: nothing is compared
            sides = {"": [states for one in sides.values() for states in one]}
        return cut("\n".join(self._colour_lines(sides)), tokens)

    def _colour_lines(self, sides: Mapping[str, Sequence[NDArray[Any]]]) -> list[str]:
        """The commonest colours, and the means of each side's states."""
        shares = "; ".join(f"{self._middle(shade)} {share:.1%}" for shade, share in self._shares)
        means = {name: self._means(chosen) for name, chosen in sides.items()}
        return [
            f"Colours by their share of all pixels, about: {shares}.",
            *(
                f"{f'{name} states' if name else 'States'}: mean of each channel (deviation between states) {said}."
                for name, said in means.items()
                if said
            ),
        ]

    def _means(self, chosen: Sequence[NDArray[Any]]) -> str:
        means = [states.reshape(len(states), -1, self._channels).mean(axis=1) for states in chosen if len(states)]
        if not means:
            return ""
        every = np.concatenate(means)
        pairs = zip(every.mean(axis=0), every.std(axis=0), strict=True)
        return ", ".join(f"{mean:.1f} ({deviation:.1f})" for mean, deviation in pairs)

    def words(self, tokens: int) -> str:
        """See `View`. The result is "", because the meaning of colours is unknown."""
        del tokens
        return ""

    def state(self, state: NDArray[Any]) -> str:
        """See `View`.

        An example is `~(50,50,110) 310 in rows 0..19, columns 0..19; (255,0,0) 12 in rows 3..6, columns 9..11`.
        """
        size = f"{state.shape[0]} x {state.shape[1]}: " if len(self._sizes) > 1 else ""
        return f"{size}{self._colours(state, np.ones(state.shape[:2], np.bool_))}"

    def events(self, states: Any) -> None:
        """See `View`. The result is None, because no colour is known to be an actor."""
        del states

    def change(self, before: NDArray[Any], after: NDArray[Any], *, apart: bool = False) -> str:
        """See `View`. The text lists the new colours of the pixels that changed.

        An example is `now (0,0,0) 12 in rows 3..6, columns 9..11; (255,0,0) 12 in rows 3..6, columns 10..12`.
        """
        del apart
        if before.shape != after.shape:
            return self.state(after)
        differs = (before != after).any(axis=2)
        return f"now {self._colours(after, differs)}" if differs.any() else "no change"

    def _colours(self, state: NDArray[Any], among: NDArray[np.bool_]) -> str:
        """List the colours of those pixels of a state for which the mask `among` `(h, w)` is true."""
        shades = _shades(state)
        found, counts = np.unique(shades[among], return_counts=True)
        order = np.lexsort((found, -counts))
        masks = (among & (shades == found[place]) for place in order[: self._most].tolist())
        parts = [f"{_colour(state[mask])} {mask.sum()} in {_box(mask)}" for mask in masks]
        left = order[self._most :]
        if len(left):
            parts.append(f"{len(left)} more colours {counts[left].sum()}")
        return "; ".join(parts)

    def _middle(self, shade: int) -> str:
        values = ((shade >> 8 * place & 255) * SHADES + SHADES // 2 for place in reversed(range(self._channels)))
        return f"({','.join(map(str, values))})"


def _shades(states: NDArray[Any]) -> NDArray[np.int64]:
    """Pack the colour of each pixel into one number, after the division of each channel by `SHADES`."""
    packed: NDArray[np.int64] = np.zeros(states.shape[:-1], np.int64)
    for channel in range(states.shape[-1]):
        packed = packed << 8 | states[..., channel] // SHADES
    return packed


def _colour(found: NDArray[Any]) -> str:
    """Write the mean colour of pixels `(n, c)`, with the mark ~ before it if the pixels differ."""
    values = ",".join(str(round(value)) for value in found.mean(axis=0).tolist())
    return f"{'' if (found == found[0]).all() else '~'}({values})"


def _box(mask: NDArray[np.bool_]) -> str:
    """Write the bounding box of the true pixels of a mask `(h, w)`."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return f"rows {rows[0]}..{rows[-1]}, columns {columns[0]}..{columns[-1]}"
