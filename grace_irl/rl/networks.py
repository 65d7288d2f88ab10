"""Networks of the policies: feature extractors for grids, records and texts, and normalisation of vectors.

The inputs are the arrays that an observer makes from a state and its instruction (`grace_irl.rl.observers`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Dict, Space
from stable_baselines3.common.policies import ActorCriticCnnPolicy, ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, CombinedExtractor
from torch import Tensor, nn

from grace_irl.rl.observers import IMAGE_FEATURES, MAX_WORDS, PART_FEATURES, TEXT_WORDS, WORDS, Observer, RecordObserver
from grace_irl.states.grid import GRID
from grace_irl.states.image import IMAGE
from grace_irl.states.record import RECORD
from grace_irl.states.vector import VECTOR

CODES = 32
"""Number of different codes in one channel of a grid. A code is an integer, for example for a type of object or for a
colour. Codes above 31 are clipped to 31."""

GRIDS = 16
"""Number of grids that `GridFeatures` pools at once. The features of this number of grids fit into the processor's
cache."""


class GridFeatures(BaseFeaturesExtractor):
    """Features of a grid, relative to the agent and conditioned on the instruction.

    Each cell becomes a sum of learnt vectors: one for each of the cell's three codes, and one for the cell's place.
    BabyAI's networks embed the codes in the same way (Chevalier-Boisvert et al. 2019). The place is a pair: the number
    of cells ahead of the agent, and the number to its right. If the agent's code is unknown, the place is the position
    in the grid.

    A linear layer then transforms the vector of each cell. The instruction scales and shifts the result, as in BabyAI's
    networks (FiLM, Perez et al. 2018). The features are the maximum and the mean over all cells.

    Args:
        space: observation space of `GridObserver`, `(3 w h + MAX_WORDS,)`.
        shape: shape of the grid, (w, h, 3).
        agent: code of the agent in channel 0; -1 if it is unknown.
        width: units of each layer.
    """

    _x: Tensor
    _y: Tensor
    _offsets: Tensor
    _powers: Tensor

    def __init__(self, space: Box, shape: tuple[int, int, int], agent: int, width: int = 32) -> None:
        super().__init__(space, features_dim=2 * width)
        self._columns, self._rows, self._channels = shape
        self._agent = agent
        side = 2 * max(shape[:2]) - 1
        self._codes = nn.Embedding(self._channels * CODES, width)
        self._places = nn.Embedding(side * side, width)
        self._words = nn.Embedding(WORDS + 1, width, padding_idx=0)
        self._order = nn.Embedding(MAX_WORDS, width)
        self._film = nn.Linear(width, 2 * width)
        self._second = nn.Linear(width, width)
        for table in (self._codes, self._places, self._words, self._order):
            nn.init.normal_(table.weight, std=0.5)
        with torch.no_grad():
            self._words.weight[0] = 0
        cells = torch.arange(self._columns * self._rows)
        self.register_buffer("_x", cells // self._rows, persistent=False)
        self.register_buffer("_y", cells % self._rows, persistent=False)
        self.register_buffer("_offsets", torch.arange(self._channels) * CODES, persistent=False)
        self.register_buffer("_powers", CODES ** torch.arange(self._channels), persistent=False)

    def forward(self, observations: Tensor) -> Tensor:
        """Features `(batch, 2 width)`.

        The vector of a cell depends only on the cell's codes and place, until the instruction scales and shifts this
        vector. Many cells of a batch have equal codes and places, so each distinct combination is computed once.
        """
        numbers = observations.long()
        cells = self._columns * self._rows
        codes = numbers[:, : cells * self._channels].reshape(-1, cells, self._channels).clamp(max=CODES - 1)
        places = self._places.num_embeddings
        contents, content = _distinct((codes * self._powers).sum(dim=2), CODES**self._channels)
        pairs, pair = _distinct(content * places + self._seen_from(codes), len(contents) * places)
        digits = contents[:, None] // self._powers % CODES
        looked_up = self._codes(digits + self._offsets).sum(dim=1)
        hidden = torch.relu(looked_up[pairs // places] + self._places(pairs % places))
        hidden = self._second(hidden)
        scale, shift = self._film(self._read(numbers[:, cells * self._channels :])).chunk(2, dim=1)
        parts = zip(*(torch.split(each, GRIDS) for each in (pair, scale[:, None], shift[:, None])), strict=True)
        return torch.cat([_pooled(nn.functional.embedding(at, hidden), *film) for at, *film in parts])

    def _seen_from(self, codes: Tensor) -> Tensor:
        """Index of each cell's place relative to the agent, `(batch, w h)`."""
        reach = max(self._columns, self._rows) - 1
        x, y = self._x[None], self._y[None]
        if self._agent < 0:
            return (x * (2 * reach + 1) + y).expand(len(codes), -1)
        where = (codes[:, :, 0] == self._agent).int().argmax(dim=1)
        facing = codes[torch.arange(len(codes), device=codes.device), where, 2][:, None]
        right, down = x - self._x[where][:, None], y - self._y[where][:, None]
        # MiniGrid's directions 0 … 3 are right, down, left, up.
        ahead = torch.where(facing % 2 == 0, right, down) * torch.where(facing < 2, 1, -1)
        aside = torch.where(facing % 2 == 0, down, right) * torch.where((facing == 0) | (facing == 3), 1, -1)
        return (ahead + reach) * (2 * reach + 1) + aside + reach

    def _read(self, words: Tensor) -> Tensor:
        """The instruction as one vector `(batch, width)`."""
        return sum_of_words(words, self._words, self._order)


