"""The heaps of an HDF5 file, where its texts lie, looked at before HDF5 reads them.

HDF5 goes from one object of a heap to the next by the size that the object states, and never ends where that is 0 or
wraps around (seen with HDF5 2.0.0). The layout is that of the HDF5 file format specification, III.E.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from grace_irl.errors import InputError

SIGNATURE = b"GCOL\1\0\0\0"
SUPERBLOCK = b"\x89HDF\r\n\x1a\n"
_SIZES = {0: 13, 1: 13, 2: 9, 3: 9}
"""Where a superblock of this version states how many bytes addresses and lengths have."""

_OBJECT = struct.Struct("<HHIQ")


def require_whole_heaps(file: Path) -> None:
    """Refuses a file with a heap whose objects do not follow one another up to its end.

    Raises:
        InputError: such a heap, or a file of another shape than h5py writes.
    """
    again = "expected a whole file as h5py writes it: copy it again"
    try:
        with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            place = _SIZES.get(data[8], 0) if data[:8] == SUPERBLOCK else 0
            if data[place : place + 2] != b"\x08\x08":
                raise InputError(f"{file}: not readable as hdf5 (no superblock); {again}")
            at = data.find(SIGNATURE)
            while at >= 0:
                if not _is_whole(data, at):
                    raise InputError(f"{file}: a heap of texts is damaged (at byte {at:,}); {again}")
                at = data.find(SIGNATURE, at + 1)
    except (OSError, ValueError, IndexError) as error:
        raise InputError(f"{file}: not readable as hdf5 ({error}); {again}") from None


def _is_whole(data: mmap.mmap, start: int) -> bool:
    """Whether the objects of a heap fill it."""
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
