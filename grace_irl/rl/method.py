"""The protocol of all methods that train a policy: GRACE, GAIL, AIRL, BC, PPO on the true reward.

A method receives a `PolicyProblem` and a seed, and returns a `Trained`. A method does not evaluate its policy. Instead,
it calls a function `watch` with the policy several times during training. A comparison evaluates the policy in these
calls, in the same way for all methods.

For a fair comparison, the problem fixes everything that methods share: the environments, the observations, the learner
with its networks and settings, the number of steps, and whether all episodes have the same length.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, Protocol, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter, ValidationError

from grace_irl.demos.trajectory import Demonstrations, Trajectory
from grace_irl.errors import InputError
from grace_irl.pages import page

Paid = Literal["reward", "centred", "positive"]
"""Form in which a learner receives a method's reward r.

"reward" is r. "centred" shifts r to a running mean of 0 and scales it to a standard deviation of 1. "positive" is
log(1 + exp(r)), which equals -log(1 - D) if r is the logit of a discriminator D.
"""


class Policy(Protocol):
    """A policy on batches of observations, with the interface of Stable-Baselines3."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], Any]:
        """Actions `(batch, ...)` for observations `(batch, ...)`, and the hidden state of a recurrent policy."""
        ...

    def save(self, path: Any) -> None:
        """Write the policy to a file."""
        ...


class TransitionReward(Protocol):
    """A reward of transitions between the policy's observations, with the interface of `imitation`."""

    def __call__(
        self, state: NDArray[Any], action: NDArray[Any], next_state: NDArray[Any], done: NDArray[np.bool_]
    ) -> NDArray[Any]:
        """Rewards `(batch,)` of transitions. `done` marks transitions that end an episode."""
        ...


class Watch(Protocol):
    """A callback that looks at a policy during training."""

    def __call__(self, steps: int, policy: Policy) -> None:
        """Look at `policy` after `steps` environment steps of training.

        The call leaves the policy, the method's environments and the global random states unchanged.
        """
        ...


def unwatched(steps: int, policy: Policy) -> None:
    """A `Watch` that does nothing."""


@dataclass(frozen=True)
class PolicyProblem:
    """The training problem that all methods of a comparison receive.

    Attributes:
        demonstrations: expert and negative demonstrations. Methods learn only from the training data among them, not
            from the held-out data.
        make_env: factory of one Gymnasium environment with the true reward and the policy's observations (a `Box`).
            If there is a goal, the last step of an episode has `info["is_success"]`. The caller must close the
            environment.
        observe: function from a trajectory of T steps to the policy's observations of its states, `(T+1, ...)`. With a
            `horizon`, vectors from `make_env` have one more component at the end: 1 in the absorbing state, else 0
            (`grace_irl.rl.horizon`). Vectors from `observe` lack this component.
        make_learner: function from a vector environment of Stable-Baselines3 and a seed to an untrained on-policy
            algorithm of Stable-Baselines3 (PPO).
        steps: environment steps of training, summed over all environments. PPO rounds them up to whole rollouts.
        num_envs: number of environments that the learner uses in parallel.
        gamma: discount factor of the learner.
        norm_reward: whether to divide the learner's rewards by the standard deviation of their discounted return
            (`VecNormalize`). This applies to all methods.
        watches: number of calls of the callback `watch` (`PolicyMethod.train`) during training, evenly spaced. The last
            call is at the end.
        keeps: numbers of environment steps, in rising order and below `steps`. When training has reached one of them,
            a method keeps a copy of its policy (`Trained.kept`).
        horizon: number of steps of every episode; 0 if episodes keep their own lengths. After a terminal state, an
            episode continues with reward 0 (`grace_irl.rl.horizon`).
        log: folder for the method's own logs (TensorBoard); None: no logs.

    Raises:
        InputError: a number is below its minimum.
    """

    demonstrations: Demonstrations
    make_env: Callable[[], Any]
    observe: Callable[[Trajectory], NDArray[Any]]
    make_learner: Callable[[Any, int], Any]
    steps: int
    num_envs: int = 8
    gamma: float = 0.99
    norm_reward: bool = False
    watches: int = 10
    keeps: tuple[int, ...] = ()
    horizon: int = 0
    log: Path | None = None

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("num_envs", 1), ("watches", 1), ("horizon", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} {getattr(self, name)}; expected at least {least}")


