"""Rollouts of a policy that look like an expert's: calling them negative would teach the wrong thing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grace_irl.demos.trajectory import Demonstrations, Trajectory
from grace_irl.evaluate.resemblance import resemblance
from grace_irl.runs.config import Config
from grace_irl.runs.score import sandboxed_rewards


def like_experts(
    reward: Path, played: Sequence[Trajectory], demonstrations: Demonstrations, config: Config
) -> list[bool]:
    """Whether each rollout looks like an expert's; the environment's own reward is not looked at.

    Where all expert states are positive, a rollout does whose states a classifier, which knows nothing of the reward,
    cannot tell from the experts' (`config.expand.alike`). Where only goal states are, one does that the environment
    ended as it ended experts' episodes, in a state that the reward values as it values their last states.

    Args:
        reward: the file of the reward that the policy was trained on.
        played: the rollouts.
        demonstrations: whose experts they are compared with.
        config: of the run.

    Raises:
        GraceError: the reward fails on a rollout.
    """
    experts = [item.trajectory for item in demonstrations.select(role="expert")]
    if (config.data.label or demonstrations.metadata.label or "all") == "all":
        found = resemblance([each.states for each in experts], [each.states for each in played], config.seed)
        return [bool(chance <= config.expand.alike) for chance in found]
    ended = [each for each in experts if each.terminated]
    if not ended:
        return [False] * len(played)
    rewards = sandboxed_rewards(
        reward,
        reward.read_text(encoding="utf-8"),
        [*ended, *played],
        workers=config.sandbox.workers,
        allow_weak=config.sandbox.allow_weak,
    )
    last = [float(values[-1]) for values in rewards]
    goal = min(last[: len(ended)])
    return [each.terminated and value >= goal for each, value in zip(played, last[len(ended) :], strict=True)]
