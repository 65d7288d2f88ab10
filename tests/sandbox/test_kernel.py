"""The seccomp filter, run here as a program on made-up calls."""

from __future__ import annotations

import errno
import struct

import pytest

from grace_irl.sandbox.kernel import ARCHITECTURES, build_filter

ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM


def judge(code: bytes, audit: int, number: int, *arguments: int) -> int:
    """What a classic BPF program returns for a call (linux/bpf_common.h)."""
    words = [argument % (1 << 64) for argument in arguments] + [0] * (6 - len(arguments))
    data = struct.pack("<IIQ6Q", number, audit, 0, *words)
    accumulator, at = 0, 0
    while True:
        operation, if_true, if_false, operand = struct.unpack_from("HBBI", code, 8 * at)
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif operation == 0x06:
            return int(operand)
        else:
            test = {
                0x15: accumulator == operand,
                0x35: accumulator >= operand,
                0x45: bool(accumulator & operand),
            }[operation]
            at += if_true if test else if_false


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_exactly_the_listed_calls_pass(machine: str) -> None:
    arch = ARCHITECTURES[machine]
    code = build_filter(arch)
    allowed = set(arch.allowed.values())
    for number in range(1024):
        harmless = 128 if number == arch.allowed["futex"] else 0  # FUTEX_WAIT of this process alone
        assert judge(code, arch.audit, number, 0, harmless) == (ALLOW if number in allowed else REFUSE), number


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("call", ["mmap", "mprotect"])
def test_memory_never_becomes_executable(machine: str, call: str) -> None:
    arch = ARCHITECTURES[machine]
    code = build_filter(arch)
    for protection in range(16):
        expected = REFUSE if protection & 4 else ALLOW
        assert judge(code, arch.audit, arch.allowed[call], 0, 0, protection) == expected


def cpu_clock(pid: int, of_thread: bool = False) -> int:
    """The clock id of a process's CPU time, or of a thread's (linux/posix-timers.h)."""
    return ~pid << 3 | 2 | (4 if of_thread else 0)


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("call", ["clock_gettime", "clock_getres", "clock_nanosleep"])
def test_only_clocks_of_its_own_are_read(machine: str, call: str) -> None:
    arch = ARCHITECTURES[machine]
    code = build_filter(arch)
    for clock in range(8):
        assert judge(code, arch.audit, arch.allowed[call], clock) == ALLOW
    of_others = [cpu_clock(pid, thread) for pid in (0, 1, 2**22) for thread in (False, True)]
    by_descriptor = ~3 << 3 | 3
    for clock in (*of_others, by_descriptor, 8, 9, 11, 2**31, 2**32 - 1):
        assert judge(code, arch.audit, arch.allowed[call], clock) == REFUSE, clock
        assert judge(code, arch.audit, arch.allowed[call], clock % (1 << 32)) == REFUSE, clock
        assert judge(code, arch.audit, arch.allowed[call], clock % (1 << 32) | 1 << 32) == REFUSE, clock


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_only_its_own_cores_are_asked_for(machine: str) -> None:
    arch = ARCHITECTURES[machine]
    code = build_filter(arch)
    assert judge(code, arch.audit, arch.allowed["sched_getaffinity"], 0) == ALLOW
    for pid in (1, 2**16, 2**31, -1):
        assert judge(code, arch.audit, arch.allowed["sched_getaffinity"], pid) == REFUSE


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_futexes_stay_in_the_process(machine: str) -> None:
    arch = ARCHITECTURES[machine]
    code = build_filter(arch)
    private, realtime = 128, 256
    plain = {"WAIT": 0, "WAKE": 1, "REQUEUE": 3, "CMP_REQUEUE": 4, "WAKE_OP": 5, "WAIT_BITSET": 9, "WAKE_BITSET": 10}
    for operation in range(64):
        passes = operation in plain.values()
        assert judge(code, arch.audit, arch.allowed["futex"], 0, operation) == REFUSE
        assert judge(code, arch.audit, arch.allowed["futex"], 0, operation | realtime) == REFUSE
        expected = ALLOW if passes else REFUSE
        assert judge(code, arch.audit, arch.allowed["futex"], 0, operation | private) == expected, operation
    assert judge(code, arch.audit, arch.allowed["futex"], 0, plain["WAIT_BITSET"] | private | realtime) == ALLOW


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_advice_on_memory_is_what_allocators_give(machine: str) -> None:
    arch = ARCHITECTURES[machine]
    code = build_filter(arch)
    for advice in range(128):
        expected = ALLOW if advice in (0, 1, 2, 3, 4, 8, 14, 15) else REFUSE
        assert judge(code, arch.audit, arch.allowed["madvise"], 0, 0, advice) == expected


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_calls_of_another_convention_kill(machine: str) -> None:
    arch = ARCHITECTURES[machine]
    code = build_filter(arch)
    for audit in (0x40000003, 0x40000028, 0):  # i386, arm
        assert judge(code, audit, arch.allowed["read"]) == KILL
    if arch.foreign_from:
        assert judge(code, arch.audit, arch.foreign_from + arch.allowed["read"]) == KILL


def test_both_machines_allow_the_same_calls() -> None:
    x86, arm = (ARCHITECTURES[machine].allowed for machine in ("x86_64", "aarch64"))
    assert x86.keys() == arm.keys()
    assert len(set(x86.values())) == len(x86)
    assert len(set(arm.values())) == len(arm)


@pytest.mark.parametrize(
    "call",
    ["open", "openat", "execve", "fork", "clone", "socket", "connect", "kill", "ptrace", "prctl", "stat", "newfstatat"],
)
def test_calls_that_reach_out_are_not_listed(call: str) -> None:
    assert not any(call in arch.allowed for arch in ARCHITECTURES.values())
