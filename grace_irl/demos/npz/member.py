"""One array of an npz archive, which is known by its size before it is unpacked."""

from __future__ import annotations

import lzma
import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.memory import Memory
from grace_irl.errors import InputError

DAMAGED: tuple[type[Exception], ...] = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, RuntimeError, TypeError, KeyError),
    *(SyntaxError, tokenize.TokenError, OverflowError, struct.error),
)
"""Errors of numpy and zipfile for archives that are cut, encrypted or not archives; numpy parses headers as Python."""

MAX_DIMENSIONS = 16
"""Of an array. A grid has four."""

PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compression methods of numpy. Others may unpack to a thousand times as much, or need a dictionary of gigabytes."""

MAX_DEFLATE = 1032
"""Bytes that one byte of DEFLATE may stand for, at most (zlib.net/zlib_tech.html)."""


class Member:
    """One array of an archive, read row by row, so that it never lies in memory whole.

    What the archive and the array say of its size must agree, and must be possible, before anything is unpacked.

    Args:
        archive: that it lies in.
        name: without its suffix.
        path: of the archive.
        memory: of the set.

    Raises:
        InputError: a pickle, or not an array.
    """

    def __init__(self, archive: zipfile.ZipFile, name: str, path: Path, memory: Memory) -> None:
        self._where = f"{path}: array {name!r}"
        self._memory = memory
        try:
            about = archive.getinfo(f"{name}.npy")
            if about.compress_type not in PACKED:
                raise ValueError("compressed in another way than numpy does")
            if about.file_size > MAX_DEFLATE * (about.compress_size + 1):
                raise ValueError(f"{about.file_size:,} bytes cannot be packed into {about.compress_size:,}")
            self._stream: IO[bytes] = archive.open(about)
            version = np.lib.format.read_magic(self._stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            with warnings.catch_warnings():  # numpy parses a header as Python, which may warn of its escapes
                warnings.simplefilter("ignore")
                self.shape, fortran, self.dtype = read(self._stream)
            self.nbytes = math.prod(self.shape) * self.dtype.itemsize
            if not self.dtype.hasobject and (
                any(type(side) is not int or side < 0 for side in self.shape)
                or len(self.shape) > MAX_DIMENSIONS
                or self.nbytes != about.file_size - self._stream.tell()
                or not (self.dtype.itemsize or self.dtype.kind in "SU")
            ):
                raise ValueError(f"{self.dtype} of shape {self.shape} in {about.file_size:,} bytes")
        except DAMAGED as error:
            raise InputError(
                f"{self._where} is damaged ({str(error)[:200]}); expected a whole npz: write or copy it again"
            ) from None
        if self.dtype.hasobject:
            raise InputError(
                f"{self._where} holds pickled objects, which run whatever code their author put in them when they are "
                "opened; expected numbers or text: write it again without objects"
            )
        if fortran and len(self.shape) > 1:
            raise InputError(f"{self._where} is stored by columns; expected rows: save numpy.ascontiguousarray of it")

    def __len__(self) -> int:
        return int(self.shape[0]) if self.shape else 0

    def take(self, out: NDArray[Any]) -> NDArray[Any]:
        """Fills an array of this dtype with the next rows.

        Raises:
            InputError: the archive ends too early or does not decompress.
        """
        view = memoryview(out.reshape(-1).view(np.uint8).data)
        filled = 0
        try:
            while filled < len(view):
                count = cast(Any, self._stream).readinto(view[filled:])
                if not count:
                    raise EOFError(f"it ends {len(view) - filled} bytes early")
                filled += count
        except DAMAGED as error:
            raise InputError(
                f"{self._where} is damaged ({str(error)[:200]}); expected a whole npz: write or copy it again"
            ) from None
        return out

    def rows(self, count: int) -> NDArray[Any]:
        """The next rows, in an array of their own."""
        self._memory.require(count * self.row_bytes, self._where)
        return self.take(np.empty((count, *self.shape[1:]), self.dtype))

    def floats(self, count: int) -> NDArray[np.float64]:
        """The same as float64."""
        self._memory.require(count * (self.row_bytes + 8 * math.prod(self.shape[1:])), self._where)
        return self.rows(count).astype(np.float64)

    def whole(self) -> NDArray[Any]:
        """All of it; for the small arrays."""
        self._memory.require(self.nbytes, self._where)
        return self.take(np.empty(self.shape, self.dtype))

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize
