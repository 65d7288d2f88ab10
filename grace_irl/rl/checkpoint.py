"""Policies from Stable-Baselines3 checkpoints, loaded without running code from the file.

A checkpoint contains weights, and contains its settings twice: as JSON and as pickles. The pickles are never opened,
because a pickle can run code. The JSON provides the kind of policy, its layers and its activation. Torch's weights-only
loader reads the weights. Before a network is built, `require_layers` checks that the file holds enough weights for the
layers in the JSON.
"""

from __future__ import annotations

import importlib
import io
import lzma
import re
import reprlib
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from grace_irl.demos.memory import Memory
from grace_irl.errors import InputError
from grace_irl.rl.actions import typed
from grace_irl.rl.views import space_of
from grace_irl.states import kind_of_state
from grace_irl.toml import from_json


def read_weights(data: bytes, device: str = "cpu") -> Any:
    """The content of a file that `torch.save` wrote, usually a dict of tensors.

    Args:
        data: the whole file.
        device: torch device on which the tensors are placed.

    Raises:
        ValueError: `torch.save` did not write the data, or the data is compressed. Errors of torch pass through.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
    except zipfile.BadZipFile as error:
        raise ValueError(f"not what torch.save writes: {error}") from None
    if any(part.compress_type != zipfile.ZIP_STORED for part in parts) or sum(p.file_size for p in parts) > len(data):
        raise ValueError("weights that are compressed, which torch.save does not do")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch warns about files that its older versions wrote
        return torch.load(io.BytesIO(data), map_location=device, weights_only=True)


def require_tensors(found: object) -> dict[str, torch.Tensor]:
    """The tensors of a network by name, after a check that the file holds all numbers of each tensor.

    Raises:
        ValueError: `found` is not a dict of tensors by name, or a tensor is incomplete or not finite.
    """
    if not isinstance(found, Mapping) or not found:
        raise ValueError("no tensors by their names")
    for name, tensor in found.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
            raise ValueError(f"weight {str(name)[:80]!r} is no plain tensor")
        if tensor.device.type == "meta" or tensor.untyped_storage().nbytes() < tensor.numel() * tensor.element_size():
            raise ValueError(f"weight {name[:80]!r} of shape {tuple(tensor.shape)} has fewer numbers than its shape")
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"weight {name[:80]!r} holds NaN or infinity")
    return dict(found)


def require_layers(weights: Mapping[str, torch.Tensor], described: object, inputs: int, critics: int = 1) -> None:
    """Refuse layers that need more numbers than `weights` holds, so that a small file cannot request a huge network.

    Args:
        weights: result of `require_tensors`.
        described: layers in the form of `net_arch` (Stable-Baselines3): a list of widths, or a dict of such lists.
        inputs: number of inputs of the first layer.
        critics: number of critic networks. If `described` is a dict, its last list holds the layers of each critic.

    Raises:
        ValueError: `described` has another form, or `weights` is too small for its layers and critics.
        InputError: the network does not fit into memory.
    """
    numbers = sum(tensor.numel() for tensor in weights.values())
    parts: list[Any] = list(described.values()) if isinstance(described, Mapping) else [described]
    if not all(isinstance(part, list | tuple) and all(type(w) is int and w > 0 for w in part) for part in parts):
        raise ValueError(f"layers {str(described)[:80]}")
    layers = sum(len(part) for part in parts)
    needed = [sum(one * other + other for one, other in pairwise([inputs, *part])) for part in parts]
    if type(critics) is not int or not 0 < critics <= len(weights) or layers > len(weights):
        raise ValueError(f"{layers} layers and {str(critics)[:20]} critics of {len(weights)} weights")
    if max(sum(needed), critics * (needed[-1] if needed else 0)) > numbers:
        raise ValueError(f"layers {str(described)[:80]} of more numbers than its {numbers:,} weights")
    Memory().require(COPIES * 4 * numbers, "a network")


COPIES = 4
"""Number of copies of each weight in memory while a network is loaded: in the file, the tensor, the network, and the
network's initial values."""


PICTURE, PART = 512, 256
"""Number of features per image in a `CnnPolicy` (PICTURE) and in a `MultiInputPolicy` (PART)."""

