"""Copies of demonstrations in which nothing means what it did: a test of what a method learns from data
alone.

Grid codes are permuted per channel, axes flipped or transposed, instruction words replaced by invented ones;
a vector's fields are permuted, rescaled and renamed; screens are put in invented words. One map serves a whole set and
is kept beside it as JSON. What is equal, what recurs and when an episode ends stay as they are, and so do actions and
rewards.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from grace_irl.atomic import write_atomically
from grace_irl.demos.trajectory import Demonstration, Metadata, StateKind, Trajectory
from grace_irl.demos.ui.episode import AnnotatedTrajectory
from grace_irl.errors import InputError
from grace_irl.states import screen
from grace_irl.states.ui.disguise import disguised, in_other_words

CODES = 256
"""Grid codes lie in 0 … 255, before and after."""

WORD = re.compile(r"\w+")
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
SYLLABLES = 3
TRIES = 100
"""Words of so many syllables that are tried before longer ones: all short ones may be taken."""


@dataclass
class ScrambleMap:
    """What replaces what.

    Axes, order and scale are drawn at the start; codes and words when they are first met, by the seed, so
    that a map may be used again for data with codes and words that it has not seen.

    Attributes:
        seed: of every choice.
        kind: of the states.
        width: number of a vector's fields; 0 for grids and screens.
        transpose: swap the two axes of a grid, before flipping.
        flip: reverse the first axis, the second axis.
        order: for a vector, the old number of each new field.
        scale: factor of each new field.
        codes: for each of the three channels of a grid, new code by old one.
        words: invented word by old one (lower case).
    """

    seed: int
    kind: StateKind
    width: int = 0
    transpose: bool = False
    flip: tuple[bool, bool] = (False, False)
    order: tuple[int, ...] = ()
    scale: tuple[float, ...] = ()
    codes: tuple[dict[int, int], ...] = field(default_factory=lambda: ({}, {}, {}))
    words: dict[str, str] = field(default_factory=dict)

    @cached_property
    def _invented(self) -> set[str]:
        return set(self.words.values())

    @classmethod
    def draw(cls, seed: int, kind: StateKind, width: int = 0) -> ScrambleMap:
        """A fresh map for grids, whose axes always change, for vectors of `width` fields, or for screens."""
        rng = np.random.default_rng([seed, 0])
        if kind == "grid":
            choice = int(rng.integers(1, 8))  # every way but the one that leaves the axes alone
            return cls(seed, kind, transpose=bool(choice & 1), flip=(bool(choice & 2), bool(choice & 4)))
        order = tuple(int(i) for i in rng.permutation(width))
        # A decade either way, and no factor near 1, which would leave a field as it is.
        exponents = rng.uniform(0.1, 1.0, width) * rng.choice([-1.0, 1.0], width)
        return cls(seed, kind, width, order=order, scale=tuple(float(10.0**e) for e in exponents))

    def metadata(self, metadata: Metadata) -> Metadata:
        """That of the copy: no environment gives such states, and fields have names that say nothing."""
        fields = tuple(f"x{number}" for number in range(self.width))
        return replace(metadata, fields=fields, environment="", view="scrambled")

    def apply(self, demonstration: Demonstration) -> Demonstration:
        """The copy of one demonstration; codes and words that are new join the tables.

        Raises:
            InputError: states of another kind or width than the map's, or codes out of range.
        """
        trajectory = demonstration.trajectory
        width = trajectory.states.shape[1] if trajectory.kind == "vector" else 0
        if (trajectory.kind, width) != (self.kind, self.width):
            raise InputError(
                f"{trajectory.source}: {_kind(trajectory.kind, width)}; expected "
                f"{_kind(self.kind, self.width)}, "
                "as the map was made for: scramble it with a map of its own"
            )
        if self.kind == "ui":
            return replace(demonstration, trajectory=self._screens(trajectory))
        states = self._grid(trajectory.states, trajectory.source) if width == 0 else self._vector(trajectory.states)
        text = WORD.sub(lambda match: self._word(match[0].lower()), trajectory.extra_info)
        return replace(demonstration, trajectory=replace(trajectory, states=states, extra_info=text))

    def _grid(self, states: NDArray[Any], where: str) -> NDArray[np.uint8]:
        low, high = int(states.min()), int(states.max())
        if low < 0 or high >= CODES:
            raise InputError(f"{where}: codes from {low} to {high}; expected 0 to {CODES - 1} for scrambling")
        table = np.zeros((3, CODES), np.uint8)
        for channel, known in enumerate(self.codes):
            rng = np.random.default_rng([self.seed, 1, channel])
            permutation = rng.permutation(CODES)
            for code in np.unique(states[..., channel]).tolist():
                known.setdefault(code, int(permutation[code]))
            table[channel, list(known)] = list(known.values())
        mapped = np.stack([table[channel][states[..., channel]] for channel in range(3)], axis=-1)
        if self.transpose:
            mapped = mapped.swapaxes(1, 2)
        rows, columns = (slice(None, None, -1 if reverse else 1) for reverse in self.flip)
        return np.ascontiguousarray(mapped[:, rows, columns])

    def _screens(self, trajectory: Trajectory) -> Trajectory:
        """Screens and instruction in other words; pictures, and what was done in words, would give everything away."""
        if isinstance(trajectory, AnnotatedTrajectory):
            trajectory = replace(trajectory, action_texts=(), step_instructions=())
        states = trajectory.states.tolist()
        known = {state: disguised(screen.text(state), self._word) for state in dict.fromkeys(states)}
        text = in_other_words(trajectory.extra_info, self._word)
        return replace(
            trajectory, states=screen.pack([known[state] for state in states]), extra_info=text, screenshots=()
        )

    def _vector(self, states: NDArray[Any]) -> NDArray[Any]:
        dtype = states.dtype if states.dtype.kind == "f" else np.dtype(np.float64)
        scaled: NDArray[Any] = states[:, list(self.order)] * np.array(self.scale)
        return scaled.astype(dtype)

    def _word(self, word: str) -> str:
        """The invented word for a word, made of syllables; different words get different ones."""
        if word not in self.words:
            rng = np.random.default_rng([self.seed, 2, *word.encode()])
            invented, tries = word, 0
            while invented in self.words or invented in self._invented or invented == word:
                count = SYLLABLES + tries // TRIES
                pairs = zip(rng.choice(list(CONSONANTS), count), rng.choice(list(VOWELS), count), strict=True)
                invented = "".join(consonant + vowel for consonant, vowel in pairs)
                tries += 1
            self.words[word] = invented
            self._invented.add(invented)
        return self.words[word]

    def save(self, path: Path) -> None:
        """Writes the map as JSON, atomically."""
        write_atomically(path, json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> ScrambleMap:
        """Reads what `save` wrote.

        Raises:
            InputError: missing, or not such a map.
        """
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
            codes = tuple({int(old): int(new) for old, new in table.items()} for table in about["codes"])
            if about["kind"] not in get_args(StateKind) or len(codes) != 3 or len(about["order"]) != about["width"]:
                raise ValueError("not a map for vectors, grids or screens")
            return cls(
                seed=int(about["seed"]),
                kind=about["kind"],
                width=int(about["width"]),
                transpose=bool(about["transpose"]),
                flip=(bool(about["flip"][0]), bool(about["flip"][1])),
                order=tuple(int(i) for i in about["order"]),
                scale=tuple(float(x) for x in about["scale"]),
                codes=codes,
                words={str(old): str(new) for old, new in about["words"].items()},
            )
        except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise InputError(
                f"{path}: not a scramble map ({type(error).__name__}: {str(error)[:200]}); expected the JSON that "
                "grace-irl demos scramble writes"
            ) from None


def _kind(kind: str, width: int) -> str:
    return {"vector": f"vectors of {width}", "ui": "screens"}.get(kind, f"{kind}s")
