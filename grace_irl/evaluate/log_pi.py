"""log pi(a | s), the log-probabilities of the demonstrated actions in the AIRL discriminator (docs/fitness.md).

A run chooses one of four sources: 0 everywhere ("constant"), a uniform policy ("uniform"), the data ("recorded"), or
a policy cloned from the experts ("cloned").
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from grace_irl.demos.labels import Labelled, Problem
from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError

Floats = NDArray[np.float64]
Policy = Callable[[Trajectory], Floats]

MAX_STEPS = 50_000  # maximum number of steps for cloning, evenly spaced: more steps do not improve a linear policy
RIDGE = 1e-2  # L2 penalty per step, on standardised features: keeps weights finite if actions are linearly separable
CLIP = 20.0  # maximum |log pi|, recorded or cloned: one surprising action must not outweigh every reward
MIN_DEVIATION = 1e-3  # minimum deviation of the Gaussian in a dimension, as a fraction of the expert actions' deviation


def clone(experts: Sequence[Trajectory], known: Sequence[Trajectory]) -> Policy:
    """Fit a policy to expert actions. Return a function from a trajectory to log pi(a_t | s_t), shape `(T,)`.

    The features are standardised, flattened states; the instruction is not a feature. For discrete actions, the policy
    is a multinomial logistic regression. For continuous actions, the policy is a Gaussian: a ridge regression gives the
    mean, and each action dimension has one standard deviation. All log pi are clipped to [-20, 20].

    Args:
        experts: trajectories to which the policy is fitted.
        known: trajectories whose discrete actions become the classes of the regression. Any other action has log pi
            -20.

    Raises:
        InputError: experts without steps, states without numbers (screens), or states of different shapes.
    """
    for t in (*experts, *known):
        if t.state_kind.numbers(t.states[:1]) is None:
            said = f"{t.state_kind.plural} (kind {t.kind})"
            raise InputError(f"{said}; --log-pi cloned needs states of numbers: use --log-pi constant")
    shapes = {t.state_kind.shape(t.states) for t in (*experts, *known)}
    if len(shapes) != 1:
        raise InputError(f"states of shapes {sorted(shapes)}; --log-pi cloned needs one shape: use --log-pi constant")
    states = np.concatenate([_numbers_of(t) for t in experts])
    actions = np.concatenate([np.asarray(t.actions) for t in experts])
    if len(states) == 0:
        raise InputError("expert trajectories hold no action; --log-pi cloned needs some: use --log-pi constant")
    chosen = np.linspace(0, len(states) - 1, min(len(states), MAX_STEPS)).round().astype(np.intp)
    states, actions = states[chosen], actions[chosen]
    mean, deviation = states.mean(axis=0), states.std(axis=0)
    deviation[deviation == 0] = 1.0

    def features(batch: Floats) -> Floats:
        standard = (batch - mean) / deviation
        return np.concatenate([standard, np.ones((len(standard), 1))], axis=1)

    if actions.dtype.kind in "iub":
        classes = np.unique(np.concatenate([_rows(t.actions) for t in known]), axis=0)
        scores = _logistic(features(states), _numbers(_rows(actions), classes), len(classes))
        return lambda t: _clip(_discrete(scores, features(_numbers_of(t)), _rows(t.actions), classes))
    gaussian = _gaussian(features(states), _flat(actions))
    return lambda t: _clip(gaussian(features(_numbers_of(t)), _flat(np.asarray(t.actions))))


def _numbers_of(trajectory: Trajectory) -> Floats:
    """All states but the last as rows of numbers, `(T, n)`."""
    found = trajectory.state_kind.numbers(trajectory.states[:-1])
    assert found is not None  # `clone` refuses states without numbers
    return found


def _flat(batch: NDArray[np.generic]) -> Floats:
    return batch.reshape(len(batch), -1).astype(np.float64)


def _rows(actions: object) -> NDArray[np.generic]:
    array = np.asarray(actions)
    return array.reshape(len(array), -1)


def _clip(values: Floats) -> Floats:
    return np.clip(values, -CLIP, CLIP)


def _numbers(actions: NDArray[np.generic], classes: NDArray[np.generic]) -> NDArray[np.intp]:
    """Index of each action among the classes; -1 for an unknown action."""
    index = {row.tobytes(): number for number, row in enumerate(classes.astype(np.int64))}
    return np.array([index.get(row.tobytes(), -1) for row in actions.astype(np.int64)], dtype=np.intp)


def _logistic(features: Floats, labels: NDArray[np.intp], classes: int) -> Floats:
    """Fit weights `(d, classes)`: minimise the mean cross-entropy plus `RIDGE / 2` times the sum of squared weights."""
    count, width = features.shape
    target = np.zeros((count, classes))
    target[np.arange(count), labels] = 1.0

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(width, classes)
        log_p = log_softmax(features @ weights, axis=1)
        value = -float((target * log_p).sum()) / count + RIDGE / 2 * float((weights**2).sum())
        gradient = features.T @ (np.exp(log_p) - target) / count + RIDGE * weights
        return value, gradient.ravel()

    found = minimize(loss, np.zeros(width * classes), jac=True, method="L-BFGS-B", options={"maxiter": 300})
    weights: Floats = found.x.reshape(width, classes)
    return weights


def _discrete(weights: Floats, features: Floats, actions: NDArray[np.generic], classes: NDArray[np.generic]) -> Floats:
    log_p: Floats = log_softmax(features @ weights, axis=1)
    labels = _numbers(actions, classes)
    values = log_p[np.arange(len(labels)), labels]
    return np.where(labels >= 0, values, -CLIP)


def _gaussian(features: Floats, actions: Floats) -> Callable[[Floats, Floats], Floats]:
    penalty = RIDGE * len(features) * np.eye(features.shape[1])
    penalty[-1, -1] = 0.0  # no penalty on the intercept
    weights = np.linalg.lstsq(features.T @ features + penalty, features.T @ actions, rcond=None)[0]
    spread = actions.std(axis=0)
    spread[spread == 0] = 1.0
    deviation = np.maximum((actions - features @ weights).std(axis=0), MIN_DEVIATION * spread)

    def log_density(at: Floats, taken: Floats) -> Floats:
        standard = (taken - at @ weights) / deviation
        density: Floats = -(standard**2 / 2 + np.log(deviation) + np.log(2 * np.pi) / 2).sum(axis=1)
        return density

    return log_density


Choice = Literal["constant", "uniform", "recorded", "cloned"]
CHOICES: tuple[str, ...] = get_args(Choice)


@dataclass(frozen=True, eq=False)
class LogPi:
    """log pi for every state of a problem.

    Attributes:
        mean: mean log pi of all training steps, and log pi of every state if `values` is empty.
        values: log pi of each trajectory, `(T+1,)`, by the trajectory's `key`. Entry t is log pi(a_t | s_t). The last
            state has no action, so its entry is `mean`.
    """

    mean: float = 0.0
    values: dict[str, Floats] = field(default_factory=dict)

    @property
    def constant(self) -> bool:
        """Whether log pi is the same everywhere. The discriminator's logit is then the calibrated reward itself."""
        return not self.values

    def of(self, trajectory: Trajectory) -> Floats:
        """log pi `(T+1,)` of one trajectory."""
        if self.values:
            return self.values[key(trajectory)]
        return np.full(len(trajectory.states), self.mean)