@dataclass(frozen=True)
class Kept:
    """A copy of a policy during training.

    Attributes:
        steps: environment steps of training before the copy.
        policy: the copy.
    """

    steps: int
    policy: Policy


@dataclass(frozen=True)
class Trained:
    """The result of a method.

    Attributes:
        policy: the policy at the end of training.
        reward: the recovered reward; None if the method recovers none.
        steps: environment steps of training; 0 for a method that learns offline.
        notes: remarks on this training for readers of the results, one line each.
        paid: form in which the learner received `reward`. A later training on `reward` in another environment uses
            this form too.
        kept: copies of the policy after the steps in `PolicyProblem.keeps`, in order, without the final policy.
    """

    policy: Policy
    reward: TransitionReward | None = None
    steps: int = 0
    notes: tuple[str, ...] = ()
    paid: Paid = "reward"
    kept: tuple[Kept, ...] = ()


class PolicyMethod(Protocol):
    """A method that trains a policy."""

    @property
    def name(self) -> str:
        """Name in `--methods` and in the tables."""
        ...

    @property
    def reads_length(self) -> str:
        """A clause for a warning if the method's reward depends on the length of episodes; otherwise "".

        An example is "its reward is positive everywhere, so …".
        """
        ...

    def check(self, problem: PolicyProblem) -> None:
        """Check before training that the method can learn from the problem.

        Raises:
            InputError: the method cannot learn from the problem, for example because no expert has actions.
        """
        ...

    def train(self, problem: PolicyProblem, seed: int, watch: Watch = unwatched) -> Trained:
        """Train a policy. The same problem and seed give the same policy on the same machine.

        Raises:
            InputError: as in `check`.
        """
        ...


GROUP = "grace_irl.baselines"
"""Group of entry points by which installed distributions offer methods. Each entry point names a frozen dataclass that
implements `PolicyMethod`. The fields of this dataclass are the method's settings."""


def offered() -> tuple[str, ...]:
    """Names of the methods of all installed distributions, sorted."""
    return tuple(sorted(_points()))


def load_method(name: str, **settings: Any) -> PolicyMethod:
    """Load a method by name.

    Args:
        name: one of `offered()`.
        settings: values for fields of the method's dataclass. Other fields keep their defaults.

    Raises:
        InputError: an unknown method or setting, a value that does not fit its field's type, or a missing package.
    """
    points = _points()
    if name not in points:
        raise InputError(
            f"method {name!r}; expected one of {', '.join(sorted(points)) or 'none'} ({page('baselines')})"
        )
    try:
        made = points[name].load()
    except ImportError as error:
        raise InputError(
            f"method {name!r}: {error.name or error} is not installed; expected what it imports ({page('baselines')}): "
            "for GAIL, AIRL and BC, pip install 'grace-irl[baselines]' and then pip install --no-deps imitation==1.0.1"
        ) from None
    known = _settings(made)
    for key in settings:
        if key not in known:
            raise InputError(f"method {name!r}: setting {key!r}; expected one of {', '.join(known) or 'none'}")
    types = get_type_hints(made)
    method: PolicyMethod = made(**{key: _read(name, key, value, types[key]) for key, value in settings.items()})
    return method


def _read(name: str, key: str, value: Any, kind: Any) -> Any:
    """The value of one setting, converted to the type of its field.

    Raises:
        InputError: the value does not fit the type.
    """
    try:
        return TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True)).validate_python(value)
    except ValidationError as error:
        raise InputError(f"method {name!r}: setting {key}={value!r}: {error.errors()[0]['msg']}") from None


def _points() -> dict[str, EntryPoint]:
    found: Iterable[EntryPoint] = entry_points(group=GROUP)
    return {point.name: point for point in found}


def _settings(made: Any) -> list[str]:
    """The names of a method's settings: the fields that the constructor of the method's dataclass accepts."""
    fields = dataclasses.fields(made) if dataclasses.is_dataclass(made) else ()
    return [field.name for field in fields if field.init]
