"""The choice of the label rule for a set of demonstrations.

A label rule decides which expert states are positive: all states ("all"), the last state ("last"), or the marked goal
states ("goal"). Positive states should get a high reward. The rule is chosen in the same way for all file formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast, get_args

from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata
from grace_irl.errors import InputError
from grace_irl.states import kind_named

# Environment names in lower case, without namespace and version. They come from Farama's Gymnasium,
# Gymnasium-Robotics, MiniGrid and BabyAI, and from the data sets of D4RL and Minari.
GOAL_REACHING = (
    *("babyai", "minigrid", "miniworld", "fetch", "antmaze", "pointmaze", "maze2d", "handreach", "handmanipulate"),
    *("adroidhand", "frankakitchen", "kitchen", "mountaincar", "acrobot", "frozenlake", "cliffwalking", "taxi"),
    "android",
)
"""Name prefixes of environments in which the agent must reach a goal."""
CONTINUING = (
    *("hopper", "halfcheetah", "walker2d", "ant", "humanoid", "humanoidstandup", "swimmer", "inverted", "reacher"),
    *("invertedpendulum", "inverteddoublependulum", "pusher", "cartpole", "pendulum", "bipedalwalker", "cheetah"),
)
"""First words of environment names. No goal ends an episode in these environments: every expert state is positive."""
GOAL_FIELD = "desired_goal"
"""Name of the observation part with the goal, in Gymnasium's goal environments."""

MOST_NAMED = 2  # maximum number of file or environment names in a message


@dataclass(frozen=True)
class RuleChoice:
    """A label rule with the reason for its choice.

    Attributes:
        rule: label rule, which decides the positive expert states.
        reason: reason in a few words.
    """

    rule: LabelRule
    reason: str

    @property
    def line(self) -> str:
        """One line for the user: the rule, the reason and the other rules."""
        others = ", ".join(rule for rule in ("all", "last", "goal") if rule != self.rule)
        return f"label rule {self.rule}: {self.reason} (--label chooses otherwise: {others})"


@dataclass(frozen=True)
class _Vote:
    """The label rule that one file supports.

    Attributes:
        rule: the rule.
        by: "file" if the file's metadata contain the rule, "environment" if the rule follows from the environment.
        name: name of the file or of the environment.
    """

    rule: LabelRule
    by: Literal["file", "environment"]
    name: str

    def __str__(self) -> str:
        return f"{self.name} states {self.rule!r}" if self.by == "file" else f"{self.name} calls for {self.rule!r}"


