"""The protocol of every way of learning a policy: GRACE, GAIL, AIRL, BC, PPO on the true reward.

A method is handed a `PolicyProblem` and a seed, and answers with a `Trained`. It never evaluates itself: from time to
time it shows its policy to `watch`, and whoever compares methods measures all of them in one way. What could make the
comparison unfair is part of the problem and not of the method: the environments, what a policy observes, the learner
with its networks and settings, the number of steps, and whether episodes have one length.
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

Paid = Literal["reward", "centred", "positive"]
"""A reward as it is; shifted to a running mean of 0, with a deviation of 1; or made positive, log(1 + exp(reward)): as
the logit of a discriminator D, -log(1 - D)."""


class Policy(Protocol):
    """Acts on observations in batches, as every policy and algorithm of Stable-Baselines3 does."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], Any]:
        """Actions `(batch, ...)` for observations `(batch, ...)`, and the memory of a recurrent policy."""
        ...

    def save(self, path: Any) -> None:
        """Writes the policy to a file."""
        ...


class TransitionReward(Protocol):
    """A reward of transitions, on the observations that the policy sees; the form that `imitation` uses, too."""

    def __call__(
        self, state: NDArray[Any], action: NDArray[Any], next_state: NDArray[Any], done: NDArray[np.bool_]
    ) -> NDArray[Any]:
        """Rewards `(batch,)` of `batch` transitions; `done` if the next state ended the episode."""
        ...


class Watch(Protocol):
    """Looks at a policy while it learns."""

    def __call__(self, steps: int, policy: Policy) -> None:
        """Called with the environment steps that were used so far and the policy at that point.

        It leaves the policy, the method's environments and the global random states as they were.
        """
        ...


def unwatched(steps: int, policy: Policy) -> None:
    """The `Watch` of nobody."""


@dataclass(frozen=True)
class PolicyProblem:
    """The problem of a method, the same for all methods.

    Attributes:
        demonstrations: experts and, if a method uses them, negatives. Only their training side is for learning.
        make_env: makes one Gymnasium environment, which gives the true reward, the observations that the policy sees
            (a `Box`), and `info["is_success"]` with an episode's last step if there is a goal. Each call makes
            another one; who calls it closes it.
        observe: what the policy would have observed along a trajectory, `(T+1, ...)`, in the form of `make_env`.
        make_learner: makes the learner, given a vectorised environment of Stable-Baselines3 and a seed: an on-policy
            algorithm of Stable-Baselines3 (PPO) that has not learnt yet.
        steps: environment steps that a method may use to learn, all its environments together.
        num_envs: how many environments the learner steps at once.
        gamma: the learner's discount.
        norm_reward: divide the rewards that the learner is paid, whoever pays them, by the deviation of their
            discounted return (`VecNormalize`).
        watches: how often a method shows its policy to `watch`, evenly over its steps, the end included.
        keeps: environment steps after which a method keeps a copy of its policy (`Trained.kept`), rising; the end is
            not among them.
        horizon: steps of every episode in the fixed-horizon form (`grace_irl.rl.horizon`), which `make_env` and the
            experts' episodes then have; 0 if episodes end as the environment ends them.
        log: folder for a method's own logs (TensorBoard); None: no logs.

    Raises:
        InputError: numbers that are not positive.
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
    """A copy of a policy that went on learning.

    Attributes:
        steps: environment steps of training until then.
        policy: the copy.
    """

    steps: int
    policy: Policy


@dataclass(frozen=True)
class Trained:
    """The result of a method.

    Attributes:
        policy: the policy at the end of training.
        reward: the reward that it recovered; None if it recovers none.
        steps: environment steps that it used; 0 for one that learns offline.
        notes: what a reader of the results should know about this training, one line each.
        paid: the form in which the learner was paid; another one is paid so, too, if the reward is carried to.
        kept: copies of the policy on the way, at `PolicyProblem.keeps`, in order; `policy` is not among them.
    """

    policy: Policy
    reward: TransitionReward | None = None
    steps: int = 0
    notes: tuple[str, ...] = ()
    paid: Paid = "reward"
    kept: tuple[Kept, ...] = ()


class PolicyMethod(Protocol):
    """One way of learning a policy."""

    @property
    def name(self) -> str:
        """As `--methods` and the tables have it."""
        ...

    @property
    def reads_length(self) -> str:
        """Way in which its reward can exploit the length of an episode, as the end of a sentence ("its
        reward is positive everywhere, so …"); "" if episode length says nothing to it.
        """
        ...

    def check(self, problem: PolicyProblem) -> None:
        """Refuses, before anything is trained, what it cannot learn from.

        Raises:
            InputError: for example, no expert, or no actions if it needs them.
        """
        ...

    def train(self, problem: PolicyProblem, seed: int, watch: Watch = unwatched) -> Trained:
        """Learns. The same problem and seed give the same policy on the same machine.

        Raises:
            InputError: as `check`.
        """
        ...


GROUP = "grace_irl.baselines"
"""Each entry point names a frozen dataclass that is a `PolicyMethod`; its fields are the method's settings."""


def offered() -> tuple[str, ...]:
    """Names of the methods that installed distributions offer, sorted."""
    return tuple(sorted(_points()))


def load_method(name: str, **settings: Any) -> PolicyMethod:
    """The method that a name stands for.

    Args:
        name: one of `offered()`.
        settings: fields of the method that differ from its defaults.

    Raises:
        InputError: no such method or setting, a value that is not of its type, or packages that it needs are missing.
    """
    points = _points()
    if name not in points:
        raise InputError(
            f"method {name!r}; expected one of {', '.join(sorted(points)) or 'none'}"
            " (GAIL, AIRL, BC and PPO on the true reward come with grace-irl-baselines: docs/baselines.md)"
        )
    try:
        made = points[name].load()
    except ImportError as error:
        raise InputError(
            f"method {name!r}: {error.name or error} is not installed; expected what it imports: docs/baselines.md"
        ) from None
    known = _settings(made)
    for key in settings:
        if key not in known:
            raise InputError(f"method {name!r}: setting {key!r}; expected one of {', '.join(known) or 'none'}")
    types = get_type_hints(made)
    method: PolicyMethod = made(**{key: _read(name, key, value, types[key]) for key, value in settings.items()})
    return method


def _read(name: str, key: str, value: Any, kind: Any) -> Any:
    """One setting, as a value of its field's type.

    Raises:
        InputError: it is none.
    """
    try:
        return TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True)).validate_python(value)
    except ValidationError as error:
        raise InputError(f"method {name!r}: setting {key}={value!r}: {error.errors()[0]['msg']}") from None


def _points() -> dict[str, EntryPoint]:
    found: Iterable[EntryPoint] = entry_points(group=GROUP)
    return {point.name: point for point in found}


def _settings(made: Any) -> list[str]:
    """The names of a method's settings: its fields, less what every method has."""
    fields = dataclasses.fields(made) if dataclasses.is_dataclass(made) else ()
    return [field.name for field in fields if field.init]
