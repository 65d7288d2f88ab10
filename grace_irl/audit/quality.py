"""Warnings about the metrics of a reward, and about programs that list states."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import numpy as np

from grace_irl.audit.subject import Subject
from grace_irl.audit.warning import RewardWarning
from grace_irl.demos.labels import Labelled
from grace_irl.evaluate.separation import EpisodeMetrics, Metrics
from grace_irl.programs.parsing import parse
from grace_irl.rewards.scale import Scale

WRONG = 0.1
"""Maximum share of wrong episodes of one kind (`_wrong`). With a larger share, there is a warning."""
SINGLE = 1
"""Maximum number of wrong episodes without a warning: a single wrong episode may be an accident."""
CHANCE = 0.6
"""Minimum balanced accuracy of a reward that tells experts from negatives."""
RANKS = 0.7
"""Minimum `EpisodeMetrics.outranks` of a reward that tells experts from negatives."""
FALL = 0.05
"""Maximum fall of the accuracy from training to held-out data. With a larger fall, there is a warning."""
RANKED = 0.95
"""Minimum `EpisodeMetrics.outranks`, on held-out data, of a reward that tells whole held-out episodes apart."""
FALL_RANKED = 0.1
"""Maximum fall of the accuracy, instead of `FALL`, for a reward that tells whole held-out episodes apart."""
FALL_BY_EPISODE = 0.25
"""Maximum fall, from training to held-out data, of the share of experts that are paid at their goal."""
CONSTANTS = 250
"""Number of constants that every program may have. For each positive training state, a program may have one more."""

ROLES = (
    "check which files are experts and which are negatives (demos inspect), and that experts do what negatives do not"
)
FAILING = 2 / 3
"""Maximum probability that a negative episode has a larger sum of rewards than an expert episode. If experts and
negatives have similar sums, the probability is about 1/2."""

MARKS = "mark all states that reach the goal (--label goal), since these experts stay there"
UNMARKED = "mark the goal states of these experts (--goals), or leave them out"
CLOSER = "search longer, or bring negative episodes that come close to a goal"


def of_figures(subject: Subject) -> Iterator[RewardWarning]:
    """Warnings about the metrics of a reward."""
    metrics, side, episodes = subject.tested, subject.side, subject.tested.episodes
    paid = _as_often(episodes, *_paid_negatives(subject, metrics)) if episodes is not None else ""
    if metrics.accuracy < CHANCE:
        accuracy = f"its balanced accuracy on {side} states is {metrics.accuracy:.2f}, and 0.5 is chance"
        yield RewardWarning("no-difference", f"the reward hardly tells the sides apart: {accuracy}", ROLES)
    elif paid:
        yield RewardWarning("no-difference", f"the reward pays {side} {paid}", ROLES)
    if episodes is not None:
        if episodes.outranks is not None and episodes.outranks.value < RANKS and metrics.accuracy >= CHANCE:
            low = f"{side} experts outrank negatives with a probability of only {episodes.outranks}"
            yield RewardWarning("no-difference", low, ROLES)
        yield from _by_episode(subject)
    yield from _failing_pays(subject)
    train = subject.separation.train
    if metrics is not train and _falls(train, metrics):
        yield RewardWarning(
            "held-out-below",
            f"the reward is worse on held-out data ({_measured(metrics)}) than on training data ({_measured(train)}), "
            "so it may use properties that only the training episodes have",
            "bring more episodes",
        )


def of_source(subject: Subject) -> Iterator[RewardWarning]:
    """A warning if a program may list the states that it pays.

    Such a program has more than `CONSTANTS` constants plus one per positive training state. There is no warning if the
    reward is about as good on held-out data as on training data.
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
            f"the program has about {constants} constants for {train.experts} positive training states, so it may list "
            "these states",
            "bring more episodes, hold some out, and prefer a shorter program (show lists the programs)",
        )


def _as_often(episodes: EpisodeMetrics, paid: int, negatives: int, which: str) -> str:
    """A clause with the shares of paid episodes, if negatives are paid nearly as often as experts; else ""."""
    if episodes.hit is None or not negatives or paid / negatives < max(0.25, episodes.hit.value - 0.25):
        return ""
    return (
        f"negative episodes nearly as often as experts: {paid / negatives:.0%} of {negatives} negatives{which}, "
        f"and {episodes.hit.value:.0%} of {episodes.experts} experts at their goal"
    )


def _by_episode(subject: Subject) -> Iterator[RewardWarning]:
    """Warnings about experts that are paid too little or too early, and about negatives that are paid.

    Each kind of mistake counts on the held-out side. If there are too few there for a warning, it counts in training.
    """
    train, tested = subject.separation.train, subject.tested
    known: set[str] = set()
    for metrics in (tested, train) if tested is not train else (tested,):
        for warning in _of_side(subject, metrics):
            if warning.code not in known:
                known.add(warning.code)
                yield warning


