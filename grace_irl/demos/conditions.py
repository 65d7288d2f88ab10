"""Conditions that select demonstrations, and the number of demonstrations left after each condition."""

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
"""Time limit in seconds for one search of a text by `TextPattern.found`. A search with backtracking can take very long,
and Python cannot stop a search from another thread."""

SEARCH_BYTES = 1 << 30
"""Maximum size in bytes of the address space of the child process in which `TextPattern.found` searches a text. A
search with backtracking can need much memory."""

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
    """A Python regular expression that ignores case.

    A child process runs the searches, because a process can be killed if a search takes too long. The process starts
    with the first search and ends when this object is deleted.

    Args:
        text: the expression.
        name: name of the option or key that holds the expression, for messages.

    Raises:
        InputError: `text` is not a valid expression.
    """

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name
        self._process: subprocess.Popen[bytes] | None = None
        try:
            with warnings.catch_warnings():  # warnings about syntax whose meaning will change in Python
                warnings.simplefilter("ignore")
                re.compile(text, re.IGNORECASE)
        except (re.error, OverflowError, RecursionError, ValueError) as error:  # ValueError: invalid flags
            raise InputError(
                f"{name} {reprlib.repr(text)}: no regular expression ({str(error)[:200]}); expected one of Python's"
            ) from None

    def found(self, text: str) -> bool:
        """Whether the expression matches somewhere in a text.

        Raises:
            InputError: the search takes too much time or memory.
        """
        process = self._process = self._process or self._begun()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(text).encode() + b"\n")
            process.stdin.flush()
            said = process.stdout.read(1) if wait([process.stdout.fileno()], SEARCH_S) else b""
        except BrokenPipeError:  # the process ended while it compiled the expression
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
    process.communicate()  # closes the pipes, even if stdin holds bytes that the process can no longer read, and waits


Check = Callable[[Demonstration], bool]


@dataclass(frozen=True)
class Conditions:
    """Conditions that a demonstration must meet to be chosen. None and () set no condition.

    Attributes:
        from_role: role that the demonstration must have.
        from_task: task that the demonstration must have.
        success: True if the episode must have succeeded, False if it must have failed (see `succeeded`).
        min_states, max_states: smallest and largest number of states in the trajectory.
        goal: regular expression that must match somewhere in the instruction, ignoring case.
        not_goal: regular expression that must not match anywhere in the instruction, ignoring case.
        package: shell patterns (`*`, `?`, `[…]`) for names of app packages. At least one screen must show a node of a
            matching package.
        not_package: shell patterns for names of app packages. No screen may show a node of a matching package.

    Raises:
        InputError: an invalid expression, a number of states below 1, or `min_states` above `max_states`.
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
        """A pair of name and test for each condition that is set.

        Tests that parse screens come last, because they are slow.
        """
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
    """Counts of the demonstrations that are left after each condition.

    Attributes:
        conditions: the conditions.
        seen: number of demonstrations that were tested.
        left: map from the name of a condition to the number of demonstrations that met this condition and all earlier
            conditions. The conditions have the order of `Conditions.checks`.
    """

    conditions: Conditions
    seen: int = 0
    left: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._checks = list(self.conditions.checks())
        self.left = {name: 0 for name, _ in self._checks}

    def passes(self, demonstration: Demonstration) -> bool:
        """Test whether a demonstration meets every condition, and update the counts."""
        self.seen += 1
        for name, check in self._checks:
            if not check(demonstration):
                return False
            self.left[name] += 1
        return True

    def emptied_by(self) -> str:
        """A message about the first condition that left no demonstration; "" if there is no such condition."""
        before = self.seen
        for name, count in self.left.items():
            if count == 0:
                of_all = f" that met the earlier conditions ({self.seen} in all)" if before < self.seen else ""
                return f"{name}: met by none of the {before} demonstrations{of_all}"
            before = count
        return ""


def succeeded(demonstration: Demonstration) -> bool:
    """Whether the episode succeeded: the sum of its rewards is above 0.

    An episode without rewards succeeded if the environment ended it (`terminated`).
    """
    trajectory = demonstration.trajectory
    if trajectory.rewards is not None:
        return float(trajectory.rewards.sum()) > 0
    return trajectory.terminated


def shows(demonstration: Demonstration, patterns: Sequence[str]) -> bool:
    """Whether a screen of the demonstration has a node whose package matches one of the patterns.

    Raises:
        InputError: states that are not screens, or a screen that cannot be read.
    """
    from grace_irl.states.ui.markup import parse

    trajectory = demonstration.trajectory
    where = trajectory.source or "trajectory"
    if not trajectory.state_kind.annotated:
        raise InputError(f"{where}: {trajectory.kind} states show no app; expected screens (kind ui) for --package")
    met: dict[str, bool] = {}  # results by package; most screens of an episode share packages
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
