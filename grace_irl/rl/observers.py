"""Observers: conversions of a state and its instruction to one array, which is the observation of a policy."""

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
"""Maximum number of words of an instruction in an observation. Further words are left out."""

WORDS = 1024
"""Largest number that stands for a word. The numbers begin at 1, and 0 means no word."""

TEXT_WORDS = MAX_WORDS
"""Maximum number of words in an observation for each text of a record. Further words are left out."""

LEAST_SIDE = 36
"""Minimum side of an image for `NatureCNN` of Stable-Baselines3 (Mnih et al. 2015), in pixels."""

USUAL_SIDE = 84
"""Side of the images for which `NatureCNN` was designed, in pixels."""

IMAGE_FEATURES, PART_FEATURES = 512, 256
"""Number of features that a network computes from an image. It is 512 if the state is an image, as in `CnnPolicy`, and
256 for each image in a record, as in `MultiInputPolicy`."""

MINIGRID_AGENT = 10
"""Code of the agent in channel 0 of MiniGrid's arrays (`minigrid.core.constants.OBJECT_TO_IDX`)."""


class Observer(Protocol):
    """The conversion of states to arrays in a `Box`, a space that both Stable-Baselines3 and `imitation` accept.

    Attributes:
        kind: name of the kind of state, for example "vector".
    """

    kind: ClassVar[str]

    @property
    def wants_gpu(self) -> bool:
        """Whether networks on these observations gain from a GPU."""
        ...

    @property
    def least_weights(self) -> int:
        """Minimum number of weights of a network on these observations, for a check of saved policies."""
        ...

    @property
    def space(self) -> Any:
        """The Gymnasium `Box` of one observation."""
        ...

    def observe(self, state: Any, instruction: str) -> NDArray[Any]:
        """The observation of one state."""
        ...

    def flagged(self) -> Observer:
        """The observer for an environment in a `FixedHorizon` wrapper, which gives all episodes the same length.

        In this wrapper, an episode that ends early stays in an absorbing state. Observations `(n,)` get one more
        component, a flag that is 1 in the absorbing state. The wrapper appends the flag; `observe` does not.
        """
        ...


@dataclass(frozen=True)
class VectorObserver:
    """The observer of vectors. The observation is the state itself.

    Attributes:
        size: number n of components of a state `(n,)`.
    """

    kind: ClassVar[str] = VECTOR.name
    wants_gpu: ClassVar[bool] = False
    size: int

    @property
    def space(self) -> Any:
        """The unbounded `Box` of observations `(n,)`, float64."""
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
    """The observer of grids, whose cells hold three integer codes each.

    The observation is the flattened codes, then one number for each word of the instruction.

    Attributes:
        shape: shape of a state, (w, h, 3).
        agent: code of the agent in channel 0; -1 if it is unknown. In the agent's cell, channel 2 is the direction that
            the agent faces.
    """

    kind: ClassVar[str] = GRID.name
    wants_gpu: ClassVar[bool] = True
    shape: tuple[int, int, int]
    agent: int = -1

    @property
    def space(self) -> Any:
        """The `Box` of observations `(3 w h + MAX_WORDS,)`, int16."""
        from gymnasium.spaces import Box

        return Box(0, WORDS, (self.cells + MAX_WORDS,), np.int16)

    @property
    def cells(self) -> int:
        """Number of codes in a state, 3 w h."""
        width, height, channels = self.shape
        return width * height * channels

    def observe(self, state: NDArray[Any], instruction: str) -> NDArray[np.int16]:
        """The flattened codes, then the word numbers, padded with 0."""
        observation = np.zeros(self.cells + MAX_WORDS, np.int16)
        observation[: self.cells] = state.reshape(-1)
        numbers = word_numbers(instruction)
        observation[self.cells : self.cells + len(numbers)] = numbers
        return observation

    @property
    def least_weights(self) -> int:
        """See `Observer`. The network has a vector of weights for each offset between a cell and the agent."""
        return max(self.cells, (2 * max(self.shape) - 1) ** 2)

    def flagged(self) -> GridObserver:
        """See `Observer`. The absorbing state is a grid of zeros, so the network needs no flag."""
        return self