# Names of the policy classes for arrays, images and dicts, by the module of Stable-Baselines3 that defines them.
POLICIES = {
    "stable_baselines3.common.policies": ("ActorCriticPolicy", "ActorCriticCnnPolicy", "MultiInputActorCriticPolicy"),
    "stable_baselines3.sac.policies": ("MlpPolicy", "CnnPolicy", "MultiInputPolicy"),
    "stable_baselines3.td3.policies": ("MlpPolicy", "CnnPolicy", "MultiInputPolicy"),
    "stable_baselines3.dqn.policies": ("MlpPolicy", "CnnPolicy", "MultiInputPolicy"),
}
ACTIVATIONS = ("Tanh", "ReLU", "ELU", "LeakyReLU", "SiLU", "GELU")
READABLE = ("net_arch", "activation_fn", "n_critics", "squash_output", "log_std_init", "use_expln", "full_std")


MAX_DATA = 64 * 1024 * 1024
"""Maximum size of the JSON in a checkpoint, in bytes. Real checkpoints have 20 KB to 2 MB."""

DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, LookupError, ValueError, OSError, EOFError, RuntimeError)
"""Errors of `zipfile` and `from_json` for damaged checkpoints, such as archives that are truncated, encrypted or
compressed by a method unknown to `zipfile`."""


@dataclass(frozen=True)
class _About:
    """The settings that this module reads from the JSON of a checkpoint."""

    policy_class: dict[str, Any] = field(default_factory=dict)
    policy_kwargs: dict[str, Any] | None = None
    use_sde: bool = False


class CheckpointPolicy:
    """A policy from a checkpoint of PPO, A2C, SAC, TD3, DDPG or DQN. A stochastic policy draws its actions.

    The policy observes the environment's states, in the form that reward programs receive. If states are records (dicts
    of named parts), the policy must be a `MultiInputPolicy` with inputs of the same names. If states are images, the
    weights show whether the policy is a `CnnPolicy` or an `MlpPolicy`.

    Args:
        path: the .zip that `model.save` wrote.

    Raises:
        InputError: the file is missing, is not a checkpoint, or has a policy that this module cannot rebuild. `act`
            also raises InputError if the policy does not fit the environment's states and actions.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.is_file():
            raise InputError(f"--policy {path}: no such file; expected bot, random or a Stable-Baselines3 .zip")
        try:
            about = from_json(_About, _member(path, "data", MAX_DATA))
        except DAMAGED as error:
            raise InputError(
                f"--policy {path}: not a Stable-Baselines3 checkpoint ({str(error)[:200]}); expected what model.save() "
                "wrote"
            ) from None
        self._module = str(about.policy_class.get("__module__", ""))[:80]
        if self._module not in POLICIES:
            raise InputError(
                f"--policy {path}: a policy from {self._module or 'an unknown module'}; expected an "
                "MlpPolicy of PPO, A2C, "
                "SAC, TD3 or DQN"
            )
        self._options = self._policy_options(about)
        self._policy: Any = None
        self._space: Any = None

    def reset(self, environment: Any, seed: int) -> None:
        """Seed torch, and store the spaces from which `act` builds the policy."""
        torch.manual_seed(seed)
        self._space = environment.action_space
        self._observed = environment.observation_space

    def act(self, state: Any) -> tuple[Any, float | None]:
        """An action and its log-probability. The log-probability is None unless the policy is from PPO or A2C."""
        if self._policy is None:
            self._policy = self._build(state)
        if self._module != "stable_baselines3.common.policies":
            action, _ = self._policy.predict(self._seen(state), deterministic=False)
            return action, None
        actions, log_probs = drawn_actions(self._policy, self._seen(state))
        return actions.reshape(self._space.shape), float(log_probs[0])

    def _build(self, state: Any) -> Any:
        kind = kind_of_state(state, f"--policy {self._path}")
        try:
            import gymnasium
        except ImportError as error:
            raise InputError(
                f"--policy {self._path}: {error.name} is not installed; install the extra, pip install 'grace-irl[rl]'"
            ) from None
        from stable_baselines3.common.preprocessing import get_flattened_obs_dim, is_image_space

        space = _as_trained(space_of(kind, state), _leaves(self._observed))
        options = dict(self._options)
        if "activation_fn" in options:
            options["activation_fn"] = getattr(importlib.import_module("torch.nn"), options["activation_fn"])
        arrays, images, dicts = POLICIES[self._module]
        try:
            data = _member(self._path, "policy.pth", Memory().limit // COPIES)
            found = require_tensors(read_weights(data))
            name, inputs = arrays, get_flattened_obs_dim(space)
            if isinstance(space, gymnasium.spaces.Dict):
                name = dicts
                inputs = sum(PART if is_image_space(part) else get_flattened_obs_dim(part) for part in space.values())
            elif any("features_extractor.cnn." in each for each in found):
                name, inputs = images, PICTURE
            make = getattr(importlib.import_module(self._module), name)
            require_layers(found, options.get("net_arch", []), inputs, options.get("n_critics", 1))
            with warnings.catch_warnings():  # layers of older versions warn, but load correctly
                warnings.simplefilter("ignore", UserWarning)
                policy = make(space, self._space, lambda _: 0.0, **options)
            policy.load_state_dict(found)
        except InputError:
            raise
        except Exception as error:  # torch and SB3 raise errors of many types
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise InputError(
                f"--policy {self._path}: its weights do not fit {_described(space)} and actions of {self._space} "
                f"({lines[-1].strip()[:200]}); expected a policy trained on this environment's states"
            ) from None
        policy.set_training_mode(False)
        return policy

    def _seen(self, state: Any) -> Any:
        """A state as an observation for Stable-Baselines3: one array, or a dict of named parts."""
        parts = kind_of_state(state, f"--policy {self._path}").separated(state)
        named = {name: np.asarray(part) for name, part in parts.items()}
        return named[""] if list(named) == [""] else named

    def _policy_options(self, about: _About) -> dict[str, Any]:
        """The options in `policy_kwargs` that this module can read (`READABLE`), such as layers and activation.

        Raises:
            InputError: an option that this module cannot read, or state-dependent exploration.
        """
        stated = about.policy_kwargs or {}
        if about.use_sde:
            raise InputError(f"--policy {self._path}: state-dependent exploration; expected a policy without it")
        known = (*READABLE, "use_sde")
        unknown = [key for key in stated if key not in known and not key.startswith((":", "optimizer"))]
        if unknown:
            raise InputError(
                f"--policy {self._path}: policy_kwargs {reprlib.repr(unknown[0])}; expected only {', '.join(READABLE)}"
            )
        options = {key: stated[key] for key in READABLE if key in stated}
        if "activation_fn" in options:
            found = re.fullmatch(r"<class 'torch\.nn\.modules\.activation\.(\w+)'>", str(options["activation_fn"]))
            if found is None or found[1] not in ACTIVATIONS:
                raise InputError(
                    f"--policy {self._path}: activation {reprlib.repr(options['activation_fn'])}; expected "
                    f"{', '.join(ACTIVATIONS)}"
                )
            options["activation_fn"] = found[1]
        return options


def drawn_actions(
    network: Any, observations: Any, *, deterministic: bool = False
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Actions `(batch, ...)` of an actor-critic policy within its action space, and log-probabilities `(batch,)`.

    Continuous actions are clipped after their log-density is computed, as in SB3's rollouts.
    """
    with torch.no_grad():
        batch, _ = network.obs_to_tensor(observations)
        distribution = network.get_distribution(batch)
        drawn = distribution.get_actions(deterministic=deterministic)
        log_probs = distribution.log_prob(drawn).cpu().numpy().astype(np.float64)
    space = network.action_space
    actions = typed(space, drawn.cpu().numpy())
    return np.clip(actions, space.low, space.high) if hasattr(space, "low") else actions, log_probs


