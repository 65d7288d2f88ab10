"""Warnings about a reward's figures, and about programs that list states."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grace_irl.audit.subject import Subject
from grace_irl.audit.warning import RewardWarning
from grace_irl.evaluate.separation import EpisodeMetrics, Metrics
from grace_irl.programs.parsing import parse

WRONG = 0.1
"""Share of wrong episodes above which there is a warning."""
SINGLE = 1
"""Number of wrong episodes up to which there is no warning: a single one may be an accident."""
CHANCE = 0.6
"""Balanced accuracy below which a reward hardly tells the sides apart."""
RANKS = 0.7
"""Probability of outranking below which a reward hardly tells the sides apart."""
FALL = 0.05
"""Fall of the accuracy from training to held-out data above which there is a warning."""
RANKED = 0.95
"""Probability of outranking on held-out data from which whole episodes are told apart."""
FALL_RANKED = 0.1
"""The same fall, if held-out episodes are told apart."""
FALL_BY_EPISODE = 0.25
"""The same fall of the share of experts that are paid at their goal."""
CONSTANTS = 250
"""Number of constants that a program may have in any case. One more is allowed for each positive training state."""

ROLES = (
    "check which files are experts and which are negatives (demos inspect), and that experts do what negatives do not"
)
CLOSER = "search longer, or bring negative episodes that come close to a goal (collect --near-miss)"


def of_figures(subject: Subject) -> Iterator[RewardWarning]:
    """Warnings about a reward's figures."""
    metrics, side, episodes = subject.tested, subject.side, subject.tested.episodes
    paid = _as_often(episodes) if episodes is not None else ""
    if metrics.accuracy < CHANCE:
        accuracy = f"its balanced accuracy on {side} states is {metrics.accuracy:.2f}, and 0.5 is chance"
        yield RewardWarning("no-difference", f"the reward hardly tells the sides apart: {accuracy}", ROLES)
    elif paid:
        yield RewardWarning("no-difference", f"the reward pays {side} {paid}", ROLES)
    if episodes is not None:
        if episodes.outranks is not None and episodes.outranks.value < RANKS and metrics.accuracy >= CHANCE:
            low = f"{side} experts outrank negatives with a probability of only {episodes.outranks}"
            yield RewardWarning("no-difference", low, ROLES)
        yield from _by_episode(episodes, side)
    train = subject.separation.train
    if metrics is not train and _falls(train, metrics):
        yield RewardWarning(
            "held-out-below",
            f"accuracy falls from {train.accuracy:.3f} on training data to {metrics.accuracy:.3f} on held-out data, so "
            "the reward has learnt what is peculiar to the training episodes",
            "bring more episodes",
        )


def of_source(subject: Subject) -> Iterator[RewardWarning]:
    """A warning if a program may list the states that it pays.

    Such a program has about as many constants as there are goal states, and is worse on held-out data.
    """
    train, held_out = subject.separation.train, subject.separation.held_out
    if held_out is not None and not _falls(train, held_out):
        return
    nodes = ast.walk(parse(subject.program.source))
    values = [node.value for node in nodes if isinstance(node, ast.Constant) and not isinstance(node.value, bool)]
    constants = sum(1 + len(value) // 16 if isinstance(value, str) else 1 for value in values)
    if constants > CONSTANTS + train.experts:
        yield RewardWarning(
            "memorised",
            f"the program has about {constants} constants for {train.experts} positive training states, and may list "
            "these states",
            "bring more episodes, hold some out, and prefer a shorter program (show lists them)",
        )


def _as_often(episodes: EpisodeMetrics) -> str:
    """A clause for a reward that pays negative episodes nearly as often as experts; else ""."""
    if episodes.hit is None or episodes.false is None or episodes.false.value < max(0.25, episodes.hit.value - 0.25):
        return ""
    return (
        f"negative episodes nearly as often as experts: {episodes.false.value:.0%} of {episodes.negatives}, beside "
        f"{episodes.hit.value:.0%} of {episodes.experts}"
    )


def _by_episode(episodes: EpisodeMetrics, side: str) -> Iterator[RewardWarning]:
    missed, early, false = _wrong(episodes)
    if missed > max(SINGLE, WRONG * episodes.experts):
        count = episodes.experts - missed
        found = f"the reward pays only {count} of {episodes.experts} {side} experts at their goal"
        yield RewardWarning("misses", found, "search longer, or bring more expert episodes")
    if early > max(SINGLE, WRONG * episodes.experts):
        found = f"the reward pays {early} of {episodes.experts} {side} experts before their goal"
        yield RewardWarning("early", found, CLOSER)
    if false > max(SINGLE, WRONG * episodes.negatives):
        found = f"the reward pays {false} of {episodes.negatives} {side} negative episodes"
        yield RewardWarning("false", found, CLOSER)


def _wrong(episodes: EpisodeMetrics) -> tuple[int, int, int]:
    """Number of experts that are not paid at their goal, of those paid before it, and of negatives that are paid."""
    missed = 0 if episodes.hit is None else round((1 - episodes.hit.value) * episodes.experts)
    early = 0 if episodes.early is None else round(episodes.early.value * episodes.experts)
    return missed, early, 0 if episodes.false is None else round(episodes.false.value * episodes.negatives)


def _falls(train: Metrics, held_out: Metrics) -> bool:
    """Whether a reward is clearly worse on held-out data, and not by a single episode.

    Where whole episodes are ranked as well as can be, states may differ somewhat more.
    """
    fall, episodes = train.accuracy - held_out.accuracy, held_out.episodes
    if episodes is not None and episodes.hit is not None and max(_wrong(episodes)) <= SINGLE:
        return False
    if episodes is not None and episodes.outranks is not None and episodes.outranks.value >= RANKED:
        return fall > FALL_RANKED
    if fall > FALL:
        return True
    before, after = (each.episodes.hit if each.episodes else None for each in (train, held_out))
    return before is not None and after is not None and before.value - after.value > FALL_BY_EPISODE
