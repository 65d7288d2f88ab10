"""Evaluation of policies on the true reward, which is the environment's own. All methods are evaluated alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.rl.actions import typed
from grace_irl.rl.curve import Point
from grace_irl.rl.environments import quiet, success_in
from grace_irl.rl.method import Policy

if TYPE_CHECKING:
    from grace_irl.rl.observed import Observed

COMPONENTS = "reward_"
"""Prefix of the keys of reward components in `info`, as in Gymnasium's MuJoCo environments."""


@dataclass
class EpisodeSums:
    """Sums over the steps of one episode so far, from the environment's rewards and `info`.

    Attributes:
        total: sum of the true rewards, without a discount.
        length: number of steps, without the padding steps in the absorbing state (`grace_irl.rl.horizon`).
        success: whether the episode reached the goal; None if the environment has no goal.
        components: sums of the reward components in `info`, by key (`reward_forward`, `reward_survive`,
            `reward_ctrl`, …).
    """

    total: float = 0.0
    length: int = 0
    success: bool | None = None
    components: dict[str, float] = field(default_factory=dict)

    def add(self, reward: float, info: Mapping[str, Any]) -> None:
        """Add one step."""
        self.total += reward
        self.length += not info.get("absorbed", False)
        self.success = success_in(info, self.success)
        for key, value in numbers_of(info).items():
            if key.startswith(COMPONENTS):
                self.components[key] = self.components.get(key, 0.0) + value


@dataclass(frozen=True, eq=False)
class Rollout:
    """One episode of a policy, with its sums (`EpisodeSums`).

    Attributes:
        trajectory: the trajectory, with the environment's own rewards and the policy's log-probabilities.
        total, success, components: as in `EpisodeSums`.
        final: single numbers in the `info` of the last step, by key.
    """

    trajectory: Trajectory
    total: float
    success: bool | None = None
    components: dict[str, float] = field(default_factory=dict)
    final: dict[str, float] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """Number of steps."""
        return self.trajectory.num_steps


def numbers_of(info: Mapping[str, Any]) -> dict[str, float]:
    """The single numbers in `info`, by key."""
    return {
        key: float(value)
        for key, value in info.items()
        if isinstance(value, bool | int | float | np.number | np.bool_ | np.ndarray)
        and np.ndim(value) == 0
        and np.asarray(value).dtype.kind in "biuf"
    }


class Recorder:
    """A recorder of one episode, with states, actions and sums.

    Create the recorder directly after a reset of the environment.

    Args:
        environment: the environment of the episode.
        source: name of the episode, for its trajectory.
    """

    def __init__(self, environment: Observed, source: str) -> None:
        self._environment, self._source = environment, source
        self._states: list[Any] = [environment.state]
        self._actions: list[Any] = []
        self._rewards: list[float] = []
        self._log_probs: list[float] = []
        self._sums = EpisodeSums()

    def add(self, action: Any, reward: float, info: Mapping[str, Any], log_prob: float | None = None) -> None:
        """Add the step that the environment has just made. Give a log-probability for all steps or for none."""
        self._states.append(self._environment.state)
        self._actions.append(action)
        self._rewards.append(reward)
        if log_prob is not None:
            self._log_probs.append(log_prob)
        self._sums.add(reward, info)
        self._final = info

    def rollout(self, *, terminated: bool, truncated: bool) -> Rollout:
        """Return the recorded episode. Call this method after the last step of the episode."""
        kind = self._environment.view.metadata.state_kind
        trajectory = Trajectory(
            kind.online(self._states),
            np.stack(self._actions),
            self._environment.instruction,
            kind=kind.name,
            rewards=np.array(self._rewards),
            log_probs=np.array(self._log_probs) if self._log_probs else None,
            terminated=bool(terminated),
            truncated=bool(truncated),
            source=self._source,
        )
        sums = self._sums
        return Rollout(trajectory, sums.total, sums.success, sums.components, numbers_of(self._final))


