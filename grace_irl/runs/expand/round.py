"""The record of one round of an expansion.

A round trains a policy on the reward. The policy's episodes (rollouts) become negatives, unless they look like an
expert's trajectory. If the reward does not separate the new negatives from the experts well, the round searches for a
new reward.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import numpy as np

from grace_irl.atomic import write_atomically
from grace_irl.config import Config
from grace_irl.demos import load
from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.rewards.file import load_reward
from grace_irl.runs.sandbox import limits_of
from grace_irl.toml import from_json

ROLLOUTS = "rollouts.parquet"
"""File in a round's folder with the rollouts that became negatives."""


@dataclass(frozen=True)
class Round:
    """A complete round. All paths are relative to the expansion's folder.

    Attributes:
        number: number of the round, from 1 on; 0 is the search before any policy.
        run: folder of the last run that searched for a reward, in this or an earlier round.
        program: id of the best program of `run`.
        fitness, accuracy: fitness and accuracy of this best program on the training data of `run`.
        held_out: accuracy of this best program on the held-out data of `run`; None without such data.
        changed: whether this round searched for a new reward.
        reward: file of the expansion's reward after this round. This is the run's reward, or its reshaped version (a
            variant that rises more steadily) if policies learnt better from the version.
        shaped: file of the reshaped version that the next round trains on; "" if the next round trains on the run's
            reward.
        trained_on: file of the reward that this round's policy was trained on; "" in round 0.
        stalled: whether learning stalled although the reward separates rollouts from experts (`expanding.stalls`).
        policy: file of the policy; "" in round 0.
        steps: environment steps of training in this round.
        over: number of these steps that were not asked for, because the learner trains for whole rollouts. The next
            round has as many steps less.
        rollouts: number of episodes that the trained policy played.
        alike: number of rollouts that look like an expert's trajectory. They do not become negatives.
        new_accuracy, new_fitness: accuracy and fitness of the reward from the last search before this round, measured
            on the experts and this round's new negatives. The threshold and calibration are those in the reward file.
            None without new negatives.
        mean, deviation: mean and standard deviation of the rollouts' return under the environment's own reward, which
            no search uses.
        success: share of rollouts that reached the goal; None if the environment has no goal.
        components: mean return of each component of the environment's own reward, by name.
    """

    number: int
    run: str = ""
    program: str = ""
    fitness: float = 0.0
    accuracy: float = 0.0
    held_out: float | None = None
    changed: bool = True
    reward: str = ""
    shaped: str = ""
    trained_on: str = ""
    stalled: bool = False
    policy: str = ""
    steps: int = 0
    over: int = 0
    rollouts: int = 0
    alike: int = 0
    new_accuracy: float | None = None
    new_fitness: float | None = None
    mean: float | None = None
    deviation: float | None = None
    success: float | None = None
    components: dict[str, float] = field(default_factory=dict)


def write_round(path: Path, done: Round) -> None:
    """Write a round's record atomically.

    Raises:
        InputError: the file cannot be written.
    """
    write_atomically(path, json.dumps(asdict(done), indent=1) + "\n")


def read_round(path: Path) -> Round | None:
    """Read a round's record. Return None if the round is not complete.

    Raises:
        InputError: the file is damaged, has the format of another version, or names files outside the expansion's
            folder.
    """
    instead = "expected one of this version: delete it to do the round's end again"
    try:
        text = path.read_bytes()
        done = from_json(Round, text)
        names = set(from_json(dict[str, object], text))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not readable as a round ({error}); {instead}") from None
    if names != {each.name for each in fields(Round)}:
        raise InputError(f"{path}: a round with other fields; {instead}")
    if not 0 <= done.alike <= done.rollouts or (path.parent.name.isdigit() and str(done.number) != path.parent.name):
        raise InputError(f"{path}: counts that no round has; {instead}")
    folder = path.parents[2]
    for name in (done.run, done.reward, done.shaped, done.trained_on, done.policy):
        if not _within(folder, name):
            raise InputError(f"{path}: names {name!r}, outside of {folder}; {instead}")
    return done


def _within(folder: Path, name: str) -> bool:
    """Whether a relative path stays in a folder after links are followed."""
    return "\0" not in name and (folder / name).resolve().is_relative_to(folder.resolve())


def ends(steps: int, rounds: int, growth: float) -> tuple[int, ...]:
    """Cumulative environment steps at the end of each round; the last value is `steps`.

    Args:
        steps: environment steps of all rounds together.
        rounds: number of rounds; at least 1.
        growth: ratio of the steps of a round to the steps of the round before it.
    """
    shares = np.cumsum(growth ** np.arange(1 - rounds, 1, dtype=np.float64))  # exponents up to 0 avoid overflow
    return tuple(np.rint(steps * shares / shares[-1]).astype(int).tolist())


def share(done: Round) -> float:
    """The share of a round's rollouts that look like an expert's trajectory; 0 without rollouts."""
    return done.alike / done.rollouts if done.rollouts else 0.0


def became(done: Round) -> str:
    """The change of the reward in a round, in one or two words, for example "searched" or "kept"."""
    if done.changed:
        return "searched"
    if not done.stalled:
        return "kept"
    return "stalled: reshaped" if done.shaped and done.shaped != done.trained_on else "stalled: kept"


def favourite(rounds: Sequence[Round], folder: Path, reward: Path, config: Config, rule: str) -> Round:
    """The round with the best policy, judged without the environment's own reward. Ties go to the later round.

    With label rule "all", the best policy has the highest mean return under `reward`. This comparison is fair, because
    the new negatives of every round were used to fit `reward` or to check it. With other rules, the best policy has the
    largest share of rollouts that look like an expert's trajectory.

    Args:
        rounds: complete rounds, without round 0; at least one.
        folder: the folder of the expansion.
        reward: file of the reward after the last of these rounds.
        config: the configuration of the expansion.
        rule: the label rule.

    Raises:
        GraceError: the reward fails on a rollout.
    """
    if rule != "all":
        return max(rounds, key=lambda each: (share(each), each.number))
    paid = _paid([episodes(folder, each.number) for each in rounds], reward, config)
    return max(zip(paid, rounds, strict=True), key=lambda pair: (pair[0], pair[1].number))[1]


def episodes(folder: Path, number: int) -> list[Trajectory]:
    """Read all rollouts of a round's policy: first the new negatives, then the others (`Round.alike`)."""
    place = folder / "rounds" / str(number)
    paths = [place / name for name in (ROLLOUTS, "alike.parquet")]
    return [item.trajectory for path in paths if path.exists() for item in load([], [path])]


def _paid(played: Sequence[Sequence[Trajectory]], reward: Path, config: Config) -> list[float]:
    """Mean return of each round's episodes under a reward, in the form that policies train on (`ExpandConfig.form`)."""
    file = load_reward(reward)
    values = file.rewards(
        [each for part in played for each in part],
        workers=config.sandbox.workers,
        allow_weak_sandbox=config.sandbox.allow_weak,
        limits=limits_of(config.sandbox),
    )
    scale = file.scaled(config.expand.form)
    totals = iter([scale.worth(each) for each in values])
    return [sum(next(totals) for _ in part) / len(part) if part else 0.0 for part in played]