def sum_of_words(words: Tensor, table: nn.Embedding, order: nn.Embedding) -> Tensor:
    """One vector for each text, `(batch, width)`: a sum over the words, each combined with its position.

    Args:
        words: index of each word in `table`, `(batch, k)`; 0 after the last word of a text.
        table: learnt vectors of words.
        order: learnt vectors of positions.
    """
    present = words > 0
    length = int(present.sum(dim=1).max()) if len(words) else 0
    if not length:
        return torch.zeros(len(words), table.embedding_dim, device=words.device)
    words, present = words[:, :length], present[:, :length, None]
    return (torch.relu(table(words) + order.weight[:length]) * present).sum(dim=1)


class Text(nn.Module):
    """Features of a text, from its words and their positions.

    Args:
        places: maximum number of words.
        width: size of the resulting vector.
    """

    def __init__(self, places: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS + 1, width, padding_idx=0)
        self.order = nn.Embedding(places, width)

    def forward(self, words: Tensor) -> Tensor:
        """Features `(batch, width)` of texts, given as indices of words `(batch, places)`."""
        return sum_of_words(words.long(), self.table, self.order)


def _pooled(cells: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Scale and shift the cells' features `(batch, w h, width)`. Return their maximum and mean `(batch, 2 width)`."""
    seen = torch.relu_(torch.addcmul(shift, cells, 1 + scale))
    return torch.cat((seen.max(dim=1).values, seen.mean(dim=1)), dim=1)


def _distinct(keys: Tensor, limit: int) -> tuple[Tensor, Tensor]:
    """The distinct keys, and the index of each key among them.

    Keys are integers from 0 to `limit` - 1. A table with `limit` entries replaces a sort.
    """
    there = torch.zeros(limit, dtype=torch.bool, device=keys.device)
    there[keys.reshape(-1)] = True
    distinct = there.nonzero()[:, 0]
    index = torch.empty(limit, dtype=torch.long, device=keys.device)
    index[distinct] = torch.arange(len(distinct), device=keys.device)
    return distinct, index[keys]


class NormalisedVector(BaseFeaturesExtractor):
    """A feature extractor that normalises vectors by a running mean and standard deviation.

    The results are clipped to ±10, as in `VecNormalize`. The statistics are part of the policy, so they are saved and
    copied with the policy. They stay if an algorithm such as GAIL replaces the learner's environment.
    `NormalisingPolicy` updates the statistics.

    Args:
        space: observation space, `(n,)`.
    """

    mean: Tensor
    variance: Tensor
    count: Tensor
    new: Tensor
    new_count: Tensor

    def __init__(self, space: Box) -> None:
        super().__init__(space, features_dim=space.shape[0])
        size = space.shape[0]
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(size, dtype=torch.float64))
        self.register_buffer("count", torch.tensor(1e-4, dtype=torch.float64))
        self.register_buffer("new", torch.zeros(2, size, dtype=torch.float64))  # rows: sums of values, sums of squares
        self.register_buffer("new_count", torch.zeros((), dtype=torch.float64))

    def forward(self, observations: Tensor) -> Tensor:
        """Normalised observations `(batch, n)`."""
        normal = (observations.double() - self.mean) / torch.sqrt(self.variance + 1e-8)
        return normal.clamp(-10, 10).float()

    def collect(self, observations: Tensor) -> None:
        """Collect observations. The next `take_in` merges them into the statistics."""
        values = observations.double()
        self.new += torch.stack((values.sum(dim=0), (values * values).sum(dim=0)))
        self.new_count += len(values)

    def take_in(self) -> None:
        """Merge the collected observations into the statistics (Chan et al. 1983)."""
        if not self.new_count:
            return
        mean = self.new[0] / self.new_count
        variance = (self.new[1] / self.new_count - mean * mean).clamp(min=0)
        total = self.count + self.new_count
        delta = mean - self.mean
        within = self.variance * self.count + variance * self.new_count
        self.variance = (within + delta**2 * self.count * self.new_count / total) / total
        self.mean = self.mean + delta * self.new_count / total
        self.count = total
        self.new.zero_()
        self.new_count.zero_()


