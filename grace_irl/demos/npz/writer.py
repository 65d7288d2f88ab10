"""Writer of npz archives that `source.py` reads, in the plain layout or in the layout of the library `imitation`."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.header import KEY, require_numbers
from grace_irl.demos.npz.source import IMITATION, PART
from grace_irl.demos.source import SetWriter
from grace_irl.demos.trajectory import Demonstration, Metadata
from grace_irl.errors import InputError

THEIR_NAME = {plain: theirs for theirs, plain in IMITATION.items()}
STEP_ARRAYS = ("actions", "rewards", "log_probs")


class NpzWriter(SetWriter):
    """A writer of npz archives.

    Rows are collected in temporary files, because the header of an array precedes the rows and contains their number.

    Args:
        path: the archive.
        metadata: metadata of the set.
        imitation: whether to write the layout that `imitation.data.serialize.load` reads. Each entry of `infos` is
            then the text "{}" instead of a pickle.

    Raises:
        InputError: the states are screens.
    """

    def __init__(self, path: Path, metadata: Metadata, *, imitation: bool = False) -> None:
        require_numbers(metadata.state_kind, str(path), "npz")
        self._kind = metadata.state_kind
        super().__init__(path, metadata)
        self._imitation = imitation
        self._spools: dict[str, _Spool] = {}
        self._present: tuple[str, ...] | None = None
        self._lengths: list[int] = []
        self._episodes: dict[str, list[Any]] = {}
        self._words: dict[str, list[str]] = {}

    def _append(self, demonstration: Demonstration, where: str) -> None:
        trajectory = demonstration.trajectory
        if demonstration.goals is not None:
            raise InputError(f"{where}: goal states are marked, which npz cannot hold; expected a .parquet file")
        if self._imitation and trajectory.actions is None:
            raise InputError(f"{where}: no actions, which imitation's layout needs; expected .npz or .parquet")
        parts = {name: getattr(trajectory, name) for name in STEP_ARRAYS}
        present = tuple(name for name, values in parts.items() if values is not None)
        if self._present not in (None, present):
            raise InputError(
                f"{where}: has {', '.join(present) or 'states only'} after trajectories with "
                f"{', '.join(self._present or ()) or 'states only'}; expected all alike: convert them apart"
            )
        self._present = present
        steps = trajectory.num_steps
        layout = {part.name: part for part in self._kind.layout(trajectory.states)}
        if self._imitation and list(layout) != [""]:
            raise InputError(f"{where}: {self._kind.plural}, which imitation's layout cannot hold; expected .npz")
        for name, array in self._kind.parts(trajectory.states).items():
            keep = self._texts if layout[name].is_text else self._spool
            suffix = f"{PART}{name}" if name else ""
            if self._imitation:
                keep("observations", array, where)
            else:
                keep(f"observations{suffix}", array[:steps], where)
                keep(f"final_observations{suffix}", array[steps:], where)
        for name in present:
            self._spool(name, parts[name], where)
        self._lengths.append(steps)
        for name, value in (
            ("instructions", trajectory.extra_info),
            ("tasks", demonstration.task),
            ("roles", demonstration.role),
            ("splits", demonstration.split or ""),
            ("terminal" if self._imitation else "terminated", trajectory.terminated),
            ("truncated", trajectory.truncated),
        ):
            self._episodes.setdefault(name, []).append(value)

    def _texts(self, name: str, values: NDArray[Any], where: str) -> None:
        del where
        self._words.setdefault(name, []).extend(value.decode() for value in values.tolist())

    def _spool(self, name: str, values: NDArray[Any], where: str) -> None:
        spool = self._spools.get(name)
        if spool is None:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            spool = self._spools[name] = _Spool(self._place.parent, values)
        spool.add(name, values, where)

    def _finish(self, header: str) -> None:
        small: dict[str, NDArray[Any]] = {name: np.array(values) for name, values in self._episodes.items()}
        small |= {name: np.array(texts, np.str_) for name, texts in self._words.items()}
        small[KEY] = np.array(header)
        if self._imitation:
            small["indices"] = np.cumsum(self._lengths[:-1], dtype=np.int64)
            small["infos"] = np.full(sum(self._lengths), "{}")
        else:
            small["episode_lengths"] = np.array(self._lengths, np.int64)
        with zipfile.ZipFile(self._part, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, spool in self._spools.items():
                theirs = THEIR_NAME.get(name, name) if self._imitation else name
                with archive.open(f"{theirs}.npy", "w", force_zip64=True) as stream:
                    spool.write(stream)
            for name, values in small.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, values, allow_pickle=False)

    def _discard(self) -> None:
        for spool in self._spools.values():
            with suppress(OSError):
                spool.file.close()
        super()._discard()


class _Spool:
    """A temporary file that stores the rows of one array until the archive is written.

    Args:
        folder: folder of the temporary file.
        like: rows with the dtype and the row shape of the array.
    """

    def __init__(self, folder: Path, like: NDArray[Any]) -> None:
        self.file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by the writer
        self._rows = 0
        self._shape = like.shape[1:]
        self._dtype = like.dtype

    def add(self, name: str, values: NDArray[Any], where: str) -> None:
        """Append rows.

        Raises:
            InputError: rows of another shape, or of a dtype that cannot be cast safely.
        """
        if values.shape[1:] != self._shape or not np.can_cast(values.dtype, self._dtype, "safe"):
            raise InputError(
                f"{where}: {name} of shape {values.shape[1:]} and {values.dtype} after {self._shape} and "
                f"{self._dtype}; npz holds one shape: expected a .parquet file"
            )
        self.file.write(np.ascontiguousarray(values, self._dtype).data)
        self._rows += len(values)

    def write(self, stream: Any) -> None:
        """Write the whole array in npy format."""
        descr = np.lib.format.dtype_to_descr(self._dtype)
        shape = (self._rows, *self._shape)
        np.lib.format.write_array_header_2_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
        self.file.seek(0)
        shutil.copyfileobj(self.file, stream)
