"""Commands that run a zygote in a box of the operating system, for machines whose kernel refuses seccomp."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from grace_irl.sandbox.macos import sandbox_exec

_SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/alternatives")


def bubblewrap() -> tuple[str, ...] | None:
    """Namespaces of everything, and the interpreter's folders to be read; None where it is not installed."""
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
