"""Observations of a policy: one array made of a state and its instruction, from which the state can be read back."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.rewards.view import StateView
from grace_irl.rl.views import MINIGRID
from grace_irl.states import kind_named
from grace_irl.states.grid import GRID
from grace_irl.states.layout import StateLayout
from grace_irl.states.record import RECORD
from grace_irl.states.vector import VECTOR

MAX_WORDS = 32
"""Words of an instruction that a policy reads; the rest is cut."""

WORDS = 1024
"""Numbers that words are mapped to, from 1 on; 0 stands for no word."""

TEXT_WORDS = 8
"""Words of a text of a record that a policy reads; the rest is cut."""

MINIGRID_AGENT = 10
"""Code of the agent in channel 0 of MiniGrid's arrays (`minigrid.core.constants.OBJECT_TO_IDX`)."""


class Observer(Protocol):
    """Makes observations, in a `Box`: what Stable-Baselines3 and imitation take without ado.

    Attributes:
        kind: name of the states' kind.
        wants_gpu: its networks gain from a GPU.
    """

    kind: ClassVar[str]
    wants_gpu: ClassVar[bool]

    @property
    def space(self) -> Any:
        """The Gymnasium `Box` of one observation."""
        ...

    def observe(self, state: NDArray[Any], instruction: str) -> NDArray[Any]:
        """One observation `(k,)`."""
        ...

    def flagged(self) -> Observer:
        """The observer of the fixed-horizon form, whose vectors have one number more (`FixedHorizon`)."""
        ...


@dataclass(frozen=True)
class VectorObserver:
    """Vectors are observed as they are.

    Attributes:
        size: n of a state `(n,)`.
    """

    kind: ClassVar[str] = VECTOR.name
    wants_gpu: ClassVar[bool] = False
    size: int

    @property
    def space(self) -> Any:
        """`(n,)` float64, unbounded."""
        from gymnasium.spaces import Box

        return Box(-np.inf, np.inf, (self.size,), np.float64)

    def observe(self, state: NDArray[Any], instruction: str) -> NDArray[Any]:  # noqa: ARG002
        """The state."""
        return np.asarray(state, np.float64)

    def states(self, observations: NDArray[Any]) -> NDArray[Any]:
        """The same array."""
        return observations

    def flagged(self) -> VectorObserver:
        """See `Observer`."""
        return VectorObserver(self.size + 1)


@dataclass(frozen=True)
class GridObserver:
    """A grid's codes, flattened, and behind them a number for each word of the instruction.

    Attributes:
        shape: (w, h, 3) of a state.
        agent: the code of the agent in channel 0, whose channel 2 is its direction; -1 if there is no such thing.
    """

    kind: ClassVar[str] = GRID.name
    wants_gpu: ClassVar[bool] = True
    shape: tuple[int, int, int]
    agent: int = -1

    @property
    def space(self) -> Any:
        """`(3 w h + MAX_WORDS,)` int16."""
        from gymnasium.spaces import Box

        return Box(0, WORDS, (self.cells + MAX_WORDS,), np.int16)

    @property
    def cells(self) -> int:
        """Numbers of a state."""
        width, height, channels = self.shape
        return width * height * channels

    def observe(self, state: NDArray[Any], instruction: str) -> NDArray[np.int16]:
        """See the class."""
        observation = np.zeros(self.cells + MAX_WORDS, np.int16)
        observation[: self.cells] = state.reshape(-1)
        numbers = word_numbers(instruction)
        observation[self.cells : self.cells + len(numbers)] = numbers
        return observation

    def states(self, observations: NDArray[Any]) -> NDArray[Any]:
        """`(batch, w, h, 3)`."""
        return observations[..., : self.cells].reshape(*observations.shape[:-1], *self.shape)

    def flagged(self) -> GridObserver:
        """See `Observer`."""
        return self


@dataclass(frozen=True)
class RecordObserver:
    """The numbers of all parts in a row, and a number for each of the first words of each text.

    Attributes:
        numbers: names of the parts of numbers.
        texts: names of the parts that are texts.
        size: numbers of an observation.
    """

    kind: ClassVar[str] = RECORD.name
    wants_gpu: ClassVar[bool] = False
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    size: int

    @classmethod
    def of(cls, state: Any) -> RecordObserver:
        """The observer of states like this one."""
        parts = StateLayout.of(RECORD, state).parts
        numbers = tuple(part.name for part in parts if not part.is_text)
        texts = tuple(part.name for part in parts if part.is_text)
        size = sum(math.prod(part.shape) for part in parts if not part.is_text) + TEXT_WORDS * len(texts)
        return cls(numbers, texts, size)

    @property
    def space(self) -> Any:
        """`(size,)` float64, unbounded."""
        return VectorObserver(self.size).space

    def observe(self, state: Any, instruction: str) -> NDArray[np.float64]:
        """See the class; instructions are not read."""
        del instruction
        parts = RECORD.separated(state)
        found = [np.ravel(parts[name]).astype(np.float64) for name in self.numbers]
        for name in self.texts:
            words = word_numbers(parts[name])[:TEXT_WORDS]
            found.append(np.array([*words, *[0] * (TEXT_WORDS - len(words))], np.float64) / WORDS)
        return np.concatenate(found)

    def flagged(self) -> VectorObserver:
        """See `Observer`."""
        return VectorObserver(self.size + 1)


def word_numbers(instruction: str) -> list[int]:
    """A number in 1 … WORDS for each of the first MAX_WORDS words, by a hash: no vocabulary has to be kept.

    Words that share a number cannot be told apart; those of BabyAI's instructions share none.
    """
    words = re.findall(r"[^\W_]+", instruction.lower())[:MAX_WORDS]
    return [1 + zlib.crc32(word.encode()) % WORDS for word in words]


def observer_for(view: StateView, state: NDArray[Any]) -> Observer:
    """The observer of a policy for states like this one.

    Raises:
        InputError: states that no policy of ours reads.
    """
    kind = view.metadata.state_kind
    if kind.name not in OBSERVERS or not kind.recognises_state(state):
        known = " or ".join(kind_named(name).plural for name in OBSERVERS)
        found = f"{kind.plural} of shape {np.shape(state)}"
        raise InputError(f"states that are {found}; expected {known}: PPO reads no others")
    return OBSERVERS[kind.name](view, state)


def _grid_observer(view: StateView, state: NDArray[Any]) -> Observer:
    agent = MINIGRID_AGENT if view.metadata.view == MINIGRID else -1
    return GridObserver((state.shape[0], state.shape[1], state.shape[2]), agent)


OBSERVERS: dict[str, Callable[[StateView, Any], Observer]] = {
    VECTOR.name: lambda _, state: VectorObserver(len(state)),
    GRID.name: _grid_observer,
    RECORD.name: lambda _, state: RecordObserver.of(state),
}
"""Makers of the observers of each kind of state, from a view and one state."""


def observe_trajectory(observer: Observer, trajectory: Trajectory) -> NDArray[Any]:
    """Observations of a policy along a trajectory, `(T+1, k)`."""
    return np.stack([observer.observe(state, trajectory.extra_info) for state in trajectory.states])
