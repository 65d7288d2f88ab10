"""The system calls that a locked-down child may make, and the seccomp filter that enforces the list.

Numbers: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h of Linux. Filter:
classic BPF over `struct seccomp_data` (nr at byte 0, arch at 4, arguments from 16), as seccomp(2) describes.
"""

from __future__ import annotations

import errno
import platform
import struct
import sys
from dataclasses import dataclass

# Enough to compute, to allocate memory that is not executable, to take signals, to use the descriptors it
# holds and to end. Nothing that opens, creates, names another process, or starts one.
_X86_64 = {
    "read": 0,
    "write": 1,
    "close": 3,
    "lseek": 8,
    "mmap": 9,
    "mprotect": 10,
    "munmap": 11,
    "brk": 12,
    "rt_sigaction": 13,
    "rt_sigprocmask": 14,
    "rt_sigreturn": 15,
    "sched_yield": 24,
    "mremap": 25,
    "madvise": 28,
    "nanosleep": 35,
    "getpid": 39,
    "exit": 60,
    "gettimeofday": 96,
    "getrusage": 98,
    "sigaltstack": 131,
    "gettid": 186,
    "futex": 202,
    "sched_getaffinity": 204,
    "restart_syscall": 219,
    "clock_gettime": 228,
    "clock_getres": 229,
    "clock_nanosleep": 230,
    "exit_group": 231,
    "getrandom": 318,
}
_AARCH64 = {
    "read": 63,
    "write": 64,
    "close": 57,
    "lseek": 62,
    "mmap": 222,
    "mprotect": 226,
    "munmap": 215,
    "brk": 214,
    "rt_sigaction": 134,
    "rt_sigprocmask": 135,
    "rt_sigreturn": 139,
    "sched_yield": 124,
    "mremap": 216,
    "madvise": 233,
    "nanosleep": 101,
    "getpid": 172,
    "exit": 93,
    "gettimeofday": 169,
    "getrusage": 165,
    "sigaltstack": 132,
    "gettid": 178,
    "futex": 98,
    "sched_getaffinity": 123,
    "restart_syscall": 128,
    "clock_gettime": 113,
    "clock_getres": 114,
    "clock_nanosleep": 115,
    "exit_group": 94,
    "getrandom": 278,
}


@dataclass(frozen=True)
class Architecture:
    """What the filter needs to know of a machine.

    Attributes:
        audit: its AUDIT_ARCH value: calls by another calling convention (i386 on x86-64) kill the process.
        allowed: name to number of the allowed system calls.
        foreign_from: numbers from here on belong to another convention (x32), or 0.
        landlock: numbers of landlock_create_ruleset and landlock_restrict_self.
    """

    audit: int
    allowed: dict[str, int]
    foreign_from: int = 0
    landlock: tuple[int, int] = (444, 446)


ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, _X86_64, foreign_from=0x40000000),
    "aarch64": Architecture(0xC00000B7, _AARCH64),
}

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_NR, _ARCH, _THIRD_ARGUMENT = 0, 4, 32
_PROT_EXEC = 4


def architecture() -> Architecture | None:
    """This machine's, or None where no table is known."""
    if sys.platform != "linux":
        return None
    return ARCHITECTURES.get(platform.machine())


def build_filter(arch: Architecture) -> bytes:
    """The BPF program: allowed calls pass, executable maps and all other calls fail with EPERM.

    EPERM rather than a kill, so that an honest program which tries something reads a Python exception with
    its line.
    """
    program = [
        _instruction(_LOAD, 0, 0, _ARCH),
        _instruction(_EQUAL, 1, 0, arch.audit),
        _instruction(_RETURN, 0, 0, _KILL),
        _instruction(_LOAD, 0, 0, _NR),
    ]
    if arch.foreign_from:
        program += [_instruction(_AT_LEAST, 0, 1, arch.foreign_from), _instruction(_RETURN, 0, 0, _KILL)]
    for name, number in arch.allowed.items():
        if name in ("mmap", "mprotect"):
            program += [
                _instruction(_EQUAL, 0, 4, number),
                _instruction(_LOAD, 0, 0, _THIRD_ARGUMENT),
                _instruction(_ANY_BIT, 0, 1, _PROT_EXEC),
                _instruction(_RETURN, 0, 0, _REFUSE),
                _instruction(_RETURN, 0, 0, _ALLOW),
            ]
        else:
            program += [_instruction(_EQUAL, 0, 1, number), _instruction(_RETURN, 0, 0, _ALLOW)]
    program.append(_instruction(_RETURN, 0, 0, _REFUSE))
    return b"".join(program)


def _instruction(code: int, if_true: int, if_false: int, operand: int) -> bytes:
    """One `struct sock_filter`."""
    return struct.pack("HBBI", code, if_true, if_false, operand)
