"""The label rule that fits a set of demonstrations, decided in one way for every file format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata
from grace_irl.errors import InputError
from grace_irl.states import kind_named

# Names of environments without namespace and version, in lower case: Farama's Gymnasium, Gymnasium-Robotics, MiniGrid
# and BabyAI, and the data sets of D4RL and Minari.
GOAL_REACHING = (
    *("babyai", "minigrid", "miniworld", "fetch", "antmaze", "pointmaze", "maze2d", "handreach", "handmanipulate"),
    *("adroidhand", "frankakitchen", "kitchen", "mountaincar", "acrobot", "frozenlake", "cliffwalking", "taxi"),
    "android",
)
"""Beginnings of the names of environments whose episodes are for reaching a goal."""
CONTINUING = (
    *("hopper", "halfcheetah", "walker2d", "ant", "humanoid", "humanoidstandup", "swimmer", "inverted", "reacher"),
    *("invertedpendulum", "inverteddoublependulum", "pusher", "cartpole", "pendulum", "bipedalwalker", "cheetah"),
)
"""First words of the names of environments in which every state of an expert is a good one."""
GOAL_FIELD = "desired_goal"
"""Name of the part of an observation that says what is to be reached, in Gymnasium's goal environments."""

MOST_NAMED = 2


@dataclass(frozen=True)
class RuleChoice:
    """A label rule with the reason for it.

    Attributes:
        rule: which expert states are positive.
        reason: in a few words.
    """

    rule: LabelRule
    reason: str

    @property
    def line(self) -> str:
        """Rule, reason and how to choose otherwise."""
        others = ", ".join(rule for rule in ("all", "last", "goal") if rule != self.rule)
        return f"label rule {self.rule}: {self.reason} (--label chooses otherwise: {others})"


@dataclass(frozen=True)
class _Vote:
    """The rule that one file calls for.

    Attributes:
        rule: the rule.
        by: whether the file states it, or its environment is known.
        name: of the file, or of the environment.
    """

    rule: LabelRule
    by: Literal["file", "environment"]
    name: str

    def __str__(self) -> str:
        return f"{self.name} states {self.rule!r}" if self.by == "file" else f"{self.name} calls for {self.rule!r}"


@dataclass
class RuleEvidence:
    """Evidence for the label rule of a set, gathered in one pass.

    Attributes:
        kind: name of the kind of the states.
        origins: name and metadata of each file that may hold experts.
        experts, negatives: trajectories.
        ended, cut: experts whose episode the environment ended, or a time limit.
        negatives_cut: negatives whose episode a time limit ended.
        marked, with_goals: experts whose goal states are marked, and those that have some.
    """

    kind: str
    origins: Sequence[tuple[str, Metadata]]
    experts: int = 0
    negatives: int = 0
    ended: int = 0
    cut: int = 0
    negatives_cut: int = 0
    marked: int = 0
    with_goals: int = 0

    @classmethod
    def of(cls, demonstrations: Demonstrations) -> RuleEvidence:
        """All that a set says."""
        found = cls(demonstrations.metadata.kind, demonstrations.origins or (("", demonstrations.metadata),))
        for item in demonstrations:
            found.add(item)
        return found

    def add(self, demonstration: Demonstration) -> None:
        """Counts one demonstration."""
        trajectory = demonstration.trajectory
        cut = trajectory.truncated and not trajectory.terminated
        if demonstration.role == "negative":
            self.negatives += 1
            self.negatives_cut += cut
            return
        self.experts += 1
        self.ended += trajectory.terminated
        self.cut += cut
        self.marked += demonstration.goals is not None
        self.with_goals += bool(demonstration.goals)

    def choice(self) -> RuleChoice:
        """The rule that fits; see `choose_rule`.

        Raises:
            InputError: two files or environments call for different rules.
        """
        votes = [vote for name, metadata in self.origins if (vote := _vote(name, metadata)) is not None]
        _require_one_rule(votes)
        stated = [Path(vote.name).name for vote in votes if vote.by == "file"]
        if stated:
            verb = "state" if len(stated) > 1 else "states"
            return RuleChoice(votes[0].rule, f"{_listed(stated)} {verb} it" if stated[0] else "the data state it")
        if self.with_goals and self.marked == self.experts:
            return RuleChoice("goal", f"goal states are marked in all {self.experts} expert trajectories")
        if votes:
            return RuleChoice(votes[0].rule, self._of_environments(votes))
        if (found := self._by_endings()) is not None:
            return found
        kind = kind_named(self.kind)
        if kind.label == "last":
            return RuleChoice("last", f"tasks on {kind.plural} end where a goal is reached")
        return RuleChoice("all", "no goal is known of, so every state of an expert counts as a good one")

    def _of_environments(self, votes: Sequence[_Vote]) -> str:
        names = list(dict.fromkeys(vote.name for vote in votes))
        if votes[0].rule == "all":
            return f"{_listed(names)} {'have' if len(names) > 1 else 'has'} no goal at which an episode ends"
        ended = f"{self.ended} of {self.experts} expert trajectories"
        return f"episodes of {_listed(names)} are for reaching a goal; the environment ended {ended}"

    def _by_endings(self) -> RuleChoice | None:
        """The rule by who ended the episodes.

        That the environment ended the experts' episodes says nothing by itself: a fall ends them, too, and many data
        sets of others mark a time limit in the same way. So it counts only beside negatives which a time limit ended.
        """
        if self.experts and self.cut == self.experts:
            return RuleChoice("all", f"a time limit ended all {self.experts} expert trajectories, so none shows a goal")
        contrast = self.negatives and self.negatives_cut == self.negatives
        if contrast and self.experts and self.ended == self.experts:
            return RuleChoice(
                "last",
                f"the environment ended all {self.experts} expert trajectories, and a time limit all "
                f"{self.negatives} negative ones",
            )
        return None


