"""Reader for Minari datasets in hdf5, arrow and parquet. The user names the folder of a dataset, or its Minari id.

The observation space determines the kind of the states:

- a `Box` of one dimension: vectors;
- a `Box` (h, w, 3) of integers: grids or images;
- a `Dict` whose only `Box` is `image`: the same states as for that `Box` alone;
- a `Dict` with only a one-dimensional `Box`, and perhaps an instruction: vectors;
- any other `Dict`: records, which are states with named parts. If the user chooses vectors (`--kind`), the
  one-dimensional boxes are joined in the order of their names.

The text of a part such as `mission` becomes the instruction of the trajectory (`layout.TEXT_KEYS` lists such names).

The reader downloads nothing, follows no link out of the folder, and creates no environment, space or object that a
dataset describes. The library Minari may do these things, so the reader does not use that library.
"""

from __future__ import annotations

import json
import os
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from grace_irl.contents import require_inside
from grace_irl.demos.header import KEY, Header, require_numbers
from grace_irl.demos.memory import Memory
from grace_irl.demos.minari.layout import TEXT_KEYS, Layout, box_of, described
from grace_irl.demos.source import build, one_text, unicode_text
from grace_irl.demos.spelling import Spelling
from grace_irl.demos.trajectory import Demonstration, Metadata, Role, stated_role, stated_split
from grace_irl.demos.ui.texts import MAX_BYTES, read_json
from grace_irl.errors import InputError
from grace_irl.states.kind import Allocate
from grace_irl.states.texts import pack
from grace_irl.toml import from_json

MOST = 1 << 40
"""Exclusive upper limit on the number of episodes in the metadata of a dataset."""

NO_ACTIONS = ("Dict", "Tuple", "Text")
"""Types of action spaces whose actions do not form an array of numbers. Such actions are left out."""


def dataset_folder(path: str | Path) -> Path | None:
    """The data folder of a Minari dataset with this path or id, or None if there is no such dataset."""
    candidates = [Path(path)]
    if not Path(path).is_absolute():
        candidates.append(datasets_root() / path)
    for folder in candidates:
        for data in (folder / "data", folder):
            if _is_dataset(data / "metadata.json"):
                return data
    return None


def datasets_root() -> Path:
    """The folder of Minari's datasets, from the environment variable MINARI_DATASETS_PATH or ~/.minari/datasets."""
    named = os.environ.get("MINARI_DATASETS_PATH")
    return Path(named) if named else Path.home() / ".minari" / "datasets"


class Episodes(Protocol):
    """The episodes of a dataset. A path to a part of an episode is a tuple, such as `("observations", "image")`."""

    def about(self, index: int, where: str) -> Mapping[str, Any]:
        """The attributes of an episode, such as `total_steps`. grace-irl's own writer adds one under the name `KEY`."""
        ...

    def array(self, index: int, names: tuple[str, ...], shape: tuple[int, ...] | None, where: str) -> NDArray[Any]:
        """The numbers of a part of an episode, with one row per state or step.

        Args:
            index: index of the episode.
            names: path of the part.
            shape: shape of one row; None if the dataset does not state the shape.
            where: dataset and episode, for messages.

        Raises:
            InputError: no numbers under this path, or numbers in a file that is not part of the dataset.
        """
        ...

    def texts(self, index: int, names: tuple[str, ...], where: str) -> list[str]:
        """The texts of a part of an episode, one per state.

        Args:
            index: index of the episode.
            names: path of the part.
            where: dataset and episode, for messages.

        Raises:
            InputError: no texts under this path, or texts in a file that is not part of the dataset.
        """
        ...

    def holds(self, index: int, names: tuple[str, ...], where: str) -> bool:
        """Whether an episode has this part, and the part holds data instead of further parts."""
        ...


def instructed_source(dataset: Any, memory: Memory, kind: str) -> MinariSource | None:
    """The episodes of a dataset object of the library Minari, if a part of its observations is the instruction.

    The episodes are those of the dataset's id. If the dataset was filtered, only the chosen episodes are read.

    Args:
        dataset: any object.
        memory, kind: as for `MinariSource`.

    Returns:
        None for any other object, and for a dataset without an instruction.

    Raises:
        InputError: the dataset cannot be used.
    """
    parts = getattr(getattr(dataset, "observation_space", None), "spaces", {})
    folder = getattr(getattr(dataset, "storage", None), "data_path", None)
    if folder is None or not any(type(parts.get(name)).__name__ == "Text" for name in TEXT_KEYS):
        return None
    return MinariSource(Path(folder).parent, Path(folder), memory, kind, dataset.episode_indices.tolist())


