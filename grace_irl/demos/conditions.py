"""Conditions on demonstrations: which are chosen, and how many come as far as each condition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from grace_irl.demos.pattern import Pattern
from grace_irl.demos.trajectory import Demonstration, Role
from grace_irl.errors import InputError

Check = Callable[[Demonstration], bool]


@dataclass(frozen=True)
class Conditions:
    """What a demonstration must meet to be chosen: everything that is given, and nothing where nothing is.

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
                Pattern(getattr(self, name), _option(name))
        for name in ("min_states", "max_states"):
            length = getattr(self, name)
            if length is not None and length < 1:
                raise InputError(f"{_option(name)} {length}; expected at least 1")
        if self.min_states is not None and self.max_states is not None and self.min_states > self.max_states:
            raise InputError(
                f"--min-states {self.min_states} above --max-states {self.max_states}; expected at most that"
            )

    def checks(self) -> Iterator[tuple[str, Check]]:
        """What is given, as its name and a test, the cheap ones first: screens are parsed last."""
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
            goal = Pattern(self.goal, _option("goal"))
            yield f"goal '{self.goal}'", lambda item: goal.found(item.trajectory.extra_info)
        if self.not_goal is not None:
            other = Pattern(self.not_goal, _option("not_goal"))
            yield f"no goal '{self.not_goal}'", lambda item: not other.found(item.trajectory.extra_info)
        if self.package:
            yield f"package {' or '.join(self.package)}", lambda item: shows(item, self.package)
        if self.not_package:
            yield f"no package {' or '.join(self.not_package)}", lambda item: not shows(item, self.not_package)


@dataclass
class Funnel:
    """How many demonstrations met each condition, of those that met the ones before it.

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
        """The condition that nothing met, and what came to it; "" where something met them all."""
        before = self.seen
        for name, count in self.left.items():
            if count == 0:
                return f"{name}: met by none of the {before} that came to it, of {self.seen} in all"
            before = count
        return ""


def succeeded(demonstration: Demonstration) -> bool:
    """Whether the episode reached its goal: its true rewards add up to more than 0, or, where the source has none,
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
    from grace_irl.demos.ui.markup import parse

    trajectory = demonstration.trajectory
    where = trajectory.source or "trajectory"
    if trajectory.kind != "ui":
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