class RecordFeatures(CombinedExtractor):
    """Features of a record, which is a state of named parts: numbers, images and texts.

    Numbers are normalised, images go through `NatureCNN`, and texts through `Text`. The base class, the extractor of
    `MultiInputPolicy`, handles neither normalisation nor texts. The observation is one array instead of a dict, because
    GAIL and AIRL of `imitation` do not accept dicts.

    Args:
        space: observation space of the observer.
        observer: the observer, which defines the layout of the array.
        width: number of features of each text.
    """

    def __init__(self, space: Box, observer: RecordObserver, width: int = 32) -> None:
        images: dict[str, Space[Any]] = {
            f"image{number}": Box(0, 255, shape, np.uint8) for number, shape in enumerate(observer.shapes)
        }
        super().__init__(Dict(images), cnn_output_dim=PART_FEATURES)
        self._observation_space = space
        self._observer = observer
        numbers = observer.width + observer.has_flag
        if numbers:
            self.extractors["numbers"] = NormalisedVector(Box(-np.inf, np.inf, (numbers,)))
        for number in range(observer.said):
            self.extractors[f"text{number}"] = Text(TEXT_WORDS, width)
        self._features_dim += numbers + width * observer.said

    def forward(self, observations: Tensor) -> Tensor:  # type: ignore[override]
        """Features `(batch, n)`."""
        return super().forward(self._parts(observations))

    def collect(self, observations: Tensor) -> None:
        """See `NormalisedVector`."""
        if "numbers" in self.extractors:
            self._numbers.collect(self._parts(observations)["numbers"])

    def take_in(self) -> None:
        """See `NormalisedVector`."""
        if "numbers" in self.extractors:
            self._numbers.take_in()

    def normalise(self, by: Callable[[int], nn.Module]) -> None:
        """Replace the normalisation of numbers by a module that updates its own statistics.

        Networks outside a policy, such as those of GAIL and AIRL, need this. Within a policy, `NormalisingPolicy`
        updates the statistics.

        Args:
            by: function from the size of the vector of numbers to the new module.
        """
        if "numbers" in self.extractors:
            self.extractors["numbers"] = by(self._numbers.features_dim)

    @property
    def _numbers(self) -> NormalisedVector:
        found = self.extractors["numbers"]
        assert isinstance(found, NormalisedVector)  # `__init__` put it there
        return found

    def _parts(self, observations: Tensor) -> dict[str, Tensor]:
        """Split observations `(batch, k)` into the inputs of the extractors."""
        seen = self._observer
        sizes = [seen.width, *map(math.prod, seen.shapes), *[TEXT_WORDS] * seen.said, int(seen.has_flag)]
        numbers, *others, flag = torch.split(observations, sizes, dim=1)
        images, texts = others[: len(seen.shapes)], others[len(seen.shapes) :]
        parts = {"numbers": torch.cat((numbers, flag), dim=1)}
        for number, (image, shape) in enumerate(zip(images, seen.shapes, strict=True)):
            parts[f"image{number}"] = image.reshape(-1, *shape) / 255
        return parts | {f"text{number}": words for number, words in enumerate(texts)}


class NormalisingPolicy(ActorCriticPolicy):
    """An actor-critic policy that updates the statistics of its `NormalisedVector` or `RecordFeatures`.

    The statistics stay constant from the start of a rollout to the end of the update on this rollout. During this time,
    action probabilities change only with the weights. Observations for `predict` do not enter the statistics.
    """

    features_extractor: NormalisedVector | RecordFeatures

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._updated = True

    def forward(self, obs: Tensor, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Choose actions in a rollout. The observations enter the statistics at the start of the next rollout."""
        if self._updated:
            self._updated = False
            self.features_extractor.take_in()
        self.features_extractor.collect(obs)
        return super().forward(obs, deterministic)

    def set_training_mode(self, mode: bool) -> None:
        """Set the training mode. PPO enables this mode before an update, so the next rollout has new statistics."""
        super().set_training_mode(mode)
        if mode:
            self._updated = True


def network_options(observer: Observer) -> tuple[type[ActorCriticPolicy], dict[str, Any]]:
    """The policy class for an observer, and the `policy_kwargs` (Stable-Baselines3) for its feature extractor."""
    return NETWORKS[observer.kind](observer)


def _grids(observer: Any) -> tuple[type[ActorCriticPolicy], dict[str, Any]]:
    options = {"shape": observer.shape, "agent": observer.agent}
    return ActorCriticPolicy, {"features_extractor_class": GridFeatures, "features_extractor_kwargs": options}


def _vectors(observer: Any) -> tuple[type[ActorCriticPolicy], dict[str, Any]]:
    del observer
    return NormalisingPolicy, {"features_extractor_class": NormalisedVector}


def _images(observer: Any) -> tuple[type[ActorCriticPolicy], dict[str, Any]]:
    del observer
    return ActorCriticCnnPolicy, {"features_extractor_kwargs": {"features_dim": IMAGE_FEATURES}}


def _records(observer: Any) -> tuple[type[ActorCriticPolicy], dict[str, Any]]:
    options = {"observer": observer}
    return NormalisingPolicy, {"features_extractor_class": RecordFeatures, "features_extractor_kwargs": options}


NETWORKS: dict[str, Callable[[Any], tuple[type[ActorCriticPolicy], dict[str, Any]]]] = {
    VECTOR.name: _vectors,
    GRID.name: _grids,
    IMAGE.name: _images,
    RECORD.name: _records,
}
"""Functions from an observer to the result of `network_options`, by the name of the states' kind."""