@dataclass(frozen=True, eq=False)
class Performance:
    """Results of one policy's episodes.

    Attributes:
        returns: undiscounted true returns, `(episodes,)`.
        lengths: number of steps of each episode, `(episodes,)`, without the padding steps in the absorbing state
            (`grace_irl.rl.horizon`).
        successes: whether each episode reached the goal, `(episodes,)`; None if the environment has no goal.
        components: sum of each reward component over each episode, `(episodes,)`, by the component's key in `info`. The
            keys of Hopper-v5 are `reward_forward`, `reward_survive` and `reward_ctrl`.
        scores: each episode's score in a task, `(episodes,)`; None without a task.
    """

    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    successes: NDArray[np.bool_] | None = None
    components: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    scores: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, episodes: Sequence[Rollout | EpisodeSums]) -> Performance:
        """Collect the results of episodes in arrays.

        A component with a sum that is not finite is left out: an environment may put anything into `info`.
        """
        names = list(dict.fromkeys(name for each in episodes for name in each.components))
        sums = {name: np.array([each.components.get(name, 0.0) for each in episodes]) for name in names}
        known = [each.success for each in episodes if each.success is not None]
        return cls(
            np.array([each.total for each in episodes]),
            np.array([each.length for each in episodes]),
            np.array(known) if len(known) == len(episodes) else None,
            {name: each for name, each in sums.items() if np.isfinite(each).all()},
        )

    def point(self, steps: int) -> Point:
        """Summarise the episodes as a point of a learning curve, after `steps` environment steps of training."""
        return Point(
            steps,
            len(self.returns),
            float(self.returns.mean()),
            float(self.returns.std()),
            None if self.successes is None else float(self.successes.mean()),
            float(self.lengths.mean()),
            {name: float(sums.mean()) for name, sums in sorted(self.components.items())},
            score=None if self.scores is None else float(self.scores.mean()),
        )


def evaluate(
    policy: Policy,
    make_env: Callable[[], Any],
    episodes: int,
    seed: int,
    *,
    deterministic: bool = False,
    at_once: int = 20,
    score: Callable[[Rollout], float] | None = None,
) -> Performance:
    """Evaluate a policy over several episodes.

    The seed determines the initial states of the episodes (in MiniGrid, the levels), so all policies start from equal
    states. The policy and torch's random state stay unchanged, so an evaluation does not affect training.

    This function keeps only sums and scores, and accepts every policy with `predict`, including recurrent ones. To get
    whole trajectories, call `grace_irl.rl.rollouts.play`. With equal seeds, both functions start from equal states.

    Args:
        policy: the policy.
        make_env: factory of one environment.
        episodes: number of episodes.
        seed: seed of the environments and of the policy's drawn actions.
        deterministic: whether to use the most probable action in each state instead of drawing one.
        at_once: number of environments open at the same time.
        score: function that scores an episode, for `Performance.scores`. Scoring requires `Observed` environments.

    Raises:
        InputError: `episodes` is below 1, or the score fails.
    """
    if episodes < 1:
        raise InputError(f"{episodes} evaluation episodes; expected at least 1")
    import torch

    seeds: list[int] = np.random.default_rng(seed).integers(2**31 - 1, size=episodes).tolist()
    records: list[EpisodeSums] = []
    scores = np.zeros(episodes)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for first in range(0, episodes, at_once):
            some = scores[first : first + at_once]
            records += _play(policy, make_env, seeds[first : first + at_once], deterministic, score, some)
    found = Performance.of(records)
    return found if score is None else replace(found, scores=scores)


def _play(
    policy: Policy,
    make_env: Callable[[], Any],
    seeds: list[int],
    deterministic: bool,
    score: Callable[[Rollout], float] | None,
    scores: NDArray[np.float64],
) -> list[EpisodeSums]:
    """Play one episode per seed, in parallel. An environment makes no further step after its episode has ended.

    If `score` is given, fill in `scores`, the score of each seed's episode.
    """
    with ExitStack() as stack:
        environments = [stack.enter_context(closing(make_env())) for _ in seeds]
        records = [EpisodeSums() for _ in seeds]
        with quiet():
            observations = [each.reset(seed=seed)[0] for each, seed in zip(environments, seeds, strict=True)]
        tapes = [Recorder(each, f"seed {seed}") for each, seed in zip(environments, seeds, strict=True) if score]
        running = list(range(len(environments)))
        memory: Any = None
        starts = np.ones(len(running), bool)
        while running:
            actions, memory = policy.predict(np.stack(observations), memory, starts, deterministic)
            going, observations = [], []
            for number, action in zip(running, actions, strict=True):
                action = typed(environments[number].action_space, action)
                observation, reward, terminated, truncated, info = environments[number].step(action)
                records[number].add(float(reward), info)
                if score:
                    tapes[number].add(action, float(reward), info)
                if not (terminated or truncated):
                    going.append(number)
                    observations.append(observation)
                elif score:
                    scores[number] = score(tapes[number].rollout(terminated=terminated, truncated=truncated))
            if memory is not None and len(going) < len(running):
                kept = [running.index(number) for number in going]
                memory = tuple(part[:, kept] for part in memory)
            running, starts = going, np.zeros(len(going), bool)
    return records
