"""Observations of a policy: one array made of a state and its instruction."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.rewards.view import StateView
from grace_irl.rl.views import MINIGRID
from grace_irl.states import kind_named
from grace_irl.states.grid import GRID
from grace_irl.states.image import IMAGE
from grace_irl.states.kind import PartLayout
from grace_irl.states.layout import StateLayout
from grace_irl.states.record import RECORD
from grace_irl.states.vector import VECTOR

MAX_WORDS = 32
"""Words of an instruction that a policy reads; the rest is cut."""

WORDS = 1024
"""Numbers that words are mapped to, from 1 on; 0 stands for no word."""

TEXT_WORDS = MAX_WORDS
"""Words of a text of a record that a policy reads; the rest is cut."""

LEAST_SIDE = 36
"""The shortest side of an image that `NatureCNN` of Stable-Baselines3 reads (Mnih et al. 2015)."""

USUAL_SIDE = 84
"""The side of the images that it was made for."""

IMAGE_FEATURES, PART_FEATURES = 512, 256
"""Features of an image, as in `CnnPolicy`, and of one in a record, as in `MultiInputPolicy`."""

MINIGRID_AGENT = 10
"""Code of the agent in channel 0 of MiniGrid's arrays (`minigrid.core.constants.OBJECT_TO_IDX`)."""


class Observer(Protocol):
    """Makes observations, in a `Box`: what Stable-Baselines3 and imitation take without ado.

    Attributes:
        kind: name of the states' kind.
    """

    kind: ClassVar[str]

    @property
    def wants_gpu(self) -> bool:
        """Whether its networks gain from a GPU."""
        ...

    @property
    def least_weights(self) -> int:
        """Fewest weights of a network that reads an observation."""
        ...

    @property
    def space(self) -> Any:
        """The Gymnasium `Box` of one observation."""
        ...

    def observe(self, state: Any, instruction: str) -> NDArray[Any]:
        """One observation."""
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

    @property
    def least_weights(self) -> int:
        """See `Observer`."""
        return self.size

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

    @property
    def least_weights(self) -> int:
        """See `Observer`: there is a weight for each place that the agent may see, whatever side it stands at."""
        return max(self.cells, (2 * max(self.shape) - 1) ** 2)

    def flagged(self) -> GridObserver:
        """See `Observer`."""
        return self