def key(trajectory: Trajectory) -> str:
    """Key of a trajectory in `LogPi.values`: its digest, and a hash of its recorded log-probabilities, if any.

    The digest covers states, actions and instruction. If two policies act alike, their trajectories have equal digests
    but may have different log-probabilities.
    """
    if trajectory.log_probs is None:
        return trajectory.digest
    recorded = np.ascontiguousarray(trajectory.log_probs, dtype="<f8")
    return f"{trajectory.digest} {hashlib.sha256(recorded.data).hexdigest()[:16]}"


def align(values: Floats, *, takes_action: bool) -> Floats:
    """Select the entries of log pi `(T+1,)` that belong to the rewards of a trajectory.

    Rewards of states need all entries. With `takes_action`, the reward of transition (s_t, a_t, s_{t+1}) needs entry t,
    so the entry of the last state is dropped.
    """
    return values[:-1] if takes_action else values


def log_pi(problem: Problem, choice: str) -> LogPi:
    """log pi for every trajectory of the problem, by one of `CHOICES`. All estimates use training data only.

    Raises:
        InputError: an unknown choice, or data without the actions or log-probabilities that the choice needs.
    """
    if choice == "constant":
        return LogPi()
    if choice == "uniform":
        return LogPi(_uniform([item.trajectory for item in _with_actions(problem.train, choice)]))
    if choice == "recorded":
        return _completed(problem, {key(item.trajectory): _recorded(item.trajectory) for item in problem})
    if choice == "cloned":
        _with_actions(problem.items, choice)
        experts = [item.trajectory for item in problem.train if item.demonstration.role == "expert"]
        policy = clone(experts, [item.trajectory for item in problem.train])
        return _completed(problem, {key(item.trajectory): policy(item.trajectory) for item in problem})
    raise InputError(f"log pi {choice!r} is unknown; expected one of {', '.join(CHOICES)}")


def _completed(problem: Problem, by_step: dict[str, Floats]) -> LogPi:
    """Append an entry for each trajectory's last state: the mean log pi of all training steps.

    Args:
        problem: the problem.
        by_step: log pi of each trajectory's steps, `(T,)`, by the trajectory's `key`.
    """
    steps = [by_step[key(item.trajectory)] for item in problem.train]
    known = np.concatenate(steps) if steps else np.zeros(0)
    mean = float(known.mean()) if len(known) else 0.0
    return LogPi(mean, {name: np.append(values, mean) for name, values in by_step.items()})


def _with_actions(items: Sequence[Labelled], choice: str) -> Sequence[Labelled]:
    for item in items:
        if item.trajectory.actions is None:
            raise InputError(
                f"{item.trajectory.source or 'a trajectory'}: no actions; --log-pi {choice} needs them: "
                "use --log-pi constant"
            )
    return items


def _recorded(trajectory: Trajectory) -> Floats:
    if trajectory.log_probs is None:
        raise InputError(
            f"{trajectory.source or 'a trajectory'}: no recorded log-probabilities; "
            "--log-pi recorded needs a log_prob for every step: use --log-pi constant or cloned"
        )
    return _clip(np.asarray(trajectory.log_probs, dtype=np.float64))  # log(0) = -inf is valid


def _uniform(trajectories: Sequence[Trajectory]) -> float:
    """log pi of the uniform policy: minus the log of the action space's size, estimated from the data.

    For discrete actions, the size is the number of different actions. For continuous actions, it is the volume of the
    smallest box around all actions. The box has no dimension in which all actions are equal.
    """
    actions = np.concatenate([np.asarray(t.actions) for t in trajectories])
    if len(actions) == 0:
        return 0.0
    if actions.dtype.kind in "iub":
        return -float(np.log(len(np.unique(actions, axis=0))))
    flat = actions.reshape(len(actions), -1)
    width = flat.max(axis=0) - flat.min(axis=0)
    return -float(np.log(width[width > 0]).sum())
