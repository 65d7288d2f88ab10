"""Episodes of random actions, for dry runs of programs, for the score of random actions, and for the designer.

The designer (`grace_irl.synthesis.vector.designer.Designer`) is the proposer without a model. It takes the scales of
reward components from these episodes.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import fmean

from grace_irl.atomic import write_atomically
from grace_irl.demos.trajectory import Trajectory
from grace_irl.rl.collect import rollout
from grace_irl.rl.evaluation import Recorder, Rollout
from grace_irl.rl.observed import Observed
from grace_irl.rl.policies import RandomPolicy
from grace_irl.tasks.task import Task
from grace_irl.toml import MAX_BYTES, from_json

EPISODES = 8
"""Number of episodes for dry runs of programs and for the scales of reward components."""
STATES = 200
"""Maximum number of states of an episode for dry runs of programs and for the scales of reward components."""
FEWEST, MOST = 200, 1_000
"""Minimum and maximum number of episodes in `scored_episodes`. `MOST_STEPS` overrides the minimum."""
ENOUGH = 50
"""After `FEWEST` episodes, `scored_episodes` ends once this number of scores differ from the most frequent score."""
MOST_STEPS = 50_000
"""Total number of steps after which `scored_episodes` begins no further episode."""
PLAYED, PLAYED_STEPS, PLAYED_S = 100, 10_000, 30.0
"""Number of episodes in `random_score`, and total numbers of steps and seconds after which it begins no further one."""
RANDOM_FILE = "random.json"
"""Name of the file with the score of random actions, in the folder of a run or of a comparison."""
SCORED_SEED = 1_000_000
"""Offset of the seeds of scored episodes, so that these episodes differ from the episodes for dry runs."""


def random_episodes(task: Task, count: int = EPISODES, seed: int = 0) -> list[Trajectory]:
    """Episodes of random actions, cut to `STATES` states each.

    Raises:
        InputError: the environment cannot be made, or an episode does not end (`environment.ENDLESS`).
    """
    environment, view = task.make()
    policy = RandomPolicy()
    try:
        found = [rollout(environment, view, policy, seed + number)[0] for number in range(count)]
    finally:
        environment.close()
    return [_cut(each) for each in found]


def scored_episodes(task: Task, seed: int = 0) -> tuple[Sequence[Trajectory], Sequence[float]]:
    """Whole episodes of random actions, and their scores.

    If almost all scores are equal, the function plays more than `FEWEST` episodes.

    Raises:
        InputError: the environment cannot be made, an episode does not end (`environment.ENDLESS`), or the score fails.
    """
    found: list[Trajectory] = []
    scores: list[float] = []
    with closing(_scored(task, seed, MOST_STEPS)) as episodes:
        for trajectory, score in episodes:
            found.append(trajectory)
            scores.append(score)
            if len(found) >= MOST or (len(found) >= FEWEST and _differ(scores) >= ENOUGH):
                break
    return found, scores


def random_score(task: Task, seed: int = 0, episodes: int = PLAYED) -> tuple[float, int]:
    """The mean score of at most `episodes` episodes of random actions, and their number.

    Raises:
        InputError: as `scored_episodes`.
    """
    limit, scores = time.monotonic() + PLAYED_S, list[float]()
    with closing(_scored(task, seed, PLAYED_STEPS)) as played:
        for _, score in islice(played, episodes):
            scores.append(score)
            if time.monotonic() > limit:
                break
    return fmean(scores), len(scores)


@dataclass(frozen=True)
class RandomScore:
    """The content of `RANDOM_FILE`: the mean score of random actions over a number of episodes."""

    score: float
    episodes: int


def kept_random_score(task: Task, seed: int, folder: Path) -> tuple[float, int]:
    """`random_score`, from the file `RANDOM_FILE` in a folder if there is one. Otherwise, write this file."""
    path = folder / RANDOM_FILE
    if path.exists():
        with suppress(OSError, ValueError), path.open("rb") as file:  # damaged: play again
            known = from_json(RandomScore, file.read(MAX_BYTES))
            if math.isfinite(known.score) and known.episodes > 0:
                return known.score, known.episodes
    score, episodes = random_score(task, seed)
    write_atomically(path, json.dumps({"score": score, "episodes": episodes}) + "\n")
    return score, episodes


def _scored(task: Task, seed: int, most: int) -> Generator[tuple[Trajectory, float], None, None]:
    """Yield episodes of random actions with their scores. After `most` steps in all, no further episode begins."""
    score, policy = task.scorer(), RandomPolicy()
    made, view = task.make()
    environment = Observed(made, view)
    steps = number = 0
    with closing(environment):
        while steps < most:
            played = _played(environment, policy, seed + SCORED_SEED + number)
            yield played.trajectory, score(played)
            steps += played.length
            number += 1


def _differ(scores: Sequence[float]) -> int:
    """The number of scores that differ from the most frequent score."""
    return len(scores) - max(Counter(scores).values())


def _played(environment: Observed, policy: RandomPolicy, seed: int) -> Rollout:
    """One episode to its end."""
    environment.reset(seed=seed)
    policy.reset(environment.env, seed)
    recorder = Recorder(environment, f"random actions, seed {seed}")
    terminated = truncated = False
    while not (terminated or truncated):
        action, _ = policy.act(environment.state)
        _, reward, terminated, truncated, info = environment.step(action)
        recorder.add(action, reward, info)
    return recorder.rollout(terminated=terminated, truncated=truncated)


def _cut(trajectory: Trajectory) -> Trajectory:
    if len(trajectory.states) <= STATES:
        return trajectory
    actions = None if trajectory.actions is None else trajectory.actions[: STATES - 1]
    return replace(
        trajectory,
        states=trajectory.states[:STATES],
        actions=actions,
        rewards=None,
        log_probs=None,
        terminated=False,
        truncated=True,
    )