@dataclass(frozen=True)
class ImageObserver:
    """The observer of images. The observation has the channels first, and has a size that suits `NatureCNN`.

    Images are enlarged or reduced by integer factors.

    Attributes:
        sides: height and width of a state, in pixels.
        channels: number of channels of a state.
    """

    kind: ClassVar[str] = IMAGE.name
    wants_gpu: ClassVar[bool] = True
    sides: tuple[int, int]
    channels: int

    @property
    def times(self) -> int:
        """Factor of enlargement: each pixel is repeated this number of times in both directions."""
        return -(-LEAST_SIDE // min(self.sides))

    @property
    def part(self) -> int:
        """Factor of reduction: each square of pixels with this side becomes one pixel, the mean of the square."""
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
        """The `Box` of observations of shape `shape`, uint8."""
        from gymnasium.spaces import Box

        return Box(0, 255, self.shape, np.uint8)

    def observe(self, state: NDArray[Any], instruction: str) -> NDArray[np.uint8]:
        """The image in the shape `shape`. The instruction is ignored."""
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
        """See `Observer`. The absorbing state is a black image, so the network needs no flag."""
        return self


@dataclass(frozen=True)
class RecordObserver:
    """The observer of records, which are states of named parts.

    The observation is one vector: numbers, then images, then word numbers of the texts.

    Attributes:
        numbers: names of the numeric parts.
        width: total number of components of the numeric parts.
        images: names of the image parts (`is_image`).
        shapes: shape (c, h, w) of each image part.
        texts: names of the text parts.
        reads_instruction: whether the instruction is a further text.
        has_flag: whether the last component is the flag of the absorbing state (`FixedHorizon`).
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
        """The observer of states with the layout of `state`. It reads instructions if `instruction` is not empty."""
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
        """See `Observer`. True if there are images."""
        return bool(self.images)

    @property
    def said(self) -> int:
        """Number of texts in an observation, including the instruction if the observer reads it."""
        return len(self.texts) + self.reads_instruction

    @property
    def least_weights(self) -> int:
        """See `Observer`."""
        images = sum(cnn_weights(shape, PART_FEATURES) for shape in self.shapes)
        return self.width + images + WORDS * self.said + self.has_flag

    @property
    def space(self) -> Any:
        """The unbounded `Box` of observations `(n,)`: float64, or float32 with images, to save memory."""
        from gymnasium.spaces import Box

        size = self.width + sum(map(math.prod, self.shapes)) + TEXT_WORDS * self.said + self.has_flag
        return Box(-np.inf, np.inf, (size,), self._dtype)

    def observe(self, state: Any, instruction: str) -> NDArray[Any]:
        """The numbers, then the images, then the word numbers of each text, padded with 0."""
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
    """Whether a part of a record is an image: uint8 `(h, w, c)`, c = 1, 3 or 4, with sides of at least `LEAST_SIDE`."""
    if part.dtype != np.dtype(np.uint8).str or len(part.shape) != 3:
        return False
    return part.shape[2] in (1, 3, 4) and min(part.shape[:2]) >= LEAST_SIDE


def cnn_weights(shape: tuple[int, int, int], features: int) -> int:
    """Number of weights in the first and last layers of `NatureCNN`, for images (c, h, w) and `features` outputs."""
    cells = [((side - 8) // 4 + 1 - 4) // 2 + 1 - 2 for side in shape[1:]]
    return 32 * 8 * 8 * shape[0] + 64 * math.prod(max(each, 1) for each in cells) * features


def word_numbers(instruction: str) -> list[int]:
    """A number from 1 to WORDS for each of the first MAX_WORDS words of an instruction.

    The number is a hash of the word, so no vocabulary is stored. A policy cannot distinguish words with the same
    number. All words of BabyAI's instructions have different numbers.
    """
    words = re.findall(r"[^\W_]+", instruction.lower())[:MAX_WORDS]
    return [1 + zlib.crc32(word.encode()) % WORDS for word in words]


def observer_for(view: StateView, state: Any, instruction: str = "") -> Observer:
    """The observer of a policy, chosen by an example state.

    Args:
        view: the conversion of the environment's observations to states.
        state: the example.
        instruction: the instruction of the example's episode.

    Raises:
        InputError: no observer converts states of this kind.
    """
    kind = view.metadata.state_kind
    if kind.name not in OBSERVERS or not kind.recognises_state(state):
        found = f"{kind.plural} of shape {np.shape(state)}"
        raise InputError(f"states that are {found}; expected {observed_kinds()}: PPO reads no others")
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
"""Functions from a view, a state and its instruction to an observer, by the kind of the state."""


def observed_kinds() -> str:
    """The kinds of states that policies can observe, for messages."""
    return " or ".join(kind_named(name).plural for name in OBSERVERS)


def observe_trajectory(observer: Observer, trajectory: Trajectory) -> NDArray[Any]:
    """Observations of all states of a trajectory, `(T+1, ...)`."""
    return np.stack([observer.observe(state, trajectory.extra_info) for state in trajectory.states])
