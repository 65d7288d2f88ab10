"""One made-up task, and what the simulators of several tasks use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Metadata
from grace_irl.states.record import RecordStates

SHORTEST, LONGEST = 10, 80
"""Numbers of states of an episode."""
Numbers = NDArray[np.float64]
Bools = NDArray[np.bool_]
State = Mapping[str, Any]
"""The numbers and arrays of one state, by name."""


@dataclass(frozen=True)
class World:
    """A task: a simulator with controllers, and the goal.

    Attributes:
        goal: the true goal, in words.
        form: "record"; "named" for vectors whose numbers have names; or "vector" for those without names.
        misses: intents of near misses, in which a controller pursues a wrong goal. The number is that of the condition
            that fails alone in some of their states.
        play: simulator. It yields states without end. Its intent is "expert", "random" or one of `misses`.
        conditions: truth of each condition in each of an episode's states, which come as arrays by name. The goal is
            reached if all conditions hold.
    """

    goal: str
    form: Literal["record", "named", "vector"]
    misses: Mapping[str, int]
    play: Callable[[Generator, str], Iterator[State]]
    conditions: Callable[[Mapping[str, Numbers]], tuple[Bools, ...]]

    @cached_property
    def layout(self) -> dict[str, int]:
        """The numbers in each named array of a state."""
        return {name: np.size(value) for name, value in next(self.play(np.random.default_rng(0), "random")).items()}

    @property
    def metadata(self) -> Metadata:
        """Metadata of the sets."""
        fields = tuple(self.layout) if self.form == "named" else ()
        return Metadata("record" if self.form == "record" else "vector", fields, label="last")

    def states(self, rng: Generator, intent: str, count: int = LONGEST) -> Any:
        """Play `count` states."""
        played = list(islice(self.play(rng, intent), count))
        parts = {name: np.array([state[name] for state in played], np.float32) for name in played[0]}
        if self.form == "record":
            return RecordStates(parts)
        return np.concatenate([part.reshape(len(played), -1) for part in parts.values()], axis=1)

    def parts(self, states: Any) -> dict[str, Numbers]:
        """Split the states of an episode into named arrays of 64-bit numbers."""
        if self.form == "record":
            return {name: part.astype(np.float64) for name, part in states.parts.items()}
        ends = np.cumsum(list(self.layout.values()))
        pieces = np.split(np.asarray(states, np.float64), ends[:-1], axis=1)
        return {
            name: piece[:, 0] if self.form == "named" else piece
            for name, piece in zip(self.layout, pieces, strict=True)
        }

    def reached(self, states: Any) -> Bools:
        """In which of an episode's states the goal is reached."""
        reached: Bools = np.logical_and.reduce(self.conditions(self.parts(states)))
        return reached

    def fails_alone(self, states: Any, number: int) -> Bools:
        """In which of an episode's states all conditions hold but this one."""
        conditions = self.conditions(self.parts(states))
        alone: Bools = np.logical_and.reduce([(n == number) ^ each for n, each in enumerate(conditions)])
        return alone


def length(vectors: Any) -> Any:
    """Euclidean length of a vector, or of each row."""
    return np.linalg.norm(vectors, axis=-1)


def clipped(vector: Any, most: float) -> Numbers:
    """The vector, shortened to the length `most` if it is longer."""
    shortened: Numbers = np.asarray(vector) * min(1.0, most / max(float(length(vector)), 1e-9))
    return shortened


def wrapped(angle: Any) -> Any:
    """The angle, or each of them, between -π and π."""
    return (np.asarray(angle) + np.pi) % (2 * np.pi) - np.pi


def drift(rng: Generator, size: int, keep: float = 0.9) -> Iterator[Numbers]:
    """Noise of mean 0 and variance 1 whose neighbours in time resemble each other."""
    value = rng.normal(size=size)
    while True:
        yield value
        value = keep * value + np.sqrt(1 - keep**2) * rng.normal(size=size)


def apart(rng: Generator, low: Any, high: Any, others: Any, least: float) -> Numbers:
    """A random place in a box, at least `least` from each of the others."""
    while True:
        place: Numbers = rng.uniform(low, high)
        if all(length(place - other) >= least for other in others):
            return place


def beside(rng: Generator, place: Any, nearest: float, farthest: float) -> Numbers:
    """A random place at a distance between `nearest` and `farthest` from another."""
    direction = rng.normal(size=np.shape(place))
    beside: Numbers = place + direction / length(direction) * rng.uniform(nearest, farthest)
    return beside
