"""Kernel calls that Python lacks, made through ctypes, and the seccomp filter of a sandbox child.

Functions that may fail return whether they succeeded, and raise no exception. The numbers of system calls are from
arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h of Linux. The filter is a classic BPF
program. It reads a `struct seccomp_data` (nr at byte 0, arch at 4, arguments from 16), as seccomp(2) describes.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from dataclasses import dataclass

# The only system calls that a sandbox child may make. They are enough to compute, to allocate memory that is not
# executable, to receive signals, to use open file descriptors and to exit. No call opens or creates a file or a socket,
# or starts a process. `_RULES` checks arguments that could do harm, for example by naming another process.
_CALLS = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "nanosleep": (35, 101),
    "getpid": (39, 172),
    "exit": (60, 93),
    "gettimeofday": (96, 169),
    "getrusage": (98, 165),
    "sigaltstack": (131, 132),
    "gettid": (186, 178),
    "futex": (202, 98),
    "sched_getaffinity": (204, 123),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "getrandom": (318, 278),
}
"""Map from each allowed system call to its numbers on x86-64 and on aarch64."""


@dataclass(frozen=True)
class Architecture:
    """Constants of a processor architecture.

    Attributes:
        audit: AUDIT_ARCH constant of the native calling convention. A call by another convention, such as i386 on
            x86-64, kills the process.
        allowed: numbers of the allowed system calls, by name.
        foreign_from: smallest system call number of x32, a second calling convention with the same `audit`. A call of
            x32 kills the process, too. 0 for an architecture without x32.
        seccomp: number of the system call seccomp, which installs the filter.
        landlock: numbers of the system calls landlock_create_ruleset and landlock_restrict_self.
    """

    audit: int
    allowed: dict[str, int]
    foreign_from: int = 0
    seccomp: int = 317
    landlock: tuple[int, int] = (444, 446)


ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, {name: numbers[0] for name, numbers in _CALLS.items()}, foreign_from=0x40000000),
    "aarch64": Architecture(0xC00000B7, {name: numbers[1] for name, numbers in _CALLS.items()}, seccomp=277),
}

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_NR, _ARCH, _ARGUMENTS = 0, 4, 16


@dataclass(frozen=True)
class Rule:
    """Condition on one argument of an allowed call.

    A value passes if it meets at least one of the tests `values`, `below` and `without`.

    A rule checks only the lower 32 bits of the argument. For most arguments with a rule, the kernel ignores the upper
    bits. The argument `prot` of mmap and mprotect has 64 bits, but its rule needs only bit 2 (PROT_EXEC).

    Attributes:
        argument: index of the argument, from 0.
        values: values that pass.
        below: unsigned values below this number pass; 0 for no such test.
        without: bit mask. Values that have none of its bits pass; 0 for no such test.
    """

    argument: int
    values: tuple[int, ...] = ()
    below: int = 0
    without: int = 0

    def instructions(self, gap: int) -> list[bytes]:
        """The rule as BPF instructions.

        After the rule, the filter skips `gap` instructions if the argument passes, and `gap` + 1 if the argument
        fails.
        """
        tests = [(_EQUAL, value, True) for value in self.values]
        tests += [(_AT_LEAST, self.below, False)] if self.below else []
        tests += [(_ANY_BIT, self.without, False)] if self.without else []
        code = [_instruction(_LOAD, 0, 0, _ARGUMENTS + 8 * self.argument)]
        for left, (operation, operand, passes) in zip(range(len(tests) - 1, -1, -1), tests, strict=True):
            allow = left + gap
            other = 0 if left else allow + 1  # go to the next test; after the last test, refuse
            code.append(_instruction(operation, *((allow, other) if passes else (other, allow)), operand))
        return code


_PROT_EXEC = 4

# Every process may read the clocks 0 (CLOCK_REALTIME) to 7 (CLOCK_BOOTTIME). The next ids belong to alarm clocks, which
# need a capability. The CPU clocks of other processes and threads have negative ids (`~pid << 3 | …`), which are large
# as unsigned numbers.
_OWN_CLOCKS = Rule(0, below=8)

# Futex operations within this process. Without FUTEX_PRIVATE_FLAG (128), children could signal each other through a
# word in a library's page, because they all share this page. FUTEX_LOCK_PI and its relatives are refused, because they
# look up the process whose id the word holds. The values are WAIT, WAKE, WAIT_BITSET, WAIT_BITSET with
# FUTEX_CLOCK_REALTIME (256), WAKE_BITSET, REQUEUE, CMP_REQUEUE and WAKE_OP.
_OWN_FUTEXES = Rule(1, values=(128, 129, 137, 393, 138, 131, 132, 133))

_RULES = {
    "mmap": Rule(2, without=_PROT_EXEC),
    "mprotect": Rule(2, without=_PROT_EXEC),
    # 0 means this thread; the ids of other threads are refused
    "sched_getaffinity": Rule(0, values=(0,)),
    "clock_gettime": _OWN_CLOCKS,
    "clock_getres": _OWN_CLOCKS,
    "clock_nanosleep": _OWN_CLOCKS,
    "futex": _OWN_FUTEXES,
    # The rule allows the advice that allocators give: NORMAL to DONTNEED (0 to 4), FREE, HUGEPAGE and NOHUGEPAGE. It
    # refuses, for example, MERGEABLE and PAGEOUT. After MERGEABLE, the duration of a write would reveal what other
    # processes hold in memory. PAGEOUT would remove shared pages from the memory of other processes.
    "madvise": Rule(2, values=(8, 14, 15), below=5),
}


def architecture() -> Architecture | None:
    """The architecture of this machine; None if `ARCHITECTURES` does not list it."""
    if sys.platform != "linux":
        return None
    # `os.uname`, because the module `platform` would keep the machine's name in memory that a program can search
    return ARCHITECTURES.get(os.uname().machine)


def build_filter(arch: Architecture) -> bytes:
    """The filter as a BPF program.

    Allowed calls pass. Other calls, and calls with arguments that a rule refuses, fail with EPERM. Such a failure does
    not kill the process, so an honest program gets a Python exception that names the line. Only calls by another
    calling convention kill the process (`Architecture`).
    """
    program = [
        _instruction(_LOAD, 0, 0, _ARCH),
        _instruction(_EQUAL, 1, 0, arch.audit),
        _instruction(_RETURN, 0, 0, _KILL),
        _instruction(_LOAD, 0, 0, _NR),
    ]
    if arch.foreign_from:
        program += [_instruction(_AT_LEAST, 0, 1, arch.foreign_from), _instruction(_RETURN, 0, 0, _KILL)]
    # The order is: the tests of the call's number, a return that refuses all other numbers, each rule once, a return
    # that allows, and a return that refuses. The filter is short, because the kernel compiles it for every child.
    rules: list[bytes] = []
    starts: dict[Rule, int] = {}  # position of each rule, counted from the end of the rules
    for rule in _RULES.values():
        if rule not in starts:
            rules = rule.instructions(len(rules)) + rules
            starts[rule] = len(rules)
    for left, (name, number) in zip(range(len(arch.allowed), 0, -1), arch.allowed.items(), strict=True):
        start = starts[_RULES[name]] if name in _RULES else 0
        program.append(_instruction(_EQUAL, left + len(rules) - start, 0, number))
    program += [_instruction(_RETURN, 0, 0, _REFUSE), *rules]
    program += [_instruction(_RETURN, 0, 0, _ALLOW), _instruction(_RETURN, 0, 0, _REFUSE)]
    return b"".join(program)


def _instruction(code: int, if_true: int, if_false: int, operand: int) -> bytes:
    """One BPF instruction as the bytes of a `struct sock_filter`."""
    return struct.pack("HBBI", code, if_true, if_false, operand)


_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_SECCOMP_SET_MODE_FILTER, _SECCOMP_FILTER_FLAG_TSYNC = 1, 1
_CAPABILITY_VERSION_3 = 0x20080522

# PyDLL keeps the global interpreter lock during a call, because no other thread may run during `fork`.
_libc = ctypes.PyDLL(None, use_errno=True)


def set_dumpable(dumpable: bool) -> bool:
    """Set whether processes of the same user may trace this process and read its memory and environment."""
    return _prctl(_PR_SET_DUMPABLE, int(dumpable))


def die_with_parent() -> bool:
    """Let the kernel send SIGKILL to this process when the thread that forked it ends."""
    return _prctl(_PR_SET_PDEATHSIG, 9)


def no_new_privileges() -> bool:
    """Keep this process and its children from gaining rights. Without root, seccomp and Landlock require this."""
    return _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> bool:
    """Give up every Linux capability. After `no_new_privileges`, no capability can come back."""
    if not hasattr(_libc, "capset"):
        return False
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    return bool(_libc.capset(header, b"\0" * 24) == 0)


def fork() -> int:
    """`fork(2)` without Python's after-fork hooks.

    The hooks of `random`, `threading` and the interpreter write to some 180 pages, which the kernel must then copy. The
    copies take as long as the rest of the fork. A zygote, the process that forks all children, needs no hooks, because
    it has one thread and seeds `random` itself.
    """
    return int(_libc.fork())


class SeccompFilter:
    """A seccomp filter, built once and applied after each fork."""

    class _Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))

    def __init__(self, arch: Architecture) -> None:
        code = build_filter(arch)
        self._code = ctypes.create_string_buffer(code, len(code))
        self._program = SeccompFilter._Program(len(code) // 8, ctypes.addressof(self._code))
        # explicit types, because ctypes would cut a plain int to 32 bits, and the last argument is a pointer
        self._call = (
            ctypes.c_long(arch.seccomp),
            ctypes.c_ulong(_SECCOMP_SET_MODE_FILTER),
            ctypes.c_ulong(_SECCOMP_FILTER_FLAG_TSYNC),
            ctypes.c_void_p(ctypes.addressof(self._program)),
        )

    def apply(self) -> bool:
        """Apply the filter to all threads of this process, permanently.

        This uses the system call seccomp, because `prctl` would filter only the calling thread. If another thread
        already has a filter of its own, the kernel filters no thread, and the return value is False.
        """
        return bool(_libc.syscall(*self._call) == 0)


class Ruleset:
    """A Landlock ruleset that denies every right that this kernel's Landlock can deny.

    Attributes:
        abi: version of the kernel's Landlock; 0 if Landlock is missing or switched off.
    """

    def __init__(self, arch: Architecture) -> None:
        create, self._restrict = arch.landlock
        self.abi = max(0, _libc.syscall(create, None, ctypes.c_size_t(0), ctypes.c_uint(1)))
        self._fd = self._create(create) if self.abi else -1

    def _create(self, create: int) -> int:
        # The rights grow with the ABI version (linux/landlock.h). Files have 13 rights in version 1; version 2 adds
        # refer, version 3 truncate, version 5 ioctl. Version 4 adds network rights, and version 6 scopes.
        files = (1 << 13) - 1
        files |= sum(1 << bit for bit, since in ((13, 2), (14, 3), (15, 5)) if self.abi >= since)
        net = 3 if self.abi >= 4 else 0
        scopes = 3 if self.abi >= 6 else 0
        size = 8 if self.abi < 4 else 16 if self.abi < 6 else 24
        attributes = struct.pack("QQQ", files, net, scopes)
        return int(_libc.syscall(create, attributes, ctypes.c_size_t(size), ctypes.c_uint(0)))

    def apply(self) -> bool:
        """Deny this process access to paths, TCP ports and abstract sockets, and signals to other processes.

        Older kernels deny fewer of these (`abi`). Signals to the process's own children stay allowed.
        """
        return self._fd >= 0 and _libc.syscall(self._restrict, self._fd, ctypes.c_uint(0)) == 0


def release_free_memory() -> None:
    """Return the C allocator's unused pages to the kernel, because each fork would copy them."""
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(ctypes.c_size_t(0))


def become_nobody() -> bool:
    """If this process runs as root, switch to the user `nobody`, who owns no files. Return whether it switched."""
    if os.geteuid() != 0:
        return False
    try:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    except OSError:  # root in a container may lack the right to switch; the other protections hold anyway
        return False
    return True


def _prctl(option: int, argument: int) -> bool:
    if not hasattr(_libc, "prctl"):
        return False
    zero = ctypes.c_ulong(0)
    return bool(_libc.prctl(option, ctypes.c_ulong(argument), zero, zero, zero) == 0)