@dataclass(frozen=True)
class ImageObserver:
    """Images with the channels in front, enlarged or reduced in whole steps to what `NatureCNN` reads well.

    Attributes:
        sides: (h, w) of a state.
        channels: of a state.
    """

    kind: ClassVar[str] = IMAGE.name
    wants_gpu: ClassVar[bool] = True
    sides: tuple[int, int]
    channels: int

    @property
    def times(self) -> int:
        """The number of times that each pixel is repeated, down and across."""
        return -(-LEAST_SIDE // min(self.sides))

    @property
    def part(self) -> int:
        """Sides of the square of pixels that is observed as one, their mean."""
        return max(1, min(self.sides) // USUAL_SIDE)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an observation."""
        height, width = (side // self.part * self.times for side in self.sides)
        return self.channels, height, width

    @property
    def least_weights(self) -> int:
        """See `Observer`."""
        return cnn_weights(self.shape, IMAGE_FEATURES)

    @property
    def space(self) -> Any:
        """`shape`, uint8."""
        from gymnasium.spaces import Box

        return Box(0, 255, self.shape, np.uint8)

    def observe(self, state: NDArray[Any], instruction: str) -> NDArray[np.uint8]:
        """See the class; instructions are not read."""
        del instruction
        image = np.moveaxis(state, -1, 0)
        if self.part > 1:
            height, width = (side // self.part for side in self.sides)
            image = image[:, : height * self.part, : width * self.part]
            image = image.reshape(self.channels, height, self.part, width, self.part).mean(axis=(2, 4))
        if self.times > 1:
            image = image.repeat(self.times, axis=1).repeat(self.times, axis=2)
        return np.ascontiguousarray(image, np.uint8)

    def flagged(self) -> ImageObserver:
        """See `Observer`: the absorbing state is black."""
        return self


@dataclass(frozen=True)
class RecordObserver:
    """The parts of a record in a row: numbers, images, and a number for each of the first words of each text.

    Attributes:
        numbers: names of the parts of numbers.
        width: of how many numbers these are.
        images: names of the parts that a network for images reads (`is_image`).
        shapes: (c, h, w) of each of them.
        texts: names of the parts that are texts.
        reads_instruction: the instruction is one text more.
        has_flag: the last number says whether the state is the absorbing one of the fixed-horizon form.
    """

    kind: ClassVar[str] = RECORD.name
    numbers: tuple[str, ...]
    width: int
    images: tuple[str, ...] = ()
    shapes: tuple[tuple[int, int, int], ...] = ()
    texts: tuple[str, ...] = ()
    reads_instruction: bool = False
    has_flag: bool = False

    @classmethod
    def of(cls, state: Any, instruction: str = "") -> RecordObserver:
        """The observer of states like this one; it reads instructions if there is one."""
        parts = StateLayout.of(RECORD, state).parts
        images = [part for part in parts if is_image(part)]
        numbers = [part for part in parts if not (part.is_text or part in images)]
        return cls(
            tuple(part.name for part in numbers),
            sum(math.prod(part.shape) for part in numbers),
            tuple(part.name for part in images),
            tuple((part.shape[2], part.shape[0], part.shape[1]) for part in images),
            tuple(part.name for part in parts if part.is_text),
            bool(instruction),
        )

    @property
    def wants_gpu(self) -> bool:
        """See `Observer`: for images."""
        return bool(self.images)

    @property
    def said(self) -> int:
        """Texts of an observation."""
        return len(self.texts) + self.reads_instruction

    @property
    def least_weights(self) -> int:
        """See `Observer`."""
        images = sum(cnn_weights(shape, PART_FEATURES) for shape in self.shapes)
        return self.width + images + WORDS * self.said + self.has_flag

    @property
    def space(self) -> Any:
        """`(n,)`, unbounded: float64, or float32 with images, which are large."""
        from gymnasium.spaces import Box

        size = self.width + sum(map(math.prod, self.shapes)) + TEXT_WORDS * self.said + self.has_flag
        return Box(-np.inf, np.inf, (size,), self._dtype)

    def observe(self, state: Any, instruction: str) -> NDArray[Any]:
        """See the class."""
        parts = RECORD.separated(state)
        found = [np.ravel(parts[name]) for name in self.numbers]
        found += [np.moveaxis(parts[name], -1, 0).ravel() for name in self.images]
        texts = [parts[name] for name in self.texts] + [instruction] * self.reads_instruction
        for text in texts:
            words = word_numbers(text)[:TEXT_WORDS]
            found.append(np.array([*words, *[0] * (TEXT_WORDS - len(words))]))
        return np.concatenate(found, dtype=self._dtype, casting="unsafe")

    def flagged(self) -> RecordObserver:
        """See `Observer`."""
        return replace(self, has_flag=True)

    @property
    def _dtype(self) -> type[np.floating[Any]]:
        return np.float32 if self.images else np.float64


def is_image(part: PartLayout) -> bool:
    """Whether a network for images reads a part of a record: uint8, h x w x 1, 3 or 4, and no side too short for it."""
    if part.dtype != np.dtype(np.uint8).str or len(part.shape) != 3:
        return False
    return part.shape[2] in (1, 3, 4) and min(part.shape[:2]) >= LEAST_SIDE


def cnn_weights(shape: tuple[int, int, int], features: int) -> int:
    """Weights of the first and the last layer of `NatureCNN` for images (c, h, w)."""
    cells = [((side - 8) // 4 + 1 - 4) // 2 + 1 - 2 for side in shape[1:]]
    return 32 * 8 * 8 * shape[0] + 64 * math.prod(max(each, 1) for each in cells) * features


def word_numbers(instruction: str) -> list[int]:
    """A number in 1 … WORDS for each of the first MAX_WORDS words, by a hash: no vocabulary has to be kept.

    Words that share a number cannot be told apart; those of BabyAI's instructions share none.
    """
    words = re.findall(r"[^\W_]+", instruction.lower())[:MAX_WORDS]
    return [1 + zlib.crc32(word.encode()) % WORDS for word in words]


def observer_for(view: StateView, state: Any, instruction: str = "") -> Observer:
    """The observer of a policy for states like this one.

    Args:
        view: which makes the states.
        state: one of them.
        instruction: of its episode.

    Raises:
        InputError: states that no policy of ours reads.
    """
    kind = view.metadata.state_kind
    if kind.name not in OBSERVERS or not kind.recognises_state(state):
        known = " or ".join(kind_named(name).plural for name in OBSERVERS)
        found = f"{kind.plural} of shape {np.shape(state)}"
        raise InputError(f"states that are {found}; expected {known}: PPO reads no others")
    return OBSERVERS[kind.name](view, state, instruction)


def _grid_observer(view: StateView, state: NDArray[Any], instruction: str) -> Observer:  # noqa: ARG001
    agent = MINIGRID_AGENT if view.metadata.view == MINIGRID else -1
    return GridObserver((state.shape[0], state.shape[1], state.shape[2]), agent)


OBSERVERS: dict[str, Callable[[StateView, Any, str], Observer]] = {
    VECTOR.name: lambda _view, state, _text: VectorObserver(len(state)),
    GRID.name: _grid_observer,
    IMAGE.name: lambda _view, state, _text: ImageObserver(state.shape[:2], state.shape[2]),
    RECORD.name: lambda _view, state, text: RecordObserver.of(state, text),
}
"""Makers of the observers of each kind of state, from a view, one state and its instruction."""


def observe_trajectory(observer: Observer, trajectory: Trajectory) -> NDArray[Any]:
    """Observations of a policy along a trajectory, `(T+1, k)`."""
    return np.stack([observer.observe(state, trajectory.extra_info) for state in trajectory.states])