@dataclass
class RuleEvidence:
    """Evidence for the label rule of a set of demonstrations, collected in one pass.

    Attributes:
        kind: name of the states' kind, such as "grid".
        origins: name and metadata of each file, without files of role "negative".
        parts: names of the states' parts; a state without named parts has one part, "".
        experts, negatives: number of expert and of negative trajectories.
        ended: number of expert trajectories that the environment ended.
        cut: number of expert trajectories that a time limit ended.
        negatives_cut: number of negative trajectories that a time limit ended.
        marked: number of expert trajectories with a list of goal states, which may be empty.
        with_goals: number of expert trajectories with at least one goal state.
    """

    kind: str
    origins: Sequence[tuple[str, Metadata]]
    parts: tuple[str, ...] = ()
    experts: int = 0
    negatives: int = 0
    ended: int = 0
    cut: int = 0
    negatives_cut: int = 0
    marked: int = 0
    with_goals: int = 0

    @classmethod
    def of(cls, demonstrations: Demonstrations) -> RuleEvidence:
        """The evidence from a whole set."""
        found = cls(demonstrations.metadata.kind, demonstrations.origins or (("", demonstrations.metadata),))
        for item in demonstrations:
            found.add(item)
        return found

    def add(self, demonstration: Demonstration) -> None:
        """Count one demonstration."""
        trajectory = demonstration.trajectory
        self.parts = self.parts or tuple(trajectory.state_kind.parts(trajectory.states))
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

    @property
    def shows_goals(self) -> bool:
        """Whether goal states are marked in all expert trajectories, and at least one has a goal state."""
        return bool(self.with_goals and self.marked == self.experts)

    def choice(self) -> RuleChoice:
        """The label rule for this evidence. The docstring of `choose_rule` lists the criteria in order.

        Raises:
            InputError: two files or environments support different rules.
        """
        votes = [vote for name, metadata in self.origins if (vote := _vote(name, metadata, self.parts)) is not None]
        _require_one_rule(votes)
        stated = [Path(vote.name).name for vote in votes if vote.by == "file"]
        if stated:
            verb = "state" if len(stated) > 1 else "states"
            return RuleChoice(votes[0].rule, f"{_listed(stated)} {verb} it" if stated[0] else "the data state it")
        if self.shows_goals:
            return RuleChoice("goal", f"goal states are marked in all {self.experts} expert trajectories")
        if votes:
            return RuleChoice(votes[0].rule, self._of_environments(votes))
        if (found := self._by_endings()) is not None:
            return found
        kind = kind_named(self.kind)
        if kind.label == "last":
            return RuleChoice("last", f"tasks on {kind.plural} end where a goal is reached")
        return RuleChoice("all", "no goal is known, so every expert state is positive")

    def _of_environments(self, votes: Sequence[_Vote]) -> str:
        names = list(dict.fromkeys(vote.name for vote in votes))
        if votes[0].rule == "all":
            return f"{_listed(names)} {'have' if len(names) > 1 else 'has'} no goal at which an episode ends"
        ended = f"{self.ended} of {self.experts} expert trajectories"
        return f"episodes of {_listed(names)} end when a goal is reached; the environment ended {ended}"

    def _by_endings(self) -> RuleChoice | None:
        """The rule from the way the episodes ended, or None if the endings do not decide.

        The rule is "all" if a time limit ended all expert episodes. The rule is "last" if the environment ended all
        expert episodes and a time limit ended all negative episodes. For "last", the endings of experts are not enough:
        a fall also ends an episode, and many data sets mark a time limit as an end by the environment.
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


def choose_rule(demonstrations: Demonstrations, asked: LabelRule | Literal[""] = "", reward: str = "") -> RuleChoice:
    """Choose the label rule, which decides the positive expert states.

    The first criterion that applies decides:

    1. the user's choice (`--label`);
    2. the rule in the metadata of the files with expert trajectories;
    3. goal states: "goal" if they are marked in all expert trajectories, and at least one trajectory has a goal state;
    4. the environments of the files, if this module lists them or if their observations have a part `desired_goal`;
    5. the endings: "all" if a time limit ended all expert episodes; "last" if the environment ended all expert episodes
       and a time limit ended all negative episodes;
    6. the default rule for the kind of the states, such as "last" for grids.

    When a reward is scored, the rule of the run that found this reward comes directly after the user's choice. If that
    rule is "goal" and the data do not show goal states (criterion 3), the rule is ignored.

    The environment's rewards are not a criterion, because the search must not learn from them.

    Args:
        demonstrations: the set.
        asked: the user's choice, or "".
        reward: label rule of the run that found the reward to score; "" without such a reward or rule.

    Raises:
        InputError: two files or environments support different rules.
    """
    if asked:
        return RuleChoice(asked, "chosen with --label")
    evidence = RuleEvidence.of(demonstrations)
    if reward == "goal" and not evidence.shows_goals:
        found = evidence.choice()
        return replace(found, reason=f"{found.reason}; the reward was fitted with goal, whose states are not marked")
    if reward in get_args(LabelRule):
        return RuleChoice(cast(LabelRule, reward), "the reward was fitted with it")
    return evidence.choice()


def shown_rule(demonstrations: Demonstrations) -> RuleChoice:
    """The label rule of demonstrations that nothing is fitted to, for the statistics in prompts. Every set has one.

    Files may state different rules, and goal states may be unknown: nobody needs to settle that.
    """
    evidence = RuleEvidence.of(demonstrations)
    try:
        choice = evidence.choice()
    except InputError:
        return RuleChoice("all", "its files have different rules")
    return choice if choice.rule != "goal" or evidence.shows_goals else RuleChoice("last", "no goal states are marked")


def rule_of(metadata: Metadata, parts: Iterable[str]) -> LabelRule | Literal[""]:
    """The rule in the metadata, or else the rule for the environment, the fields or the parts; "" if there is none.

    Args:
        metadata: metadata of a file.
        parts: names of the states' parts.
    """
    vote = _vote("", metadata, parts)
    return vote.rule if vote is not None else ""


def earlier_rule(demonstrations: Demonstrations) -> LabelRule:
    """The label rule that earlier versions of grace-irl chose. A replay of a run of such a version needs this rule.

    The result is the rule in the metadata. Without one, it is the default rule of the states' kind for a set with a
    Minari dataset, and "all" for any other set.
    """
    from grace_irl.demos.minari.source import dataset_folder  # only this function needs the Minari reader

    stated = demonstrations.metadata.label
    minari = any(name and dataset_folder(name) is not None for name, _ in demonstrations.origins)
    return stated or (demonstrations.metadata.state_kind.label if minari else "all")


def with_rule(demonstrations: Demonstrations, rule: LabelRule) -> Demonstrations:
    """A copy of the set with this rule in its metadata, so that all later steps use the rule."""
    return replace(demonstrations, metadata=replace(demonstrations.metadata, label=rule))


def require_roles_for(choice: RuleChoice, demonstrations: Demonstrations) -> None:
    """Check that a set has the trajectories that the rule needs.

    Every rule needs expert trajectories. Rule "all" also needs negative trajectories. The other rules take negative
    states from the experts.

    Raises:
        InputError: no expert trajectory, or no negative trajectory for rule "all".
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
    """A one-line warning that accuracies show little without negative trajectories.

    The result is "" if the set has negative trajectories, or no trajectories at all.

    Args:
        demonstrations: the set, with a split for each trajectory.
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
    """The rule for a known environment, or "". Namespace and version of the name are ignored.

    Args:
        name: Gymnasium id, such as "D4RL/antmaze-umaze-v2", or a function in a `.py` file of the user. The result for
            a function is "".
    """
    if ".py" in name:
        return ""
    base = re.split(r"[/:]", name)[-1].casefold()
    if base.startswith(GOAL_REACHING):
        return "last"
    return "all" if re.split(r"[-_]", base)[0] in CONTINUING else ""


def _vote(name: str, metadata: Metadata, parts: Iterable[str]) -> _Vote | None:
    if metadata.label:
        return _Vote(metadata.label, "file", name)
    rule = environment_rule(metadata.environment)
    if rule:
        return _Vote(rule, "environment", metadata.environment)
    if any(word.startswith(GOAL_FIELD) for place in (*metadata.fields, *parts) for word in place.split("/")):
        return _Vote("last", "environment", metadata.environment or f"an environment with a {GOAL_FIELD}")
    return None


def _require_one_rule(votes: Sequence[_Vote]) -> None:
    other = next((vote for vote in votes if vote.rule != votes[0].rule), None)
    if other is not None:
        raise InputError(
            f"{votes[0]}, and {other}; expected one label rule in a fit: choose it with --label, or fit each by itself"
        )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