def _leaves(space: Any, name: str = "") -> dict[str, Any]:
    """The inner spaces of a `Dict` by path, such as "arm/position"; {"": space} for any other space."""
    if not hasattr(space, "spaces") or not hasattr(space.spaces, "items"):
        return {name: space}
    found: dict[str, Any] = {}
    for key, inner in space.spaces.items():
        found |= _leaves(inner, f"{name}/{key}" if name else str(key))
    return found


def _as_trained(space: Any, given: dict[str, Any]) -> Any:
    """The observation space that Stable-Baselines3 gives to a policy, with the channels of images first.

    For records (dicts of named parts), the parts of the result come from `given` if `given` and `space` have the same
    part names, because a part may be discrete in `given`, but a box in `space`. Otherwise, they come from `space`.

    Args:
        space: the space of the states, from `space_of`.
        given: spaces of the environment's observations, by path, such as "arm/position".
    """
    from gymnasium.spaces import Dict
    from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first
    from stable_baselines3.common.vec_env import VecTransposeImage

    if isinstance(space, Dict):
        parts = given if set(given) == set(space.spaces) else space.spaces
        return Dict({name: _as_trained(part, {}) for name, part in parts.items()})
    if is_image_space(space) and not is_image_space_channels_first(space):
        return VecTransposeImage.transpose_space(space)
    return space


def _described(space: Any) -> str:
    return f"states of shape {space.shape}" if space.shape is not None else f"states of {space}"


def _member(path: Path, name: str, most: int) -> bytes:
    """The content of a file in a zip. A file of more than `most` bytes is refused before it is unpacked."""
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo(name).file_size
        if size > most:
            raise ValueError(f"{name!r} of {size:,} bytes; expected at most {most:,}")
        return archive.read(name)
