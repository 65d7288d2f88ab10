"""Trained policies, each with a network and its observer, and the files that store them."""

from __future__ import annotations

import io
import json
import reprlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy

from grace_irl.atomic import write_atomically
from grace_irl.errors import InputError
from grace_irl.rl.checkpoint import drawn_actions, read_weights, require_layers, require_tensors
from grace_irl.rl.hyperparameters import Hyperparameters
from grace_irl.rl.networks import network_options
from grace_irl.rl.observers import GridObserver, ImageObserver, Observer, RecordObserver, VectorObserver

FORMAT = 1


@dataclass(frozen=True)
class TrainedPolicy:
    """A policy of Stable-Baselines3, together with the conversion of states to the policy's observations.

    Attributes:
        network: the policy, whose inputs are observations of `observer`.
        observer: the conversion of states to observations.
        settings: settings of PPO with which the policy was trained.
        environment: Gymnasium id of the environment in which the policy was trained, or "".
    """

    network: ActorCriticPolicy
    observer: Observer
    settings: Hyperparameters
    environment: str = ""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[NDArray[Any], Any]:
        """Actions and hidden state, as from a policy of Stable-Baselines3."""
        return self.network.predict(observation, state, episode_start, deterministic)

    def act(self, observations: NDArray[Any], *, deterministic: bool) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Actions `(batch, ...)` within the action space, and log-probabilities `(batch,)`; see `drawn_actions`."""
        return drawn_actions(self.network, observations, deterministic=deterministic)

    def save(self, path: str | Path) -> None:
        """Write one file atomically. It holds the weights, and a JSON text with the settings of the network.

        Raises:
            InputError: the file cannot be written.
        """
        about = {
            "format": FORMAT,
            "observer": {"kind": self.observer.kind, **asdict(self.observer)},  # type: ignore[call-overload]
            "action_space": _described(self.network.action_space),
            "settings": asdict(self.settings),
            "environment": self.environment,
        }
        buffer = io.BytesIO()
        torch.save({"about": json.dumps(about), "weights": self.network.state_dict()}, buffer)
        write_atomically(Path(path), buffer.getvalue())


def load_policy(path: str | Path, device: str = "cpu") -> TrainedPolicy:
    """Load a file of `TrainedPolicy.save` by torch's weights-only loader, which runs no code from the file.

    Raises:
        InputError: the file is missing, or `TrainedPolicy.save` did not write it.
    """
    try:
        found = read_weights(Path(path).read_bytes(), device)
        about = json.loads(found["about"])
        if about["format"] != FORMAT:
            raise InputError(
                f"{path}: format {reprlib.repr(about['format'])}; expected {FORMAT}: it is of another version"
            )
        fields = _tuples(about["observer"])
        observer = OBSERVERS_OF[fields.pop("kind")](**fields)
        settings = Hyperparameters(**_tuples(about["settings"]))
        weights = require_tensors(found["weights"])
        action_space = about["action_space"]
        numbers = sum(tensor.numel() for tensor in weights.values())
        least = max(observer.least_weights, np.sum(action_space.get("n", 1), dtype=float))
        if least > numbers:
            raise ValueError(f"layers that need more than its {numbers:,} weights")
        if settings.activation not in ("Tanh", "ReLU"):
            raise ValueError(f"activation {reprlib.repr(settings.activation)}, which is neither Tanh nor ReLU")
        require_layers(weights, settings.net_arch, 1)
        network = build_network(observer, _space(action_space), settings)
        policy = TrainedPolicy(network, observer, settings, about["environment"])
        policy.network.load_state_dict(weights)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; expected a policy that training saved") from None
    except Exception as error:  # torch raises errors of many types
        lines = str(error).strip().splitlines() or [type(error).__name__]
        said = lines[0].partition(". ")[0][:200]
        raise InputError(
            f"{path}: not a saved policy ({said}); expected what fit --expand or grace_irl.rl.ppo.train wrote "
            "(Stable-Baselines3 loads those of compare: ActorCriticPolicy.load)"
        ) from None
    policy.network.to(device)
    policy.network.set_training_mode(False)
    return policy


def network_settings(observer: Observer, settings: Hyperparameters) -> tuple[type[ActorCriticPolicy], dict[str, Any]]:
    """The class of a policy and its `policy_kwargs` (Stable-Baselines3)."""
    made, options = network_options(observer)
    return made, options | {
        "net_arch": {"pi": list(settings.net_arch), "vf": list(settings.net_arch)},
        "activation_fn": getattr(torch.nn, settings.activation),
        "log_std_init": settings.log_std_init,
        "ortho_init": settings.ortho_init,
        # `fused` updates all parameters in one call. Otherwise, Adam takes a fifth of a small network's update time.
        "optimizer_kwargs": {"eps": settings.adam_eps, "fused": True},
    }


def build_network(observer: Observer, action_space: Any, settings: Hyperparameters) -> ActorCriticPolicy:
    """An untrained policy for an observer and an action space."""
    made, options = network_settings(observer, settings)
    return made(observer.space, action_space, lambda _: settings.learning_rate, **options)


OBSERVERS_OF: dict[str, type[Any]] = {
    made.kind: made for made in (GridObserver, VectorObserver, ImageObserver, RecordObserver)
}
"""Observer classes by the kind of their states, to load saved policies."""


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    """Convert lists to tuples, because JSON has no tuples."""
    return {key: _tuple(value) if isinstance(value, list) else value for key, value in fields.items()}


def _tuple(values: list[Any]) -> tuple[Any, ...]:
    return tuple(_tuple(each) if isinstance(each, list) else each for each in values)


def _described(space: Any) -> dict[str, Any]:
    if isinstance(space, Discrete):
        return {"n": int(space.n)}
    if isinstance(space, MultiDiscrete):
        return {"n": space.nvec.tolist()}
    if isinstance(space, MultiBinary):
        return {"n": space.n, "binary": True}
    return {"low": space.low.tolist(), "high": space.high.tolist(), "dtype": space.dtype.str}


def _space(about: dict[str, Any]) -> Any:
    if "n" in about:
        made = MultiBinary if about.get("binary") else MultiDiscrete if isinstance(about["n"], list) else Discrete
        return made(about["n"])
    dtype: Any = np.dtype(about["dtype"]).type
    return Box(np.array(about["low"], dtype), np.array(about["high"], dtype), dtype=dtype)
