"""Reads Minari datasets, by id under MINARI_DATASETS_PATH or by folder, in hdf5 and in arrow.

Observations may be a `Box` of one dimension (vector), a `Box` (h, w, 3) of integers (grid), or a `Dict`: with
an `image` it is a grid, otherwise its boxes of one dimension are joined in the order of their names; a
`mission` text becomes the instruction. Nothing is ever downloaded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.header import KEY, Header, require_numbers
from grace_irl.demos.source import Allocate, build, stated_role, stated_split, total_bytes
from grace_irl.demos.trajectory import Demonstration, LabelRule, Metadata, Role
from grace_irl.errors import InputError

TEXT_KEYS = ("mission", "instruction", "goal_text")


def dataset_folder(path: str | Path) -> Path | None:
    """The data folder of a Minari dataset, if the path or id names one; None otherwise."""
    candidates = [Path(path)]
    if not Path(path).is_absolute():
        candidates.append(datasets_root() / path)
    for folder in candidates:
        for data in (folder / "data", folder):
            if _is_dataset(data / "metadata.json"):
                return data
    return None


def datasets_root() -> Path:
    """Where Minari keeps its datasets: MINARI_DATASETS_PATH, or ~/.minari/datasets."""
    named = os.environ.get("MINARI_DATASETS_PATH")
    return Path(named) if named else Path.home() / ".minari" / "datasets"


class MinariSource:
    """A Minari dataset, opened (see `Source`).

    Args:
        path: as the caller named it, for messages.
        folder: its data folder.

    Raises:
        InputError: Minari is not installed, or the dataset cannot be used.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        try:
            from minari.dataset.minari_storage import MinariStorage, is_image_space

            self._storage: Any = MinariStorage.read(folder)
        except ImportError as error:
            raise InputError(
                f"{path}: a Minari dataset, and {error.name} is not installed; "
                "install the extra, pip install 'grace-irl[minari]'"
            ) from None
        except Exception as error:  # Minari raises what its parts raise: ValueError, KeyError, AssertionError, OSError
            raise InputError(
                f"{path}: Minari cannot open this dataset ({error}); expected hdf5 or arrow data"
            ) from None
        self._layout = _Layout(self._storage.observation_space, str(path))
        if getattr(self._storage, "jpeg_encoding", True) and is_image_space(self._layout.image):
            raise InputError(
                f"{path}: grids of {self._layout.image.shape} are stored as JPEG, which changes their codes; "
                "expected jpeg_encoding=False: create the dataset again"
            )
        about = self._storage.metadata
        self._count = int(about["total_episodes"])
        if not self._count:
            raise InputError(f"{path}: no episodes; expected at least one trajectory")
        self.header = self._header(about)
        rows = int(about["total_steps"]) + self._count
        sizes = [self._layout.nbytes, _nbytes(self._storage.action_space)]
        self.capacity = total_bytes(2 * self._count, rows * sum(sizes))

    def demonstrations(self, role: Role | None, allocate: Allocate) -> Iterator[Demonstration]:
        """See `Source.demonstrations`."""
        for index in range(self._count):
            try:
                (episode,) = self._storage.get_episodes([index])
                (about,) = self._storage.get_episode_metadata([index])
            except Exception as error:  # as above
                raise InputError(
                    f"{self.path}: episode {index} is damaged ({error}); expected a whole dataset: write it again"
                ) from None
            yield self._demonstration(index, episode, about, role, allocate)

    def _demonstration(
        self,
        index: int,
        episode: Mapping[str, Any],
        about: Mapping[str, Any],
        role: Role | None,
        allocate: Allocate,
    ) -> Demonstration:
        where = f"{self.path}: episode {index}"
        ours = json.loads(about[KEY]) if KEY in about else {}
        try:
            states, text = self._layout.states(episode["observations"])
        except UnicodeDecodeError:
            raise InputError(f"{where}: an instruction that is not UTF-8; expected text: write it again") from None
        placed = allocate(states.shape, states.dtype)
        placed[...] = states
        steps = int(about["total_steps"])
        if len(states) != steps + 1:
            raise InputError(f"{where}: {len(states)} observations for {steps} steps; expected {steps + 1}")
        actions = episode["actions"]
        if ours.get("actions") is False or not isinstance(actions, np.ndarray):
            actions = None
        else:
            kept = allocate(actions.shape, actions.dtype)
            kept[...] = actions
            actions = kept
        infos = episode.get("infos") or {}
        log_probs = np.asarray(infos["log_prob"], np.float64)[:steps] if "log_prob" in infos else None
        rewards = None if ours.get("rewards") is False else np.asarray(episode["rewards"], np.float64)
        trajectory = build(
            placed,
            where,
            self.header.metadata.fields,
            actions=actions,
            extra_info=text,
            rewards=rewards,
            log_probs=log_probs,
            terminated=bool(np.any(episode["terminations"])),
            truncated=bool(np.any(episode["truncations"])),
        )
        goals = ours.get("goals")
        return Demonstration(
            trajectory,
            stated_role(role or ours.get("role") or self.header.role, where),
            str(ours.get("task", "default")),
            stated_split(ours.get("split"), where),
            None if goals is None else tuple(int(step) for step in goals),
        )

    def _header(self, about: Mapping[str, Any]) -> Header:
        if KEY in about:
            header = Header.from_json(str(about[KEY]), str(self.path))
            require_numbers(header.metadata.kind, str(self.path), "Minari")
            return header
        environment = ""
        if "env_spec" in about:
            environment = str(json.loads(about["env_spec"]).get("id", ""))
        label: LabelRule = "last" if self._layout.kind == "grid" else "all"
        return Header(Metadata(self._layout.kind, self._layout.fields, environment, label=label))