class MinariSource:
    """An open Minari dataset, with the interface of `grace_irl.demos.source.Source`.

    Args:
        path: path or id from the caller, for messages.
        folder: data folder of the dataset.
        memory: memory limit of the whole set of demonstrations, which may have other files, too.
        kind: name of the kind of states in a `Dict` space, such as "grid"; "" to choose the kind by the parts of the
            `Dict`. This argument is ignored if the dataset has grace-irl's header, which names the kind.
        chosen: indices of the episodes to read; None reads all episodes.

    Raises:
        InputError: a library for the dataset's format is not installed, or the dataset cannot be used.
    """

    def __init__(
        self, path: Path, folder: Path, memory: Memory, kind: str = "", chosen: Sequence[int] | None = None
    ) -> None:
        self.path = path
        # The user trusts only the folder that they named. If its subfolder `data` is a link to another folder, the
        # metadata lie outside the named folder, and are refused. If the user named the folder `data` itself, they trust
        # this folder.
        named = folder.parent if folder.name == "data" and folder.parent.resolve() != path.resolve().parent else folder
        require_inside(folder / "metadata.json", named)
        about = read_json(folder / "metadata.json", memory)
        if not isinstance(about, dict):
            raise InputError(
                f"{path}: metadata.json holds no JSON object; expected the file that Minari writes: write the dataset "
                "again"
            )
        stated = self._stated(about)
        kind = kind if stated is None else stated.metadata.kind
        self._layout = Layout(about.get("observation_space"), str(path), kind)
        self._spelling = Spelling(self._layout.kind, memory)
        self._actions = described(about.get("action_space"), "action_space", str(path))
        if about.get("jpeg_encoding", True) and any(box.image for box in self._layout.boxes.values()):
            shape = next(iter(self._layout.boxes.values())).shape
            raise InputError(
                f"{path}: states of {shape} are stored as JPEG, which changes their values; "
                "expected jpeg_encoding=False: create the dataset again"
            )
        self._count = _count(about.get("total_episodes"), f"{path}: total_episodes")
        self._chosen = range(self._count) if chosen is None else chosen
        if not len(self._chosen):
            raise InputError(f"{path}: no episodes; expected at least one trajectory")
        self.header = self._guessed(about) if stated is None else stated
        if self._actions.get("type") in NO_ACTIONS:
            said = f"{path}: left out: actions of a {self._actions['type']} space (expected a Box or whole numbers)"
            self.header = replace(self.header, notes=(*self.header.notes, said))
        self._action_shape = box_of(self._actions, str(path)).shape if self._actions.get("type") == "Box" else None
        self._episodes = self._opened(str(about.get("data_format")), folder, memory)

    def demonstrations(self, role: Role | None, allocate: Allocate) -> Iterator[Demonstration]:
        """See `Source.demonstrations`."""
        for index in self._chosen:
            where = f"{self.path}: episode {index}"
            with _whole(where):
                demonstration = self._demonstration(index, where, role, allocate)
            yield demonstration

    def _opened(self, format: str, folder: Path, memory: Memory) -> Episodes:
        try:
            if format == "hdf5":
                from grace_irl.demos.minari.hdf5 import Hdf5Episodes

                file = folder / "main_data.hdf5"
                require_inside(file, folder)
                if not file.is_file():
                    raise InputError(f"{self.path}: no file main_data.hdf5; expected a whole dataset: copy it again")
                return Hdf5Episodes(file, memory)
            if format in ("arrow", "parquet"):
                from grace_irl.demos.minari.arrow import ArrowEpisodes

                return ArrowEpisodes(folder, memory, parquet=format == "parquet")
        except ImportError as error:
            raise InputError(
                f"{self.path}: a Minari dataset, and {error.name} is not installed; "
                "install the extra, pip install 'grace-irl[minari]'"
            ) from None
        raise InputError(f"{self.path}: data in the format {format[:40]!r}; expected hdf5 or arrow data")

    def _demonstration(self, index: int, where: str, role: Role | None, allocate: Allocate) -> Demonstration:
        episodes = self._episodes
        about = episodes.about(index, where)
        ours = from_json(_Ours, about[KEY]) if KEY in about else _Ours()
        steps = int(about["total_steps"])
        parts: dict[str, NDArray[Any]] = {}
        for name, box in self._layout.boxes.items():
            part = episodes.array(
                index, ("observations", *name.split("/")) if name else ("observations",), box.shape, where
            )
            if len(part) != steps + 1:
                raise InputError(f"{where}: {len(part)} observations for {steps} steps; expected {steps + 1}")
            if part.shape[1:] != box.shape:
                raise InputError(
                    f"{where}: observations of shape {part.shape[1:]}; expected {box.shape}, as the space says"
                )
            parts[name] = part
        for name in self._layout.texts:
            texts = episodes.texts(index, ("observations", *name.split("/")), where)
            if len(texts) != steps + 1:
                raise InputError(f"{where}: {len(texts)} texts for {steps} steps; expected {steps + 1}")
            parts[name] = pack(self._spelling.texts(texts, where))
        kind, states = self._layout.kind, self._layout.whole(parts)
        placed = {name: allocate(part.shape, part.dtype) for name, part in kind.parts(states).items()}
        for name, part in kind.parts(states).items():
            placed[name][...] = part
        named = self._layout.text
        said = [] if named is None else episodes.texts(index, ("observations", named), where)
        ends = {
            name: episodes.array(index, (name,), None, where) for name in ("rewards", "terminations", "truncations")
        }
        log_probs = None
        if episodes.holds(index, ("infos", "log_prob"), where):
            log_probs = episodes.array(index, ("infos", "log_prob"), None, where).reshape(-1)[:steps].astype(np.float64)
        trajectory = build(
            kind.whole(placed),
            where,
            self.header.metadata.fields,
            kind=self.header.metadata.kind,
            actions=self._placed_actions(index, steps, where, allocate) if ours.actions else None,
            extra_info=one_text(said, named or "", where) or "",
            rewards=ends["rewards"].astype(np.float64) if ours.rewards else None,
            log_probs=log_probs,
            terminated=bool(ends["terminations"].any()),
            truncated=bool(ends["truncations"].any()),
        )
        return Demonstration(
            trajectory,
            stated_role(role or ours.role or self.header.role, where),
            unicode_text(ours.task, where),
            stated_split(ours.split, where),
            ours.goals,
        )

    def _placed_actions(self, index: int, steps: int, where: str, allocate: Allocate) -> NDArray[Any] | None:
        """The actions of an episode in an array from `allocate`; None for actions of a space in `NO_ACTIONS`."""
        if self._actions.get("type") in NO_ACTIONS:
            return None
        actions = self._episodes.array(index, ("actions",), self._action_shape, where)
        if len(actions) != steps:
            raise InputError(f"{where}: actions of shape {actions.shape} for {steps} steps; expected one for each")
        kept = allocate(actions.shape, actions.dtype)
        kept[...] = actions
        return kept

    def _stated(self, about: Mapping[str, Any]) -> Header | None:
        """The header that grace-irl wrote, or None if another program wrote the dataset."""
        if KEY not in about:
            return None
        header = Header.from_json(str(about[KEY]), str(self.path))
        require_numbers(header.metadata.state_kind, str(self.path), "Minari")
        return header

    def _guessed(self, about: Mapping[str, Any]) -> Header:
        environment = ""
        with suppress(KeyError, ValueError, TypeError, AttributeError, RecursionError):
            # Only the environment's name is read. Creating the environment would run code that the dataset names.
            environment = str(json.loads(about["env_spec"])["id"])
        metadata = Metadata(self._layout.kind.name, self._layout.fields, environment)
        return Header(metadata, kinds=self._layout.kinds)


@dataclass(frozen=True)
class _Ours:
    """Attributes that grace-irl's own writer adds to each episode.

    Attributes:
        role: role of the episode, or None.
        task: name of the task.
        split: "train", "validation", "held_out" or None.
        goals: 0-based indices of the goal states, or None.
        actions: whether the trajectory has actions. If not, the stored actions are placeholders that Minari requires.
        rewards: whether the trajectory has rewards. If not, the stored rewards are placeholders that Minari requires.
    """

    role: str | None = None
    task: str = "default"
    split: str | None = None
    goals: tuple[int, ...] | None = None
    actions: bool = True
    rewards: bool = True


@contextmanager
def _whole(where: str) -> Iterator[None]:
    """Turn errors of h5py and Arrow about damaged files into an `InputError` that names the episode.

    Raises:
        InputError: the episode cannot be read.
    """
    try:
        yield
    except (InputError, MemoryError):
        raise
    except UnicodeDecodeError:
        raise InputError(f"{where}: an instruction that is not UTF-8; expected text: write it again") from None
    except Exception as error:  # KeyError, OSError, RuntimeError, ValueError, ArrowInvalid and others
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(f"{where} is damaged ({reason}); expected a whole dataset: write it again") from None


def _count(value: object, what: str) -> int:
    if type(value) is not int or not 0 <= value < MOST:
        raise InputError(
            f"{what} is {reprlib.repr(value)}; expected a whole number from 0 to {MOST - 1:,}: write the dataset again"
        )
    return value


def _is_dataset(file: Path) -> bool:
    """Whether a file looks like the metadata of a dataset: it contains the key `data_format`.

    The file is not parsed, because its size has not been checked against the memory limit yet.
    """
    if not file.is_file():
        return False
    try:
        with file.open("rb") as opened:
            return b'"data_format"' in opened.read(MAX_BYTES)
    except OSError:
        return False
