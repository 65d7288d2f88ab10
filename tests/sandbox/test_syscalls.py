"""The seccomp filter, run here as a program on made-up calls."""

from __future__ import annotations

import errno
import struct

import pytest

from grace_irl.sandbox.syscalls import ARCHITECTURES, build_filter

ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM


def judge(code: bytes, audit: int, number: int, third: int = 0) -> int:
    """What a classic BPF program returns for a call (linux/bpf_common.h)."""
    data = struct.pack("<IIQ6Q", number, audit, 0, 0, 0, third, 0, 0, 0)
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
        assert judge(code, arch.audit, number) == (ALLOW if number in allowed else REFUSE), number


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("call", ["mmap", "mprotect"])
def test_memory_never_becomes_executable(machine: str, call: str) -> None:
    arch = ARCHITECTURES[machine]
    code = build_filter(arch)
    for protection in range(16):
        expected = REFUSE if protection & 4 else ALLOW
        assert judge(code, arch.audit, arch.allowed[call], protection) == expected


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
