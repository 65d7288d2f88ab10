"""Commands that run a zygote in a box of the operating system, for machines whose kernel refuses seccomp."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_RUSAGE_INFO_V2 = 2
_RUSAGE_BYTES = 512
_FOOTPRINT_AT = 72  # sys/resource.h: 16 bytes of uuid, then 7 words before ri_phys_footprint


def resident_bytes(pid: int) -> int:
    """Physical footprint of a process, bytes (libproc's proc_pid_rusage); 0 if it is unknown."""
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


_SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/alternatives")


def bubblewrap() -> tuple[str, ...] | None:
    """Namespaces of everything, and the interpreter's folders to be read; None if it is not installed."""
    command = shutil.which("bwrap")
    if command is None:
        return None
    binds: list[str] = []
    for folder in _readable():
        binds += ["--ro-bind", folder, folder]
    links: list[str] = []
    for folder in _SYSTEM:
        if os.path.islink(folder):
            links += ["--symlink", os.readlink(folder), folder]
        elif os.path.exists(folder):
            links += ["--ro-bind", folder, folder]
    return (
        command,
        "--unshare-all",
        "--cap-drop",
        "ALL",
        *links,
        *binds,
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--",
    )


def macos_sandbox() -> tuple[str, ...] | None:
    """sandbox-exec; None on any other system."""
    if sys.platform != "darwin":
        return None
    return sandbox_exec(_readable(), os.path.realpath(sys.executable))


def _readable() -> list[str]:
    """Folders of the interpreter, of its packages and of this one, parents before children, each once."""
    package = Path(__file__).resolve().parent.parent
    named = [
        sys.prefix,
        sys.base_prefix,
        str(package),
        *(entry for entry in sys.path if os.path.isdir(entry)),
    ]
    # the folder that a link points to as well as the link: the interpreter is found by either name
    real = [os.path.realpath(folder) for folder in named]
    kept: list[str] = []
    for folder in sorted({os.path.abspath(folder) for folder in named + real}, key=len):
        # never a home folder or the root as a whole: an entry of sys.path may be the user's current folder
        if folder in ("/", str(Path.home())) or any(Path(folder).is_relative_to(above) for above in kept):
            continue
        kept.append(folder)
    return kept
