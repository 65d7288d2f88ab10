"""The round of an expansion whose policy a reward likes best: where to go on, and what to keep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grace_irl.demos import load
from grace_irl.demos.trajectory import Trajectory
from grace_irl.runs.config import Config
from grace_irl.runs.expand.learner import form_of
from grace_irl.runs.expand.round import Round, share
from grace_irl.runs.score import sandboxed_rewards


def favourite(rounds: Sequence[Round], folder: Path, reward: Path, config: Config, rule: str) -> Round:
    """The round whose rollouts are best by what is known without the environment's own reward.

    Where only goal states are positive: the one most of whose rollouts look like an expert's. Where all expert states
    are: the one whose episodes the reward pays most, in the form that policies get; it has seen the rollouts of all
    rounds, and calls all of them negative. The later one of equals.

    Args:
        rounds: complete ones, without round 0; at least one.
        folder: of the expansion.
        reward: the file of the reward to ask.
        config: of the expansion.
        rule: which expert states are positive.

    Raises:
        GraceError: the reward fails on a rollout.
    """
    if rule != "all":
        return max(rounds, key=lambda each: (share(each), each.number))
    paid = _paid([episodes(folder, each.number) for each in rounds], reward, config, rule)
    return max(zip(paid, rounds, strict=True), key=lambda pair: (pair[0], pair[1].number))[1]


def episodes(folder: Path, number: int) -> list[Trajectory]:
    """What the policy of a round played, whether or not it was called negative."""
    place = folder / "rounds" / str(number)
    paths = [place / name for name in ("rollouts.parquet", "alike.parquet")]
    return [item.trajectory for path in paths if path.exists() for item in load([], [path])]


def _paid(played: Sequence[Sequence[Trajectory]], reward: Path, config: Config, rule: str) -> list[float]:
    """What each round's episodes are paid, on average; of a state, as offline, and the first one not."""
    from grace_irl.rewards.file import load_reward

    file = load_reward(reward)
    values = sandboxed_rewards(
        reward,
        file.source,
        [each for part in played for each in part],
        workers=config.sandbox.workers,
        allow_weak=config.sandbox.allow_weak,
    )
    scale = file.scaled(form_of(config.expand, rule))
    totals = iter([float(scale(each[1:]).sum()) for each in values])
    return [sum(next(totals) for _ in part) / len(part) if part else 0.0 for part in played]
