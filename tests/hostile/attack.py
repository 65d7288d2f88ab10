"""An attack."""

from __future__ import annotations

from dataclasses import dataclass

PRELUDE = """
import ctypes, os, socket, sys
import mmap
import numpy as np
libc = ctypes.CDLL(None, use_errno=True)

def worked(result):
    return result != -1

def syscall(number, *arguments):
    return libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])

FOLDER, TCP, UDP, UNIX, ABSTRACT = "@FOLDER@", int("@TCP@"), int("@UDP@"), "@UNIX@", "@ABSTRACT@"
HOST, ZYGOTE, BYSTANDER = int("@HOST@"), int("@ZYGOTE@"), int("@BYSTANDER@")
X86 = "@MACHINE@" == "x86_64"
"""

TRY = """
class Reward:
    def __init__(self, extra_info=None):
        pass

    def reward_fn(self, state):
        try:
            return 1.0 if attack() else 0.0
        except Exception:
            return 0.0
"""


@dataclass(frozen=True)
class Attack:
    """A hostile program and how it must end.

    Attributes:
        name: the class of attack, as docs/sandbox.md lists it.
        source: what runs, static checks off; `@NAMES@` are filled in by the ground it runs on.
        statuses: outcomes that are right. An "ok" must carry zeros only: 1 is how an attack says that it worked.
        modes: where it is tried.
        wall_s: its time limit.
        memory_mb: its memory limit.
        debug: ask for debug_fn's text of the first state.
    """

    name: str
    source: str
    statuses: frozenset[str] = frozenset({"ok"})
    modes: tuple[str, ...] = ("batch", "strict")
    wall_s: float = 10.0
    memory_mb: int = 256
    debug: bool = False


def attempt(name: str, body: str, *statuses: str, **options: object) -> Attack:
    """An attack whose body is that of a function which returns True when it worked."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    source = f"{PRELUDE}\ndef attack():\n{lines}\n{TRY}"
    return Attack(name, source, frozenset(statuses or {"ok"}), **options)  # type: ignore[arg-type]


def program(name: str, source: str, *statuses: str, **options: object) -> Attack:
    """An attack that is a whole program."""
    return Attack(name, PRELUDE + source, frozenset(statuses), **options)  # type: ignore[arg-type]
