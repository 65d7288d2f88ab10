"""Runs Python code in a process whose kernel seems to lack a layer: `python deny.py seccomp,landlock CODE`.

A seccomp filter of its own refuses the calls that put the layer on, and everything it starts inherits that.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys

SECCOMP, LANDLOCK = (317, 444) if platform.machine() == "x86_64" else (277, 444)
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
LOAD, EQUAL, RETURN, ALLOW = 0x20, 0x15, 0x06, 0x7FFF0000


def instruction(code: int, if_true: int, if_false: int, operand: int) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, operand)


def refuse(error: int) -> bytes:
    return instruction(RETURN, 0, 0, 0x00050000 | error)


def program(layers: list[str]) -> bytes:
    code = [instruction(LOAD, 0, 0, 0)]
    if "landlock" in layers:
        code += [instruction(EQUAL, 0, 1, LANDLOCK), refuse(errno.EOPNOTSUPP)]
    if "seccomp" in layers:
        code += [instruction(EQUAL, 0, 1, SECCOMP), refuse(errno.EPERM)]
    return b"".join([*code, instruction(RETURN, 0, 0, ALLOW)])


def main() -> None:
    code = program(sys.argv[1].split(","))
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert libc.prctl(PR_SET_SECCOMP, 2, ctypes.create_string_buffer(filter_), 0, 0) == 0
    exec(compile(sys.argv[2], "<denied>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    main()
