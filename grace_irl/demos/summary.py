"""A summary of a set of demonstrations, gathered in one pass over data of any size."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from grace_irl.demos.files import SetOfFiles, expand, passed_over
from grace_irl.demos.foreign.columns import Columns
from grace_irl.demos.header import Header, merge, read_notes, role_of
from grace_irl.demos.label_rule import RuleEvidence
from grace_irl.demos.split import has_two_sides
from grace_irl.demos.trajectory import Demonstration, Metadata, Role, Split
from grace_irl.errors import InputError
from grace_irl.states.kind import Census, KindChoice

EXAMPLES = 5
"""Maximum number of examples in each list of the summary, such as the instructions of a group."""


@dataclass
class GroupSummary:
    """Counts of the trajectories of one task and role.

    Attributes:
        trajectories: number of trajectories.
        held_out: number of held-out trajectories.
        states: number of states in all trajectories.
        shortest, longest: number of states in the shortest and the longest trajectory.
        terminated: number of trajectories that the environment ended.
        truncated: number of trajectories that a time limit ended.
        returns: pair of the sum of all rewards and the number of trajectories with rewards.
        instructions: number of trajectories with each instruction.
        stated: the splits that trajectories state; None for trajectories that state none.
        first: digest of the first trajectory.
        differ: whether at least two trajectories differ.
    """

    trajectories: int = 0
    held_out: int = 0
    states: int = 0
    shortest: int = 0
    longest: int = 0
    terminated: int = 0
    truncated: int = 0
    returns: tuple[float, int] = (0.0, 0)
    instructions: Counter[str] = field(default_factory=Counter)
    stated: set[Split | None] = field(default_factory=set)
    first: str = ""
    differ: bool = False

    def add(self, demonstration: Demonstration) -> None:
        """Count one demonstration."""
        trajectory = demonstration.trajectory
        length = len(trajectory.states)
        self.shortest = min(self.shortest or length, length)
        self.longest = max(self.longest, length)
        self.trajectories += 1
        self.held_out += demonstration.split == "held_out"
        self.states += length
        self.terminated += trajectory.terminated
        self.truncated += trajectory.truncated
        if trajectory.rewards is not None:
            total, count = self.returns
            self.returns = (total + float(trajectory.rewards.sum()), count + 1)
        if trajectory.extra_info:
            self.instructions[trajectory.extra_info] += 1
        self.stated.add(demonstration.split)
        if not self.differ:
            self.first = self.first or trajectory.digest
            self.differ = trajectory.digest != self.first

    def to_json(self) -> dict[str, Any]:
        """The counts, the mean return and the most frequent instructions as JSON values."""
        total, count = self.returns
        texts = [text for text, _ in self.instructions.most_common(EXAMPLES)]
        about = {"mean_return": total / count if count else None, "instructions": texts}
        counts = {name: value for name, value in vars(self).items() if isinstance(value, int) and name != "differ"}
        return {**counts, **about, "distinct_instructions": len(self.instructions)}


def _why_unsplit(group: GroupSummary) -> str:
    """The reason that the trajectories of a group cannot be split."""
    (side,) = group.stated
    if group.trajectories == 1:
        return "one trajectory"
    return f"all {group.trajectories} trajectories {'are equal' if side is None else f'state the split {side!r}'}"


@dataclass
class DemosSummary:
    """The data that `grace-irl demos inspect` shows.

    Attributes:
        path: file, folder or Minari id that was read.
        files: demo files at the path.
        metadata: metadata of the set.
        groups: one summary per task and role, in order of first appearance.
        shapes: number of trajectories for each shape and dtype of states.
        values: statistics of the states' values; None before the first demonstration.
        has: number of trajectories with each kind of optional data, by name: actions, rewards, log_probs, goals,
            screenshots, action_texts, step_instructions.
        samples: first demonstration of each role.
        evidence: evidence for the label rule (the rule for positive states), from all demonstrations.
        choice: the chosen kind of states and the reason, if their shape and dtype fit several kinds; else None.
        silent: files that state no role in their data or in their names.
        notes: lines about how the files were read.
        goals: TOML file in which the user marks goal states, or "".
        kind: the user's choice of the states' kind, or "".
        columns: the user's choice of columns.
    """

    path: str
    files: tuple[str, ...]
    metadata: Metadata
    groups: dict[tuple[str, str], GroupSummary] = field(default_factory=dict)
    shapes: Counter[tuple[tuple[int, ...], str]] = field(default_factory=Counter)
    values: Census | None = None
    has: Counter[str] = field(default_factory=Counter)
    samples: dict[str, Demonstration] = field(default_factory=dict)
    evidence: RuleEvidence = field(kw_only=True)
    choice: KindChoice | None = None
    silent: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    goals: str = ""
    kind: str = ""
    columns: Columns = field(default_factory=Columns)

    @property
    def label(self) -> str:
        """The label rule and its reason, or the reason why the rule is undecided."""
        if self.silent:
            return "undecided: some trajectories have no role"
        try:
            choice = self.evidence.choice()
            return f"{choice.rule}: {choice.reason}"
        except InputError as error:
            return f"undecided: {error}"

    @property
    def command(self) -> str:
        """The command that fits a reward to these demonstrations; "" if some files state a role and others do not.

        If no file states a role, the files are probably the experts'. Words in capitals stand for what these
        demonstrations lack.
        """
        if self.silent and len(self.silent) < len(self.files):
            return ""
        words = ["grace-irl", "fit", "--experts" if self.silent else "--demos", self.path]
        chosen = {
            "--kind": self.kind,
            "--state-columns": ",".join(self.columns.state),
            "--episode-column": self.columns.episode,
            "--label": "goal" if self.goals else "",
            "--goals": self.goals,
        }
        flags = [*chosen.items(), *self._lacking().items()]
        return shlex.join([*words, *(word for pair in flags if pair[1] for word in pair)])

    def _lacking(self) -> dict[str, str]:
        """Flags without which `fit` refuses these demonstrations.

        Each has a word in capitals for what the user must name, or "0" for no held-out set, or "" if it is not needed.
        """
        try:
            rule = "goal" if self.goals else self.evidence.choice().rule
        except InputError:  # files that state different rules
            rule = None
        unmarked = rule == "goal" and not self.goals and not self.evidence.shows_goals
        alone = rule in (None, "all") and not self.evidence.negatives
        unsplit = self._unsplit()
        return {
            "--label": "" if rule else "RULE",
            "--goals": "GOALS" if unmarked else "",
            "--experts": "" if self.evidence.experts else "EXPERTS",
            "--negatives": "NEGATIVES" if alone else "",
            "--held-out": "0" if unsplit and all(group.stated != {"held_out"} for group in unsplit.values()) else "",
        }

    def _unsplit(self) -> dict[tuple[str, str], GroupSummary]:
        """The groups that cannot be split into training and held-out trajectories."""
        return {
            name: group for name, group in self.groups.items() if not has_two_sides(group.stated, differ=group.differ)
        }

    @property
    def unsplit(self) -> tuple[str, ...]:
        """A line for each group that cannot be split into training and held-out trajectories, with the reason."""
        return tuple(
            f"task {task!r}, role {role}: {_why_unsplit(group)}, so no trajectory can be held out from training"
            for (task, role), group in self._unsplit().items()
        )

    def add(self, demonstration: Demonstration, *, silent: bool = False) -> None:
        """Count one demonstration.

        Args:
            demonstration: the demonstration.
            silent: whether the role is unknown. The demonstration's `role` is then a placeholder.
        """
        trajectory = demonstration.trajectory
        kind, states = trajectory.state_kind, trajectory.states
        if kind.name != self.metadata.kind:
            raise InputError(
                f"{trajectory.source}: {kind.name} states in a set of {self.metadata.kind} states; "
                "expected one kind and width"
            )
        role = "not stated" if silent else demonstration.role
        self.groups.setdefault((demonstration.task, role), GroupSummary()).add(demonstration)
        self.shapes[kind.shape(states), kind.type_name(states)] += 1
        if self.values is None:
            self.values = kind.census(states)
        self.values.add(states, trajectory.source)
        for name in ("actions", "rewards", "log_probs"):
            self.has[name] += getattr(trajectory, name) is not None
        self.has["goals"] += demonstration.goals is not None
        if kind.annotated:
            for name in ("screenshots", "action_texts", "step_instructions"):
                self.has[name] += bool(getattr(trajectory, name))
        self.samples.setdefault(role, demonstration)
        self.evidence.add(demonstration)

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON values."""
        groups = [{"task": task, "role": role, **group.to_json()} for (task, role), group in self.groups.items()]
        about: dict[str, Any] = {
            "path": self.path,
            "files": list(self.files),
            "kind": self.metadata.kind,
            "kind_reason": "" if self.choice is None else self.choice.reason,
            "environment": self.metadata.environment,
            "view": self.metadata.view,
            "label": self.metadata.label,
            "command": self.command,
            "notes": [*self.notes, *self.unsplit],
            "label_rule": self.label,
            "trajectories": sum(group.trajectories for group in self.groups.values()),
            "states": sum(group.states for group in self.groups.values()),
            "groups": groups,
            "shapes": [{"shape": list(s), "dtype": d, "trajectories": n} for (s, d), n in self.shapes.items()],
            "has": dict(self.has),
        }
        return about | (self.values.to_json(self.metadata.fields, EXAMPLES) if self.values else {})