def choose_rule(demonstrations: Demonstrations, asked: LabelRule | Literal[""] = "") -> RuleChoice:
    """Decides which expert states are positive.

    The first of these that says something decides:

    1. the user (`--label`);
    2. what the files with expert trajectories state;
    3. goal states, if every expert trajectory has its own marked;
    4. the environments that the files name, if they are known ones, or observations with a desired goal;
    5. how episodes ended: the environment ended the experts' and a time limit the negatives', or a time limit ended
       all of the experts';
    6. the kind of state.

    True rewards are never looked at: the search must not learn from them, and a set without them has the same rule.

    Args:
        demonstrations: the set.
        asked: the user's choice, or "".

    Raises:
        InputError: two files or environments call for different rules.
    """
    return RuleChoice(asked, "chosen with --label") if asked else RuleEvidence.of(demonstrations).choice()


def rule_of(metadata: Metadata) -> LabelRule | Literal[""]:
    """The rule that metadata state, or else that of their environment; "" if neither says one."""
    vote = _vote("", metadata)
    return vote.rule if vote is not None else ""


def earlier_rule(demonstrations: Demonstrations) -> LabelRule:
    """The rule that earlier versions chose if nobody stated one, for recordings and comparisons that they began."""
    from grace_irl.demos.minari.source import dataset_folder  # what else is here needs no reader

    stated = demonstrations.metadata.label
    minari = any(name and dataset_folder(name) is not None for name, _ in demonstrations.origins)
    return stated or (demonstrations.metadata.state_kind.label if minari else "all")


def with_rule(demonstrations: Demonstrations, rule: LabelRule) -> Demonstrations:
    """The set with a rule in its metadata, which every later stage goes by."""
    return replace(demonstrations, metadata=replace(demonstrations.metadata, label=rule))


def require_roles_for(choice: RuleChoice, demonstrations: Demonstrations) -> None:
    """Refuses a set without what the rule needs: experts, and for "all" also negative trajectories.

    For "last" and "goal" the other states of the experts are negative.

    Raises:
        InputError: no expert trajectory, or none that is negative for rule "all".
    """
    if not demonstrations.select(role="expert"):
        raise InputError("demonstrations: no expert trajectory; expected at least one: name a file with --demos")
    if choice.rule == "all" and not demonstrations.select(role="negative"):
        raise InputError(
            f"demonstrations: no negative trajectory, and label rule all ({choice.reason}) makes every expert state "
            "positive; expected at least one: name a file with --negatives, or choose --label last if experts end at a "
            "goal"
        )


def untested(demonstrations: Demonstrations) -> str:
    """The warning of what a set without negative trajectories leaves untested, in one line; "" if it has some.

    Args:
        demonstrations: split.
    """
    if demonstrations.select(role="negative") or not demonstrations.items:
        return ""
    held = len(demonstrations.select(split="held_out"))
    tested = f"{held} held-out expert trajectories" if held else "no held-out trajectory"
    return (
        "no negative trajectories: the other states of experts are the negative ones, so nothing here tells goal "
        f"states from states that experts never visit; accuracy is tested on {tested} of this kind only"
    )


def environment_rule(name: str) -> LabelRule | Literal[""]:
    """The rule that fits a known environment, whatever its namespace and version; "" for others.

    Args:
        name: Gymnasium id, such as "D4RL/antmaze-umaze-v2"; a function in a file of the user's own is not known.
    """
    if ".py" in name:
        return ""
    base = re.split(r"[/:]", name)[-1].casefold()
    if base.startswith(GOAL_REACHING):
        return "last"
    return "all" if re.split(r"[-_]", base)[0] in CONTINUING else ""


def _vote(name: str, metadata: Metadata) -> _Vote | None:
    if metadata.label:
        return _Vote(metadata.label, "file", name)
    rule = environment_rule(metadata.environment)
    if rule:
        return _Vote(rule, "environment", metadata.environment)
    if any(field.startswith(GOAL_FIELD) for field in metadata.fields):
        return _Vote("last", "environment", metadata.environment or f"an environment with a {GOAL_FIELD}")
    return None


def _require_one_rule(votes: Sequence[_Vote]) -> None:
    other = next((vote for vote in votes if vote.rule != votes[0].rule), None)
    if other is not None:
        raise InputError(
            f"{votes[0]}, and {other}; expected one label rule in a fit: choose it with --label, or fit them apart"
        )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