class _Layout:
    """How states lie in the observations of a dataset."""

    def __init__(self, space: Any, where: str) -> None:
        from gymnasium.spaces import Box, Dict, Text

        self.image: Any = None
        self.fields: tuple[str, ...] = ()
        self._boxes: list[str] = []
        self._text: str | None = None
        self._dict = isinstance(space, Dict)
        if isinstance(space, Dict):
            self._text = next((k for k in TEXT_KEYS if isinstance(space.spaces.get(k), Text)), None)
            if isinstance(space.spaces.get("image"), Box):
                self.image, self._boxes = space["image"], ["image"]
            else:
                self._boxes = sorted(k for k, s in space.spaces.items() if isinstance(s, Box) and len(s.shape) == 1)
                self.fields = tuple(f"{k}_{i}" for k in self._boxes for i in range(_width(space[k])))
            parts = [space[k] for k in self._boxes]
        else:
            parts = [space]
            if isinstance(space, Box) and len(space.shape) == 3:
                self.image = space
        if not parts or not all(isinstance(part, Box) for part in parts):
            raise InputError(
                f"{where}: observations of {space}; expected a Box of one dimension, a Box (h, w, 3) of "
                "integers, "
                "or a Dict of them"
            )
        self.kind: Any = "vector" if self.image is None else "grid"
        if self.kind == "vector" and any(len(part.shape or ()) != 1 for part in parts):
            raise InputError(f"{where}: observations of shape {parts[0].shape}; expected (n,) or (h, w, 3)")
        if len(self._boxes) == 1:
            self.fields = ()
        self.nbytes = sum(_nbytes(part) for part in parts)

    def states(self, observations: Any) -> tuple[NDArray[Any], str]:
        """States `(T+1, ...)` and instruction of one episode's observations."""
        if not self._dict:
            return np.asarray(observations), ""
        parts = [np.asarray(observations[name]) for name in self._boxes]
        states = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        texts = observations[self._text] if self._text is not None else []
        text = texts[0] if len(texts) else ""
        return states, text.decode() if isinstance(text, bytes) else str(text)


def _is_dataset(file: Path) -> bool:
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(about, dict) and "data_format" in about


def _width(space: Any) -> int:
    return int(space.shape[0])


def _nbytes(space: Any) -> int:
    shape, dtype = getattr(space, "shape", None), getattr(space, "dtype", None)
    return int(np.prod(shape or ())) * np.dtype(dtype or np.int64).itemsize
