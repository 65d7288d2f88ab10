"""The place of a child's new objects: on fresh pages, not in the gaps of the zygote's."""

from __future__ import annotations

_POOL_BYTES = 16 << 10  # obmalloc.c: POOL_SIZE of CPython 3.10 and later; a pool holds objects of one size class
_POOL_HEADER = 48
_ALIGNMENT = 16
_LARGEST = 512  # beyond that, objects come from malloc
_MOST = 1 << 17  # objects of one class; only an allocator that works another way takes that many

_gaps: list[bytes] = []


def fill_gaps() -> None:
    """Use up the room that is left in the allocator's half-full pools, for good.

    A forked child that makes an object puts it into such a gap, and the kernel then copies the whole page, which
    holds other objects of the zygote. Without gaps its objects lie together: a sixth fewer pages are copied.
    """
    empty = b"".__sizeof__()
    for size in range(_ALIGNMENT * (-(-empty // _ALIGNMENT)), _LARGEST + 1, _ALIGNMENT):
        room = (_POOL_BYTES - _POOL_HEADER) // size
        filled: list[bytes] = []
        before, in_a_row = 0, 0
        while in_a_row < room - 1 and len(filled) < _MOST:
            filled.append(bytes(size - empty))
            here = id(filled[-1])
            in_a_row = in_a_row + 1 if here == before + size else 0
            before = here
        # the last ones fill a pool of their own from end to end: no gap is left, and this pool can go
        _gaps.extend(filled[: -in_a_row - 1])
