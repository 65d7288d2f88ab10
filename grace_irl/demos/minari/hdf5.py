"""The episodes of a Minari dataset in hdf5.

Only the objects that trajectories need are opened. In the group `infos`, only `log_prob` is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from grace_irl.demos.hdf5 import Hdf5File
from grace_irl.demos.memory import Memory


class Hdf5Episodes:
    """The episodes of a dataset in hdf5 (see `Episodes`).

    Args:
        file: the dataset's `main_data.hdf5`.
        memory: memory limit of the demonstration set.

    Raises:
        InputError: the file is not HDF5.
        ImportError: h5py is not installed.
    """

    def __init__(self, file: Path, memory: Memory) -> None:
        self._file = Hdf5File(file, memory, "Minari")

    def about(self, index: int, where: str) -> Mapping[str, Any]:
        """See `Episodes.about`."""
        return self._file.attributes((f"episode_{index}",), ("total_steps", "grace_irl"), where)

    def array(self, index: int, names: tuple[str, ...], shape: tuple[int, ...] | None, where: str) -> NDArray[Any]:
        """See `Episodes.array`."""
        del shape  # an hdf5 file contains the shape
        return self._file.array((f"episode_{index}", *names), where)

    def texts(self, index: int, names: tuple[str, ...], where: str) -> list[str]:
        """See `Episodes.texts`."""
        return self._file.texts((f"episode_{index}", *names), where)

    def holds(self, index: int, names: tuple[str, ...], where: str) -> bool:
        """See `Episodes.holds`."""
        return self._file.is_dataset((f"episode_{index}", *names), where)
