"""Means of macOS in place of seccomp and Landlock: a profile for sandbox-exec, and memory watched from
outside.

Advisory (tier D): Apple documents neither the profile language nor its guarantees, and RLIMIT_AS is not
enforced there.
"""

from __future__ import annotations

import ctypes
import json
import struct
import sys
from collections.abc import Iterable

_RUSAGE_INFO_V2 = 2
_RUSAGE_BYTES = 512
_FOOTPRINT_AT = 72  # sys/resource.h: 16 bytes of uuid, then 7 words before ri_phys_footprint


def resident_bytes(pid: int) -> int:
    """Physical footprint of a process, bytes (libproc's proc_pid_rusage); 0 where it cannot be told."""
    if sys.platform != "darwin":
        return 0
    buffer = ctypes.create_string_buffer(_RUSAGE_BYTES)
    if ctypes.PyDLL("/usr/lib/libproc.dylib").proc_pid_rusage(pid, _RUSAGE_INFO_V2, buffer) != 0:
        return 0
    return int(struct.unpack_from("<Q", buffer.raw, _FOOTPRINT_AT)[0])


def sandbox_exec(readable: Iterable[str], executable: str) -> tuple[str, ...]:
    """The command that runs a zygote under a profile: no network, no writing, no other programs, no home
    folder.

    Args:
        readable: folders that Python and its packages lie in.
        executable: the interpreter.
    """
    folders = " ".join(f"(subpath {json.dumps(folder)})" for folder in readable)
    profile = (
        "(version 1)(allow default)(deny network*)(deny file-write*)"
        '(allow file-write-data (literal "/dev/null"))'
        f'(deny file-read* (subpath "/Users"))(allow file-read* {folders})'
        f"(deny process-exec*)(allow process-exec (literal {json.dumps(executable)}))"
        "(deny signal)(allow signal (target self))(allow signal (target children))"
    )
    return ("/usr/bin/sandbox-exec", "-p", profile)
