"""The view of records, which are dicts of named parts. It writes names with rounded numbers and texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Metadata
from grace_irl.propose.views.vector import MAX_FIELDS, VectorView
from grace_irl.states.kind import PartLayout
from grace_irl.states.record import RECORD, RecordStates, spelled
from grace_irl.text import line

MOST_NUMBERS = 64
"""Maximum size of a part for which prompts write the values. Of larger parts, prompts give only type and shape."""

MOST_LETTERS = 80
"""Maximum characters of a text in a written state."""

MOST_TEXTS = 8
"""Maximum number of texts in a written state."""

MOST_PARTS = 60
"""Maximum number of a record's parts that the system text of a prompt describes. Further ones are only counted."""


class RecordView(VectorView):
    """View of dicts of named parts. It writes each small part with its name. Numbers are rounded as in `VectorView`."""

    modules, tokens_of, helps = "numpy", "texts", False

    def __init__(self, items: Sequence[Labelled], metadata: Metadata) -> None:
        self._parts = RECORD.layout(items[0].trajectory.states)
        self._small = [part for part in self._parts if not part.is_text and math.prod(part.shape) <= MOST_NUMBERS]
        super().__init__(items, metadata)
        places = [(part.name, index) for part in self._small for index in np.ndindex(part.shape)]
        self._labels = [spelled(name, index) for name, index in places]

    def _numbers(self, states: RecordStates) -> NDArray[Any]:
        rows = [states.parts[part.name].reshape(len(states), -1).astype(np.float64) for part in self._small]
        return np.concatenate([np.empty((len(states), 0)), *rows], axis=1)

    @property
    def about(self) -> str:
        """See `View`."""
        parts = [f"state[{part.name!r}]: {self._described(part)}" for part in self._parts[:MOST_PARTS]]
        more = len(self._parts) - MOST_PARTS
        return (
            "A state is a dict of named parts, the same in all states: "
            f"{'; '.join(parts)}{f'; and {more} more' if more > 0 else ''}."
        )

    @property
    def _form(self) -> str:
        left = [part.name for part in self._parts if not part.is_text and part not in self._small]
        said = f" Too large to be written here, even where they change: {', '.join(left[:MOST_PARTS])}." if left else ""
        more = self._width - len(self._shown)
        rest = f"; of {self._width} numbers, the {len(self._shown)} that tell most" if self._brief and more else ""
        return (
            f"A state is written part by part, numbers rounded, texts in quotes{rest}. Where few of them changed since "
            f"the state shown before, only those are written.{said}"
        )

    @property
    def _brief(self) -> bool:
        """Whether states have too many numbers to write all of them."""
        return bool(self._width > MAX_FIELDS)

    def state(self, state: Any) -> str:
        """See `View`. An example is `achieved_goal=[1.25 0.01] mode=2 text='go'`."""
        flat = self._row_of(state)
        if self._brief:
            named = (f"{self._labels[i]}={self._number(i, flat[i])}" for i in self._shown)
            return " ".join([*named, *self._texts(state)])
        found, at = [], 0
        for part in self._small:
            count = math.prod(part.shape)
            shown = [self._number(i, flat[i]) for i in range(at, at + count)]
            found.append(f"{part.name}={shown[0] if not part.shape else '[' + ' '.join(shown) + ']'}")
            at += count
        return " ".join([*found, *self._texts(state)])

    def change(self, before: Any, after: Any, *, apart: bool = False) -> str:
        """See `View`. If more than a third of the numbers changed, the text is the whole state."""
        del apart
        old, new = self._row_of(before), self._row_of(after)
        pairs = [(i, self._number(i, old[i]), self._number(i, new[i])) for i in self._shown]
        changed = [f"{self._labels[i]}={now}" for i, was, now in pairs if was != now]
        texts = [text for was, text in zip(self._texts(before), self._texts(after), strict=True) if was != text]
        if not changed and not texts:
            return "no change"
        return " ".join([*changed, *texts]) if 3 * len(changed) <= len(self._shown) else self.state(after)

    @property
    def _written(self) -> list[PartLayout]:
        return [part for part in self._parts if part.is_text][:MOST_TEXTS]

    def _row_of(self, state: Any) -> list[float]:
        return [float(x) for part in self._small for x in np.ravel(state[part.name])]

    def _texts(self, state: Any) -> list[str]:
        texts = ((part.name, line(state[part.name])) for part in self._written)
        return [f"{name}={text[:MOST_LETTERS]!r}{'…' if len(text) > MOST_LETTERS else ''}" for name, text in texts]

    @staticmethod
    def _described(part: PartLayout) -> str:
        if part.is_text:
            return "a str"
        dtype = RECORD.handed(part).name
        return f"a numpy array of {dtype} with shape {part.shape}" if part.shape else f"a number ({dtype})"
