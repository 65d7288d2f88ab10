"""The few kernel calls that Python has no name for, by ctypes. Each says whether it worked; none raises."""

from __future__ import annotations

import ctypes
import os
import struct

from grace_irl.sandbox.syscalls import Architecture, build_filter

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_SECCOMP_SET_MODE_FILTER, _SECCOMP_FILTER_FLAG_TSYNC = 1, 1
_CAPABILITY_VERSION_3 = 0x20080522

# PyDLL keeps the interpreter's lock: `fork` must not run while another thread could.
_libc = ctypes.PyDLL(None, use_errno=True)


def set_dumpable(dumpable: bool) -> bool:
    """Not dumpable: no process of the same user may trace this one or read its memory and environment."""
    return _prctl(_PR_SET_DUMPABLE, int(dumpable))


def die_with_parent() -> bool:
    """SIGKILL when the thread that forked this process ends."""
    return _prctl(_PR_SET_PDEATHSIG, 9)


def no_new_privileges() -> bool:
    """Nothing started from here gains rights: what seccomp and Landlock ask for without root."""
    return _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> bool:
    """Give up every capability for good (with `no_new_privileges` none comes back)."""
    if not hasattr(_libc, "capset"):
        return False
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    return bool(_libc.capset(header, b"\0" * 24) == 0)


def fork() -> int:
    """`fork(2)` without Python's after-fork hooks.

    Those of `random`, `threading` and the interpreter touch some 180 pages, each a copy that costs as much
    as the rest of the fork. A zygote has one thread and seeds `random` itself, so none of them is wanted.
    """
    return int(_libc.fork())


class SeccompFilter:
    """A seccomp filter, built once and put on after each fork."""

    class _Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))

    def __init__(self, arch: Architecture) -> None:
        code = build_filter(arch)
        self._code = ctypes.create_string_buffer(code, len(code))
        self._program = SeccompFilter._Program(len(code) // 8, ctypes.addressof(self._code))
        # each with its type: a bare int would cut the pointer to 32 bits
        self._call = (
            ctypes.c_long(arch.seccomp),
            ctypes.c_ulong(_SECCOMP_SET_MODE_FILTER),
            ctypes.c_ulong(_SECCOMP_FILTER_FLAG_TSYNC),
            ctypes.c_void_p(ctypes.addressof(self._program)),
        )

    def apply(self) -> bool:
        """Filter every thread of this process from here on; there is no way back.

        `prctl` would filter the calling thread only. The kernel answers with a thread's number, and filters none,
        if a thread has a filter of its own: that is a failure, too.
        """
        return bool(_libc.syscall(*self._call) == 0)


class Ruleset:
    """A Landlock ruleset that governs everything this kernel's Landlock knows, and allows nothing.

    Attributes:
        abi: the version that the kernel speaks; 0 if Landlock is missing or switched off.
    """

    def __init__(self, arch: Architecture) -> None:
        create, self._restrict = arch.landlock
        self.abi = max(0, _libc.syscall(create, None, ctypes.c_size_t(0), ctypes.c_uint(1)))
        self._fd = self._create(create) if self.abi else -1

    def _create(self, create: int) -> int:
        # rights by ABI (linux/landlock.h): 13 of files, refer 2, truncate 3, ioctl 5; net 4; scopes 6
        files = (1 << 13) - 1
        files |= sum(1 << bit for bit, since in ((13, 2), (14, 3), (15, 5)) if self.abi >= since)
        net = 3 if self.abi >= 4 else 0
        scopes = 3 if self.abi >= 6 else 0
        size = 8 if self.abi < 4 else 16 if self.abi < 6 else 24
        attributes = struct.pack("QQQ", files, net, scopes)
        return int(_libc.syscall(create, attributes, ctypes.c_size_t(size), ctypes.c_uint(0)))

    def apply(self) -> bool:
        """Deny this process every path, port, abstract socket and signal beyond its own children."""
        return self._fd >= 0 and _libc.syscall(self._restrict, self._fd, ctypes.c_uint(0)) == 0


def release_free_memory() -> None:
    """Give pages that the allocator holds and nothing uses back to the kernel: each would be copied by a fork."""
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(ctypes.c_size_t(0))


def become_nobody() -> bool:
    """Go on as the user that owns nothing, if the host is root."""
    if os.geteuid() != 0:
        return False
    try:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    except OSError:  # a container's root that may not; the layers below hold without it
        return False
    return True


def _prctl(option: int, argument: int) -> bool:
    if not hasattr(_libc, "prctl"):
        return False
    zero = ctypes.c_ulong(0)
    return bool(_libc.prctl(option, ctypes.c_ulong(argument), zero, zero, zero) == 0)
