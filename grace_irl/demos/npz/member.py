"""An array of an npz archive. The size of the array is checked before the array is unpacked."""

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
"""Errors that NumPy and zipfile raise for files that are truncated, encrypted or not archives. SyntaxError and
TokenError occur because NumPy parses headers as Python."""

MAX_DIMENSIONS = 16
"""Maximum number of dimensions of an array. A grid array has four."""

PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""NumPy's compression methods for npz archives. Other methods may unpack to far more data, or may need gigabytes of
memory."""

MAX_DEFLATE = 1032
"""Maximum number of unpacked bytes per packed byte in DEFLATE (zlib.net/zlib_tech.html)."""


class Member:
    """An array of an archive. The array can be read in parts, to save memory.

    The archive and the array's header both state a size. The two sizes must agree, and the compressed data must be long
    enough for this size (`MAX_DEFLATE`). Both conditions are checked before any rows are unpacked.

    Args:
        archive: the archive.
        name: name of the array, without the suffix.
        path: path of the archive, for messages.
        memory: memory limit of the set.

    Raises:
        InputError: a pickle, a damaged array, an array in Fortran order (stored by columns), or not an array.
    """

    def __init__(self, archive: zipfile.ZipFile, name: str, path: Path, memory: Memory) -> None:
        self._where = f"{path}: array {name!r}"
        self._memory = memory
        try:
            about = archive.getinfo(f"{name}.npy")
            if about.compress_type not in PACKED:
                raise ValueError("compressed by a method that numpy does not use")
            if about.file_size > MAX_DEFLATE * (about.compress_size + 1):
                raise ValueError(f"{about.file_size:,} bytes cannot be packed into {about.compress_size:,}")
            self._stream: IO[bytes] = archive.open(about)
            version = np.lib.format.read_magic(self._stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            with warnings.catch_warnings():  # NumPy parses a header as Python, which may warn about escapes
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
        """Fill `out` with the next rows, and return it. The dtype of `out` must equal the dtype of the stored array.

        Raises:
            InputError: a truncated or damaged archive.
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
        """The next `count` rows, in a new array."""
        self._memory.require(count * self.row_bytes, self._where)
        return self.take(np.empty((count, *self.shape[1:]), self.dtype))

    def floats(self, count: int) -> NDArray[np.float64]:
        """The next `count` rows as float64, in a new array."""
        self._memory.require(count * (self.row_bytes + 8 * math.prod(self.shape[1:])), self._where)
        return self.rows(count).astype(np.float64)

    def whole(self) -> NDArray[Any]:
        """The whole array. Use this method for small arrays only."""
        self._memory.require(self.nbytes, self._where)
        return self.take(np.empty(self.shape, self.dtype))

    @property
    def row_bytes(self) -> int:
        """Size of one row in bytes."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize
