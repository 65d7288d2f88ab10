"""Writer for Minari datasets in hdf5 or arrow. It uses the library Minari."""

from __future__ import annotations

import errno
import json
import os
import shutil
import string
import tempfile
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np

from grace_irl.demos.header import KEY, require_numbers
from grace_irl.demos.minari.layout import PICTURE
from grace_irl.demos.minari.source import datasets_root
from grace_irl.demos.source import SetWriter
from grace_irl.demos.trajectory import Demonstration, Metadata
from grace_irl.errors import InputError
from grace_irl.states.grid import GRID

BUFFERED_STATES, BUFFERED_BYTES = 50_000, 256 << 20
"""Limits on the states that are collected in memory before a write: their number, and their size in bytes."""

EPISODE_BYTES = 64 << 10
"""Free space in bytes that the writer requires for each episode, beside twice the size of its states."""

MISSION = "mission"
"""Name of the observation part with the instruction."""

IMAGES = {GRID.name: PICTURE}
"""Map from a kind of states to the observation part that holds the states. Datasets of these kinds always have a part
for the instruction, even if all instructions are empty."""

MAX_MISSION = 4096
"""Maximum length of an instruction in characters. Minari's text space needs a bound."""


class MinariWriter(SetWriter):
    """A writer of a Minari dataset. It writes to a temporary folder and moves the complete dataset to its place.

    The kind of the states determines the observation space of Gymnasium:

    - grids: `Dict(image, mission)`;
    - vectors and images: a `Box`, or `Dict(mission, observation)` with instructions;
    - records (states with named parts): a `Dict` of the parts, and the instruction if there is any.

    The trajectories of the first write (see `BUFFERED_STATES`) decide whether the dataset has instructions.

    Minari's JPEG encoding changes values, so it is not used.

    Args:
        target: id such as `babyai/go-to-obj/expert-v0` (under MINARI_DATASETS_PATH), or path of a folder whose name
            ends in -vN.
        metadata: metadata of the set.
        data_format: storage format of Minari.

    Raises:
        InputError: Minari is not installed, the states are screens, the name is not a valid id, or the dataset exists.
    """

    def __init__(self, target: str, metadata: Metadata, data_format: Literal["hdf5", "arrow"] = "hdf5") -> None:
        require_numbers(metadata.state_kind, target, "Minari")
        try:
            import minari
            from minari.dataset.minari_dataset import parse_dataset_id
        except ImportError as error:
            raise InputError(
                f"{target}: {error.name} is not installed; install the extra, pip install 'grace-irl[minari]'"
            ) from None
        self._minari: Any = minari
        path = Path(target)
        is_path = path.is_absolute() or target.startswith((".", "~"))
        super().__init__(path.expanduser() if is_path else datasets_root() / target, metadata)
        self._id = path.name if is_path else target
        try:
            if parse_dataset_id(self._id)[2] is None:
                raise ValueError("no version")
        except (ValueError, TypeError):
            raise InputError(
                f"{target}: not a Minari id; expected (namespace/)name-vN, such as babyai/expert-v0"
            ) from None
        if self._place.exists():
            raise InputError(f"{target}: exists already; expected a new dataset: raise the version or remove it")
        self._format = data_format
        self._pending: list[Demonstration] = []
        self._pending_states = self._pending_bytes = 0
        self._with_text = False
        self._actions: Any = None
        self._dataset: Any = None
        self._root: Path | None = None

    def _append(self, demonstration: Demonstration, where: str) -> None:
        trajectory = demonstration.trajectory
        if len(trajectory.extra_info) > MAX_MISSION:
            raise InputError(f"{where}: an instruction of over {MAX_MISSION} characters; expected a shorter one")
        if not trajectory.num_steps:
            raise InputError(
                f"{where}: a trajectory of one state and no step; Minari holds steps: expected a .parquet file"
            )
        shape = self._header.header().shape
        if None in shape:
            raise InputError(
                f"{where}: a state of shape {trajectory.state_kind.shape(trajectory.states)} after others; Minari "
                "holds one shape: expected a .parquet file"
            )
        self._pending.append(demonstration)
        self._pending_states += len(trajectory.states)
        self._pending_bytes += trajectory.state_kind.nbytes(trajectory.states)
        if self._pending_states >= BUFFERED_STATES or self._pending_bytes >= BUFFERED_BYTES:
            self._flush()

    def _finish(self, header: str) -> None:
        self._flush()
        self._dataset.storage.update_metadata({KEY: header})

    def _discard(self) -> None:
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)

    def _flush(self) -> None:
        if not self._pending:
            return
        self._require_room()
        if self._dataset is None:
            instructed = any(item.trajectory.extra_info for item in self._pending)
            self._with_text = instructed or self._metadata.kind in IMAGES
            self._actions = self._action_space()
        buffers = [self._buffer(item) for item in self._pending]
        first = 0 if self._dataset is None else int(self._dataset.storage.total_episodes)
        if self._dataset is None:
            self._create(buffers)
        else:
            self._dataset.update_dataset_from_buffer(buffers)
        about = [{KEY: json.dumps(_episode_metadata(item))} for item in self._pending]
        self._dataset.storage.update_episode_metadata(about, range(first, first + len(about)))
        self._pending.clear()
        self._pending_states = self._pending_bytes = 0

    def _require_room(self) -> None:
        """Check that the disk has room for the pending trajectories. On a full disk, h5py ends the process.

        Raises:
            OSError: the disk has too little room.
        """
        place = next(each for each in self._place.absolute().parents if each.exists())
        if shutil.disk_usage(place).free < 2 * self._pending_bytes + EPISODE_BYTES * len(self._pending):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _create(self, buffers: list[Any]) -> None:
        self._place.parent.mkdir(parents=True, exist_ok=True)
        self._root = Path(tempfile.mkdtemp(prefix=".grace-irl-", dir=self._place.parent))
        before = os.environ.get("MINARI_DATASETS_PATH")
        os.environ["MINARI_DATASETS_PATH"] = str(self._root)
        spaces = {"observation_space": self._observation_space(), "action_space": self._actions}
        try:
            with warnings.catch_warnings():  # warnings about missing authors, links and environments
                warnings.simplefilter("ignore", UserWarning)
                self._dataset = self._minari.create_dataset_from_buffers(
                    self._id,
                    buffers,
                    description=f"Demonstrations in {self._metadata.environment or 'an unnamed environment'}.",
                    data_format=self._format,
                    jpeg_encoding=False,
                    **spaces,
                )
        finally:
            if before is None:
                del os.environ["MINARI_DATASETS_PATH"]
            else:
                os.environ["MINARI_DATASETS_PATH"] = before

    def _publish(self) -> None:
        """Move the dataset to its place, and copy the metadata files that Minari writes for new namespaces."""
        assert self._root is not None
        for namespace in Path(self._id).parents:
            about = self._root / namespace / "namespace_metadata.json"
            place = self._place.parents[len(Path(self._id).parts) - len(namespace.parts) - 1] / about.name
            if about.exists() and not place.exists():
                shutil.copy(about, place)
        os.replace(self._root / self._id, self._place)

    def _observation_space(self) -> Any:
        from gymnasium.spaces import Box, Text

        mission = Text(MAX_MISSION, min_length=0, charset=string.printable)
        trajectory = self._pending[0].trajectory
        spaces: dict[str, Any] = {}
        for part in trajectory.state_kind.layout(trajectory.states):
            if part.is_text:
                spaces[part.name] = Text(MAX_MISSION, min_length=0, charset=string.printable)
                continue
            dtype: Any = np.dtype(part.dtype).type
            whole = np.issubdtype(dtype, np.integer)
            low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if whole else (-np.inf, np.inf)
            spaces[part.name] = Box(low, high, part.shape, dtype)
        nested = _nested(self._named(spaces, mission))
        return nested if isinstance(nested, Box) else _space(nested)

    def _named(self, parts: dict[str, Any], mission: Any) -> dict[str, Any]:
        """Name the parts of an observation as Minari's datasets do. Add the instruction if the dataset stores one.

        Args:
            parts: spaces or arrays by the name of the part.
            mission: space or values of the instruction.
        """
        if not self._with_text:
            return parts
        if list(parts) == [""]:
            return {IMAGES.get(self._metadata.kind, "observation"): parts[""], MISSION: mission}
        if MISSION in parts or any(name.startswith(f"{MISSION}/") for name in parts):
            raise InputError(f"{self._place}: a part named {MISSION!r} beside instructions; expected another name")
        return parts | {MISSION: mission}

    def _action_space(self) -> Any:
        from gymnasium.spaces import Box, Discrete

        every = [item.trajectory.actions for item in self._pending if item.trajectory.actions is not None]
        every = every or [np.zeros(1, np.int64)]
        if every[0].ndim == 1 and every[0].dtype.kind in "iu":
            # Zero is always in the space, because `_buffer` writes zeros in place of missing actions.
            least = min(int(each.min(initial=0)) for each in every)
            most = max(int(each.max(initial=0)) for each in every)
            return Discrete(most - least + 1, start=least)
        return Box(-np.inf, np.inf, every[0].shape[1:], every[0].dtype.type)

    def _buffer(self, demonstration: Demonstration) -> Any:
        from gymnasium.spaces import Discrete
        from minari.data_collector.episode_buffer import EpisodeBuffer

        trajectory = demonstration.trajectory
        states, steps = trajectory.states, trajectory.num_steps
        if trajectory.extra_info and not self._with_text:
            raise InputError(
                f"{trajectory.source or self._place}: an instruction after trajectories without any; Minari fixes the "
                "parts of a state at the start: put a trajectory with an instruction first"
            )
        kind = trajectory.state_kind
        texts = {part.name for part in kind.layout(states) if part.is_text}
        parts = {
            name: [text.decode() for text in array.tolist()] if name in texts else array
            for name, array in kind.parts(states).items()
        }
        observations: Any = _nested(self._named(parts, [trajectory.extra_info] * len(states)))
        actions, space = trajectory.actions, self._actions
        if actions is None:
            actions = np.zeros((steps, *space.shape), space.dtype)
        if isinstance(space, Discrete) and not all(map(space.contains, (actions.min(), actions.max()))):
            raise InputError(
                f"{trajectory.source or self._place}: actions from {actions.min()} to {actions.max()} after a space "
                f"{space}; Minari fixes the space at the start: put the smallest and the largest action first"
            )
        ends = np.arange(steps) == steps - 1
        infos = None
        if trajectory.log_probs is not None:
            # A list, because Minari cannot read back a flat array that it wrote in arrow.
            infos = {"log_prob": [*trajectory.log_probs.tolist(), float("nan")]}
        return EpisodeBuffer(
            observations=observations,
            actions=actions,
            rewards=list(np.zeros(steps) if trajectory.rewards is None else trajectory.rewards),
            terminations=list(ends & trajectory.terminated),
            truncations=list(ends & trajectory.truncated),
            infos=infos,
        )


def _nested(parts: dict[str, Any]) -> Any:
    """Nest the parts in dicts: `obs/goal` becomes `{"obs": {"goal": …}}`. If a part is named "", return this part."""
    if "" in parts:
        return parts[""]
    found: dict[str, Any] = {}
    for name, part in parts.items():
        *outer, last = name.split("/")
        inside = found
        for piece in outer:
            inside = inside.setdefault(piece, {})
        inside[last] = part
    return found


def _space(nested: dict[str, Any]) -> Any:
    from gymnasium.spaces import Dict

    return Dict({name: _space(each) if isinstance(each, dict) else each for name, each in nested.items()})


def _episode_metadata(demonstration: Demonstration) -> dict[str, Any]:
    """Facts about an episode for which Minari has no field. The writer stores them as an attribute of the episode."""
    trajectory = demonstration.trajectory
    return {
        "role": demonstration.role,
        "task": demonstration.task,
        "split": demonstration.split,
        "goals": demonstration.goals,
        "actions": trajectory.actions is not None,
        "rewards": trajectory.rewards is not None,
    }
