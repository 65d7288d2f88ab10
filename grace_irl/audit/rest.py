"""Warnings about a reward, from its test on the trajectories that a sample left out."""

from __future__ import annotations

from collections.abc import Iterator

from grace_irl.audit.quality import FALL
from grace_irl.audit.warning import RewardWarning
from grace_irl.evaluate.rest import Rest
from grace_irl.evaluate.separation import Separation

MORE = "fit a larger sample (--sample)"


def of_rest(rest: Rest, separation: Separation, advice: str) -> Iterator[RewardWarning]:
    """Warnings about a reward, from its test outside the sample.

    Args:
        rest: the figures of the test.
        separation: the metrics on the sample.
        advice: what to do if the test ended early.
    """
    if rest.failure:
        yield RewardWarning("rest-fails", f"the test outside the sample ended early: {rest.failure}", advice)
    if rest.seen:
        yield RewardWarning(
            "rest-seen",
            f"{rest.seen:,} of {rest.trajectories:,} trajectories outside the sample were training data of "
            f"{rest.origin}, whose programs this run began with, so the figures outside the sample are no test of them",
            "fit without --start-from, or test the reward on new episodes (grace-irl score)",
        )
    train = separation.train.accuracy
    if rest.accuracy is not None and train - rest.accuracy > FALL:
        yield RewardWarning(
            "rest-below",
            f"the reward is worse outside the sample (accuracy {rest.accuracy:.3f}) than on its training data "
            f"({train:.3f}), so the sample lacks something",
            MORE,
        )
    if rest.unlabelled:
        yield RewardWarning(
            "rest-unlabelled",
            f"{rest.unlabelled:,} expert trajectories outside the sample are not tested, because nothing marks their "
            "goal states",
            "mark them in the data, or fit with --label last",
        )
