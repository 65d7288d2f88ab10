"""One round of expansion: what was trained, what its rollouts were, and what became of the reward."""

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
from grace_irl.runs.expand.learner import form_of
from grace_irl.toml import from_json


@dataclass(frozen=True)
class Round:
    """A round that is complete.

    Attributes:
        number: from 1 on; 0 is the search before any policy.
        run: folder of the run whose best program is the reward now, relative to the expansion's folder.
        program: its id.
        fitness, accuracy, held_out: of that program, on the data of its run; held-out accuracy, or None.
        changed: the search went on in this round.
        reward: file of the reward that the expansion gives if this round is its last, relative to its folder: the run's
            or, if it taught better, its reshaped version.
        shaped: file of the reshaped version that the next round trains on, relative; "" if it trains on the run's.
        trained_on: file of the reward that this round's policy learnt from, relative; "" in round 0.
        stalled: learning stopped although the reward tells rollouts from experts (`stall.stalls`).
        policy: file of the policy, relative to the expansion's folder; "" in round 0.
        steps: environment steps of training in this round.
        rollouts: episodes that the policy played afterwards.
        alike: of these, those too close to an expert's to be used as negatives.
        new_accuracy, new_fitness: of the reward before this round, on experts and the new negatives, at the threshold
            and by the calibration that it was exported with; None if there are none.
        mean, deviation: of the rollouts' true return, which no search sees.
        success: their share that reached the goal; None if the environment has none.
        components: mean sums of the environment's own reward components over the rollouts.
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
    rollouts: int = 0
    alike: int = 0
    new_accuracy: float | None = None
    new_fitness: float | None = None
    mean: float | None = None
    deviation: float | None = None
    success: float | None = None
    components: dict[str, float] = field(default_factory=dict)


def write_round(path: Path, done: Round) -> None:
    """Keeps a round, whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    write_atomically(path, json.dumps(asdict(done), indent=1) + "\n")


def read_round(path: Path) -> Round | None:
    """A round that was kept; None if it is not complete.

    Raises:
        InputError: the file is not one of this version, or names files outside of its expansion.
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
    """Whether a relative path stays in a folder, links followed."""
    return "\0" not in name and (folder / name).resolve().is_relative_to(folder.resolve())


def ends(steps: int, rounds: int, growth: float) -> tuple[int, ...]:
    """Environment steps after which each round ends, the last one after all.

    Args:
        steps: N, of all rounds together.
        rounds: M; at least 1.
        growth: how many times the steps of the round before it each round takes.
    """
    shares = np.cumsum(growth ** np.arange(1 - rounds, 1, dtype=np.float64))  # at most 1, so that none is infinite
    return tuple(np.rint(steps * shares / shares[-1]).astype(int).tolist())


def share(done: Round) -> float:
    """Of a round's rollouts, those that look like an expert's."""
    return done.alike / done.rollouts if done.rollouts else 0.0


def became(done: Round) -> str:
    """The fate of the reward in a round, in a word or two."""
    if done.changed:
        return "searched"
    if not done.stalled:
        return "kept"
    return "stalled: reshaped" if done.shaped and done.shaped != done.trained_on else "stalled: kept"


def favourite(rounds: Sequence[Round], folder: Path, reward: Path, config: Config, rule: str) -> Round:
    """The round whose rollouts are best by what is known without the environment's own reward.

    If only goal states are positive: the one most of whose rollouts look like an expert's. If all expert states
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
    """The rollouts of a round's policy, whether or not they became negatives."""
    place = folder / "rounds" / str(number)
    paths = [place / name for name in ("rollouts.parquet", "alike.parquet")]
    return [item.trajectory for path in paths if path.exists() for item in load([], [path])]


def _paid(played: Sequence[Sequence[Trajectory]], reward: Path, config: Config, rule: str) -> list[float]:
    """Mean pay of each round's episodes: rewards of states, as offline, without the first one's."""
    file = load_reward(reward)
    values = file.rewards(
        [each for part in played for each in part],
        workers=config.sandbox.workers,
        allow_weak_sandbox=config.sandbox.allow_weak,
    )
    scale = file.scaled(form_of(config.expand, rule))
    totals = iter([float(scale(each[1:]).sum()) for each in values])
    return [sum(next(totals) for _ in part) / len(part) if part else 0.0 for part in played]