def _of_side(subject: Subject, metrics: Metrics) -> Iterator[RewardWarning]:
    episodes = metrics.episodes
    if episodes is None:
        return
    trained = metrics is subject.separation.train
    side, items = ("training", subject.problem.train) if trained else ("held-out", subject.problem.held_out)
    missed, early, _ = _wrong(episodes)
    if missed > max(SINGLE, WRONG * episodes.experts):
        count = episodes.experts - missed
        found = f"the reward pays only {count} of {episodes.experts} {side} experts at their goal"
        yield RewardWarning("misses", found, "search longer, or bring more expert episodes")
    if early > max(SINGLE, WRONG * episodes.experts):
        found = f"the reward pays {early} of {episodes.experts} {side} experts before their goal"
        staying = _staying(subject, items)
        if staying > early / 2:
            found, advice = f"{found}, {staying} of them in a state that equals the goal", MARKS
        else:
            advice = _closer(subject)
        yield RewardWarning("early", found, advice)
    paid, negatives, which = _paid_negatives(subject, metrics)
    if paid > max(SINGLE, WRONG * negatives):
        look = "look whether they do the task (report), " if trained and metrics is not subject.tested else ""
        found = f"the reward pays {paid} of {negatives} {side} negative episodes{which}"
        advice = f"{look}{_closer(subject)}"
        if unmarked := sum(item.demonstration.role == "expert" for item in _paid(subject, items)):
            found = f"{found}, {unmarked} of them experts without a goal state"
            advice = UNMARKED if unmarked >= paid else f"{UNMARKED}, or {advice}"
        yield RewardWarning("false", found, advice)


def _paid_negatives(subject: Subject, metrics: Metrics) -> tuple[int, int, str]:
    """Two counts, paid negatives and all negatives, and words that say which negatives are counted.

    If a larger share of the user's own negatives is paid than of all with swaps, the user's own are counted alone.
    """
    episodes = metrics.episodes
    if episodes is None or episodes.false is None:
        return 0, 0, ""
    trained = metrics is subject.separation.train
    items = subject.problem.train if trained else subject.problem.held_out
    own = [subject.pays_anywhere(item) for item in subject.given(items) if not item.positive.any()]
    if own and np.mean(own) > episodes.false.value:
        return sum(own), len(own), " that are no swaps" if len(own) < episodes.negatives else ""
    return _wrong(episodes)[2], episodes.negatives, ""


def _paid(subject: Subject, items: Sequence[Labelled]) -> list[Labelled]:
    """The episodes without a goal state that the reward pays anywhere."""
    return [item for item in subject.given(items) if not item.positive.any() and subject.pays_anywhere(item)]


def _closer(subject: Subject) -> str:
    return CLOSER if subject.recorded else f"{CLOSER} (collect --near-miss)"


def _staying(subject: Subject, items: Sequence[Labelled]) -> int:
    """Number of experts that are paid before their goal in a state that equals the goal."""
    count = 0
    for item in items:
        goals = np.flatnonzero(item.positive)
        if len(goals) and item.demonstration.role == "expert":
            paid = np.flatnonzero(subject.values(item)[: goals[0]] > subject.threshold)
            parts = item.trajectory.state_kind.parts(item.trajectory.states).values()
            count += any(
                all(np.array_equal(part[state], part[goal]) for part in parts) for state in paid for goal in goals
            )
    return count


def _failing_pays(subject: Subject) -> Iterator[RewardWarning]:
    """A warning if negative episodes often have a larger sum of rewards than expert episodes with a goal.

    Fitness and accuracy rate single states, but the training of a policy depends on the sum over an episode. If rewards
    before the goal are below 0, every step costs, so an episode that fails early may cost least.

    The sums are those of the form "guided", in which a policy gets the reward of a goal (`grace_irl.rewards.scale`).
    """
    if subject.problem.rule == "all":
        return
    guided = Scale("guided", threshold=subject.threshold)
    totals: dict[bool, list[float]] = {True: [], False: []}
    for item in subject.given(subject.problem.train):
        positive = bool(item.positive.any())
        if positive == (item.demonstration.role == "expert"):
            totals[positive].append(guided.worth(np.nan_to_num(subject.values(item))))
    if not (totals[True] and totals[False]):
        return
    # For each negative, the number of experts whose sum is lower. A table of all pairs would need too much memory.
    lower = np.searchsorted(np.sort(totals[True]), totals[False], "left")
    share = float(lower.mean() / len(totals[True]))
    if share > FAILING:
        yield RewardWarning(
            "failing-pays",
            f"in {share:.0%} of pairs, the rewards of a negative episode add up to more than those of an expert's: "
            "where episodes end like these, failing pays more than reaching the goal",
            'train on the rise of the reward (--expand-form progress; in Python scale="progress")',
        )


def _wrong(episodes: EpisodeMetrics) -> tuple[int, int, int]:
    """Three counts: experts not paid at their goal, experts paid before their goal, and paid negatives."""
    missed = 0 if episodes.hit is None else round((1 - episodes.hit.value) * episodes.experts)
    early = 0 if episodes.early is None else round(episodes.early.value * episodes.experts)
    return missed, early, 0 if episodes.false is None else round(episodes.false.value * episodes.negatives)


def _measured(metrics: Metrics) -> str:
    """The accuracy as text, with the share of experts that are paid at their goal, if known."""
    hit = metrics.episodes.hit if metrics.episodes is not None else None
    paid = "" if hit is None else f", {hit.value:.0%} of experts paid at their goal"
    return f"accuracy {metrics.accuracy:.3f}{paid}"


def _falls(train: Metrics, held_out: Metrics) -> bool:
    """Whether a reward is clearly worse on held-out data than on training data.

    The result is False if there is at most one wrong held-out episode of each kind (`_wrong`). If the reward tells
    whole held-out episodes apart, the accuracy may fall by up to `FALL_RANKED`.
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
