"""Conditions on demonstrations: which are chosen, and how many come as far as each condition."""

from __future__ import annotations

import json
import re
import reprlib
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from multiprocessing.connection import wait

from grace_irl.demos.trajectory import Demonstration, Role
from grace_irl.errors import InputError

SEARCH_S = 10.0
"""For one text. Backtracking may take longer than anybody waits, and no thread can stop it."""

SEARCH_BYTES = 1 << 30
"""Of address space: backtracking takes memory, too."""

CHILD = f"""
import json, re, resource, sys, warnings
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_AS, ({SEARCH_BYTES}, {SEARCH_BYTES}))
pattern = re.compile(json.loads(sys.stdin.readline()), re.IGNORECASE)
for line in sys.stdin:
    sys.stdout.write("01"[pattern.search(json.loads(line)) is not None])
    sys.stdout.flush()
"""


class TextPattern:
    """A regular expression of Python's; case is ignored.

    Its process begins with the first search, and ends with the object.

    Args:
        text: the expression.
        name: of the option or key that gives it, for messages.

    Raises:
        InputError: it is none.
    """

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name
        self._process: subprocess.Popen[bytes] | None = None
        try:
            with warnings.catch_warnings():  # of what a later Python reads otherwise
                warnings.simplefilter("ignore")
                re.compile(text, re.IGNORECASE)
        except (re.error, OverflowError, RecursionError, ValueError) as error:  # ValueError: of flags
            raise InputError(
                f"{name} {reprlib.repr(text)}: no regular expression ({str(error)[:200]}); expected one of Python's"
            ) from None

    def found(self, text: str) -> bool:
        """Whether the expression is found in a text.

        Raises:
            InputError: the search takes too long, or too much memory.
        """
        process = self._process = self._process or self._begun()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(text).encode() + b"\n")
            process.stdin.flush()
            said = process.stdout.read(1) if wait([process.stdout.fileno()], SEARCH_S) else b""
        except BrokenPipeError:  # it ended at the expression
            said = b""
        if not said:
            process.kill()
            raise InputError(
                f"{self._name} {reprlib.repr(self._text)}: searching a text of {len(text):,} characters takes more "
                f"than {SEARCH_S:g} s or {SEARCH_BYTES >> 30} GiB; expected a simpler expression, without "
                "repetitions of repetitions"
            )
        return said == b"1"

    def _begun(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        weakref.finalize(self, _end, process)
        assert process.stdin is not None
        process.stdin.write(json.dumps(self._text).encode() + b"\n")
        return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    process.wait()


Check = Callable[[Demonstration], bool]


@dataclass(frozen=True)
class Conditions:
    """Conditions on a demonstration: it is chosen if it meets every one that is given.

    Attributes:
        from_role: role that the source states.
        from_task: task that the source states.
        success: whether the episode succeeded (`succeeded`).
        min_states, max_states: states of the trajectory, both ends included.
        goal: a regular expression, searched in the instruction; case is ignored.
        not_goal: one that must not be found there.
        package: patterns of packages (`*`, `?`, `[…]`); some screen must show a node of one of them.
        not_package: patterns; no screen may show a node of any of them.

    Raises:
        InputError: an expression that is none, or lengths below 1 or the wrong way round.
    """

    from_role: Role | None = None
    from_task: str | None = None
    success: bool | None = None
    min_states: int | None = None
    max_states: int | None = None
    goal: str | None = None
    not_goal: str | None = None
    package: tuple[str, ...] = ()
    not_package: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("goal", "not_goal"):
            if getattr(self, name) is not None:
                TextPattern(getattr(self, name), _option(name))
        for name in ("min_states", "max_states"):
            length = getattr(self, name)
            if length is not None and length < 1:
                raise InputError(f"{_option(name)} {length}; expected at least 1")
        if self.min_states is not None and self.max_states is not None and self.min_states > self.max_states:
            raise InputError(
                f"--min-states {self.min_states} above --max-states {self.max_states}; expected at most that"
            )

    def checks(self) -> Iterator[tuple[str, Check]]:
        """The given conditions, each as its name and a test, the cheap ones first: screens are parsed last."""
        if self.from_role is not None:
            yield f"role {self.from_role}", lambda item: item.role == self.from_role
        if self.from_task is not None:
            yield f"task '{self.from_task}'", lambda item: item.task == self.from_task
        if self.success is not None:
            yield "success" if self.success else "failure", lambda item: succeeded(item) is self.success
        low, high = self.min_states, self.max_states
        if low is not None:
            yield f"at least {low} states", lambda item: len(item.trajectory.states) >= low
        if high is not None:
            yield f"at most {high} states", lambda item: len(item.trajectory.states) <= high
        if self.goal is not None:
            goal = TextPattern(self.goal, _option("goal"))
            yield f"goal '{self.goal}'", lambda item: goal.found(item.trajectory.extra_info)
        if self.not_goal is not None:
            other = TextPattern(self.not_goal, _option("not_goal"))
            yield f"no goal '{self.not_goal}'", lambda item: not other.found(item.trajectory.extra_info)
        if self.package:
            yield f"package {' or '.join(self.package)}", lambda item: shows(item, self.package)
        if self.not_package:
            yield f"no package {' or '.join(self.not_package)}", lambda item: not shows(item, self.not_package)


@dataclass
class Funnel:
    """The number of demonstrations that met each condition, of those that met the ones before it.

    Attributes:
        seen: all of them.
        left: by condition, in the order of `Conditions.checks`, how many were left after it.
    """

    conditions: Conditions
    seen: int = 0
    left: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._checks = list(self.conditions.checks())
        self.left = {name: 0 for name, _ in self._checks}

    def passes(self, demonstration: Demonstration) -> bool:
        """Whether a demonstration meets every condition; counts how far it comes."""
        self.seen += 1
        for name, check in self._checks:
            if not check(demonstration):
                return False
            self.left[name] += 1
        return True

    def emptied_by(self) -> str:
        """The condition that nothing met, and what came to it; "" if something met them all."""
        before = self.seen
        for name, count in self.left.items():
            if count == 0:
                return f"{name}: met by none of the {before} that came to it, of {self.seen} in all"
            before = count
        return ""


def succeeded(demonstration: Demonstration) -> bool:
    """Whether the episode reached its goal: its true rewards add up to more than 0, or, if the source has none,
    the environment ended it (`terminated`)."""
    trajectory = demonstration.trajectory
    if trajectory.rewards is not None:
        return float(trajectory.rewards.sum()) > 0
    return trajectory.terminated


def shows(demonstration: Demonstration, patterns: Sequence[str]) -> bool:
    """Whether some screen has a node of a package that fits one of the patterns.

    Raises:
        InputError: states that are no screens, or a screen that cannot be read.
    """
    from grace_irl.states.ui.markup import parse

    trajectory = demonstration.trajectory
    where = trajectory.source or "trajectory"
    if not trajectory.state_kind.annotated:
        raise InputError(f"{where}: {trajectory.kind} states show no app; expected screens (kind ui) for --package")
    met: dict[str, bool] = {}  # screens of an episode share their packages
    for step, state in enumerate(trajectory.states):
        for node in parse(bytes(state), f"{where}, screen {step}").iter("node"):
            package = str(node.get("package", ""))
            if package not in met:
                met[package] = any(fnmatchcase(package, pattern) for pattern in patterns)
            if met[package]:
                return True
    return False


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
