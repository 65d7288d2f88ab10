"""The lock-down of a process that has several threads, as one whose libraries start their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from grace_irl.sandbox.kernel import architecture
from grace_irl.sandbox.lockdown import LAYER_REFUSED

pytestmark = pytest.mark.skipif(architecture() is None, reason="no table of system calls for this machine")

THREADED = """
import ctypes, os, threading
from grace_irl.sandbox.lockdown import Allowance, Lockdown

locked, ready, told, said = threading.Event(), threading.Event(), threading.Event(), []

def look():
    PREPARE
    ready.set()
    locked.wait()
    try:
        said.append(os.uname() and "free")
    except PermissionError:
        said.append("bound")
    told.set()
    threading.Event().wait()  # a thread that ends here needs what is shut: Python 3.13 often crashes in its `join`

threading.Thread(target=look).start()
ready.wait()
lockdown = Lockdown()
lockdown.prepare_zygote()
lockdown.apply(["seccomp"], Allowance(10, 512, 1 << 34))
locked.set()
told.wait()
os.write(1, said[0].encode())
os._exit(0)
"""

A_FILTER_OF_ITS_OWN = """
    libc = ctypes.CDLL(None)
    allow = ctypes.create_string_buffer(bytes((6, 0, 0, 0, 0, 0, 255, 127)), 8)
    program = (ctypes.c_uint64 * 2)(1, ctypes.addressof(allow))
    zero = ctypes.c_ulong(0)
    assert libc.prctl(38, ctypes.c_ulong(1), zero, zero, zero) == 0
    assert libc.prctl(22, ctypes.c_ulong(2), program, zero, zero) == 0
"""


def locked_down(prepare: str = "pass") -> subprocess.CompletedProcess[str]:
    """Run a process that locks itself down while a second thread of it runs; what that thread finds then."""
    code = THREADED.replace("    PREPARE", prepare if prepare.startswith("\n") else f"    {prepare}")
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_every_thread_is_bound() -> None:
    done = locked_down()
    assert (done.returncode, done.stdout) == (0, "bound"), done.stderr


def test_a_thread_that_cannot_be_bound_is_a_failure() -> None:
    """The kernel answers with the number of the thread, which is no error of the call."""
    done = locked_down(A_FILTER_OF_ITS_OWN)
    assert (done.returncode, done.stdout) == (LAYER_REFUSED, ""), done.stderr