def summarise(path: str | Path, kind: str = "", columns: Columns = Columns(), goals: str = "") -> DemosSummary:
    """Summarise all demonstrations at a path.

    Args:
        path: file, folder or Minari id.
        kind: name of the states' kind, such as "grid", if the files state none; "" chooses by the values of the states.
        columns: the user's choice of columns, for tables.
        goals: TOML file in which the user marks goal states, or "".

    Raises:
        InputError: data that cannot be used, or files of different kinds.
    """
    files = SetOfFiles(expand(path), kind, columns=columns)
    names = tuple(map(str, files.files))
    headers = [source.header for source in files]
    metadata = merge(headers, names)
    roles = [_role(header, name) for header, name in zip(headers, names, strict=True)]
    origins = [
        (name, header.metadata) for name, header, role in zip(names, headers, roles, strict=True) if role != "negative"
    ]
    silent = tuple(name for name, role in zip(names, roles, strict=True) if role == "")
    by_name = [name for name, header, role in zip(names, headers, roles, strict=True) if role and not header.role]
    summary = DemosSummary(
        str(path),
        names,
        metadata,
        evidence=RuleEvidence(metadata.kind, origins),
        choice=files.choice,
        silent=silent,
        notes=(*passed_over([path]), *read_notes(headers, by_name)),
        goals=goals,
        kind=kind,
        columns=columns,
    )
    for place, name in enumerate(names):
        for demonstration in files.demonstrations(place, "expert" if name in silent else None):
            summary.add(demonstration, silent=name in silent)
    return summary


def _role(header: Header, name: str) -> Role | Literal[""] | None:
    """The role of a file's episodes; None if each episode states its own role, "" if the role is unknown."""
    try:
        return role_of(header, name)
    except InputError:
        return ""
