"""Safe reading of HDF5 files from untrusted authors. Only data in the file itself are read.

The HDF5 library follows links into other files. It reads the data of an HDF5 dataset (an array) from any file that the
dataset names, and loads code for unknown filters (steps that pack data, such as compression). So this module checks
each object before it opens or reads the object.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.memory import Memory
from grace_irl.errors import InputError

SIGNATURE = b"GCOL\1\0\0\0"
"""First bytes of a global heap. HDF5 stores texts of variable length in such heaps."""

WINDOW = 64 << 20
"""Number of bytes of a file that `require_whole_heaps` searches at once. It must be a multiple of the page size."""

SUPERBLOCK = b"\x89HDF\r\n\x1a\n"
"""First bytes of a superblock, the header of an HDF5 file."""

_SIZES = {0: 13, 1: 13, 2: 9, 3: 9}
"""Map from the superblock's version to the offset of two bytes in the superblock. The first byte is the size of an
address in the file, and the second byte is the size of a length, in bytes. Both must be 8."""

_OBJECT = struct.Struct("<HHIQ")
"""Header of an object in a global heap: its index, reference count, reserved bytes and length in bytes."""


def require_whole_heaps(file: Path) -> None:
    """Check that the objects in each global heap of a file follow each other without gaps.

    In a damaged heap, the HDF5 library may search for ever for the next object.

    Raises:
        InputError: a damaged heap, or a file with a structure that h5py does not write.
    """
    again = "expected a whole file as h5py writes it: copy it again"
    try:
        with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            place = _SIZES.get(data[8], 0) if data[:8] == SUPERBLOCK else 0
            if data[place : place + 2] != b"\x08\x08":
                raise InputError(f"{file}: not readable as hdf5 (no superblock); {again}")
            for start in range(0, len(data), WINDOW):
                end = start + WINDOW + len(SIGNATURE) - 1  # a signature may begin in one window and end in the next
                at = data.find(SIGNATURE, start, end)
                while at >= 0:
                    if not _is_whole(data, at):
                        raise InputError(f"{file}: a heap of texts is damaged (at byte {at:,}); {again}")
                    at = data.find(SIGNATURE, at + 1, end)
                # Pages of the file count as memory of this process until the process releases them.
                data.madvise(mmap.MADV_DONTNEED, start, min(WINDOW, len(data) - start))
    except (OSError, ValueError, IndexError) as error:
        raise InputError(f"{file}: not readable as hdf5 ({error}); {again}") from None


def _is_whole(data: mmap.mmap, start: int) -> bool:
    """Whether the objects of the heap at `start` follow each other without gaps.

    A remainder at the end of the heap is allowed if it is too short for the header of an object.
    """
    (size,) = struct.unpack_from("<Q", data, start + 8) if start + 16 <= len(data) else (0,)
    end, at = start + size, start + 16
    if end > len(data):
        return False
    while at + _OBJECT.size <= end:
        number, _, _, length = _OBJECT.unpack_from(data, at)
        step = _OBJECT.size + -(-length // 8) * 8 if number else length
        if step < _OBJECT.size or at + step > end:
            return False
        at += step
    return True


FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}
"""Accepted HDF5 filters by number. All are part of h5py."""

UNPACKED = 1032
"""Maximum number of unpacked bytes per stored byte of a chunk: the maximum of gzip. HDF5 unpacks all stored bytes, even
if the file declares a smaller chunk."""

LONGEST_TEXT = 1 << 20
"""Maximum length in bytes of one text in an HDF5 dataset with texts of a fixed length."""

_AGAIN = "expected the data in the file itself: write the file again, or copy all data into one file"


class Hdf5File:
    """An open HDF5 file. Each object is checked before it is opened or read.

    Args:
        file: the file.
        memory: memory limit of the demonstration set.
        writer: name of the program that writes such files, for messages.

    Raises:
        InputError: not HDF5.
        ImportError: h5py is not installed.
    """

    def __init__(self, file: Path, memory: Memory, writer: str = "h5py") -> None:
        import h5py

        self._h5py: Any = h5py
        self._memory = memory
        self._writer = writer
        require_whole_heaps(file)
        try:
            self._file = h5py.File(file, "r")
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError(
                f"{file}: not readable as hdf5 ({_said(error)}); expected a whole file: copy it again"
            ) from None

    def names(self, path: tuple[str, ...], where: str) -> tuple[str, ...]:
        """The names in the group at `path`, in the order in which h5py lists them; () if there is no such group."""
        found = self.opened(path, where, missing=True)
        return tuple(found) if isinstance(found, self._h5py.Group) else ()

    def is_dataset(self, path: tuple[str, ...], where: str) -> bool:
        """Whether a path leads to a dataset (an array)."""
        return isinstance(self.opened(path, where, missing=True), self._h5py.Dataset)

    def attributes(self, path: tuple[str, ...], names: Sequence[str], where: str) -> dict[str, Any]:
        """The attributes `names` of the group at `path`: whole numbers and texts. Missing attributes are left out."""
        group, about = self.opened(path, where), dict[str, Any]()
        for name in names:
            if name in group.attrs:
                kept = group.attrs.get_id(name)
                if kept.shape != () or (
                    kept.dtype.kind not in "iu" and self._h5py.check_string_dtype(kept.dtype) is None
                ):
                    raise InputError(
                        f"{where}: attribute {name!r} is {kept.dtype} {kept.shape}; expected a whole number or text"
                    )
                about[name] = group.attrs[name]
        return about

    def shape(self, path: tuple[str, ...], where: str) -> tuple[int, ...]:
        """The shape of a dataset."""
        return tuple(int(side) for side in self._dataset(path, where).shape)

    def array(self, path: tuple[str, ...], where: str) -> NDArray[Any]:
        """The numbers of a dataset.

        Raises:
            InputError: not a dataset of numbers, or more numbers than the memory limit allows.
        """
        found = self._dataset(path, where)
        if found.dtype.kind not in "biuf" or not found.shape:
            raise InputError(f"{where}: {'/'.join(path)} is {found.dtype} of shape {found.shape}; expected numbers")
        self._memory.require(math.prod(found.shape) * found.dtype.itemsize, f"{where}: {'/'.join(path)}")
        return np.asarray(found[()])

    def texts(self, path: tuple[str, ...], where: str) -> list[str]:
        """The texts of a dataset.

        Raises:
            InputError: not a dataset of texts, or more texts than the memory limit allows.
        """
        found = self._dataset(path, where)
        about = self._h5py.check_string_dtype(found.dtype)
        if about is None or len(found.shape) != 1 or (about.length or 0) > LONGEST_TEXT:
            raise InputError(f"{where}: {'/'.join(path)} is {found.dtype} of shape {found.shape}; expected texts")
        self._memory.require(found.shape[0] * max(found.dtype.itemsize, 64), f"{where}: {'/'.join(path)}")
        return [text.decode() if isinstance(text, bytes) else str(text) for text in found[:].tolist()]

    def _dataset(self, names: tuple[str, ...], where: str) -> Any:
        found = self.opened(names, where)
        if not isinstance(found, self._h5py.Dataset):
            raise InputError(f"{where}: {'/'.join(names)} is a group; expected a dataset")
        self._check(found, f"{where}: {'/'.join(names)}")
        return found

    def opened(self, names: tuple[str, ...], where: str, *, missing: bool = False) -> Any:
        """The object at a path in the file. All links on the path must be hard links, which stay in the file.

        Args:
            names: path from the root of the file.
            where: file or data set, and episode, for messages.
            missing: whether to return None if a group on the path lacks the next name, instead of raising an error.

        Raises:
            InputError: a missing object, or a link that is no hard link.
        """
        found: Any = self._file
        for name in names:
            if "/" in name or name in ("", ".") or not isinstance(found, self._h5py.Group):
                raise InputError(
                    f"{where}: no {name[:80]!r} in {found.name}; expected what {self._writer} writes: write it again"
                )
            link = found.get(name, getlink=True)
            if link is None:
                if missing:
                    return None
                raise InputError(f"{where}: no {name[:80]!r} in {found.name}; expected a whole dataset: write it again")
            if not isinstance(link, self._h5py.HardLink):
                to = getattr(link, "filename", "") or "another place"
                raise InputError(f"{where}: {found.name}/{name} is a link to {str(to)[:200]!r}; {_AGAIN}")
            found = found[name]
        return found

    def _check(self, dataset: Any, where: str) -> None:
        """Check that the data of an HDF5 dataset lie in this file and need only the filters of `FILTERS`.

        Raises:
            InputError: data in another file, another filter, or a compressed chunk that may unpack to more than the
                memory limit.
        """
        made = dataset.id.get_create_plist()
        if made.get_external_count():
            name = made.get_external(0)[0]
            raise InputError(f"{where}: its data lie in {name[:200].decode(errors='replace')!r}; {_AGAIN}")
        if made.get_layout() == self._h5py.h5d.VIRTUAL:
            raise InputError(f"{where}: a virtual dataset, whose data lie in other files; {_AGAIN}")
        numbers = [made.get_filter(position)[0] for position in range(made.get_nfilters())]
        unknown = next((number for number in numbers if number not in FILTERS), None)
        if unknown is not None:
            raise InputError(
                f"{where}: filter {unknown}; expected none, or {', '.join(FILTERS.values())}: write it again"
            )
        if numbers and made.get_layout() == self._h5py.h5d.CHUNKED:
            chunk = math.prod(dataset.chunks) * dataset.dtype.itemsize
            stored: list[int] = [0]
            dataset.id.chunk_iter(lambda info: stored.append(info.size))
            self._memory.require(max(chunk, UNPACKED * max(stored)), f"{where}: a compressed chunk")


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:160]
