"""Settings of PPO for single environments and for kinds of state, with their sources."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from grace_irl.errors import InputError
from grace_irl.pages import page
from grace_irl.rl.observers import observed_kinds
from grace_irl.states import kind_named
from grace_irl.states.grid import GRID
from grace_irl.states.image import IMAGE
from grace_irl.states.record import RECORD
from grace_irl.states.vector import VECTOR

_PPO = (
    *("n_steps", "batch_size", "n_epochs", "learning_rate", "gamma", "gae_lambda"),
    *("ent_coef", "vf_coef", "clip_range", "max_grad_norm"),
)


@dataclass(frozen=True)
class Hyperparameters:
    """Settings of PPO, in the names of Stable-Baselines3.

    Attributes:
        source: origin of the values.
        n_envs: number of environments in parallel.
        n_steps: steps of each environment between two updates. A rollout has `n_envs * n_steps` steps.
        batch_size: transitions in a minibatch.
        n_epochs: passes over a rollout in one update.
        learning_rate, gamma, gae_lambda, ent_coef, vf_coef, clip_range, max_grad_norm: as in Schulman et al. 2017.
        net_arch: units of each hidden layer, for the policy and for the value function.
        activation: activation function of the hidden layers.
        log_std_init: initial logarithm of the standard deviation of continuous actions.
        ortho_init: whether initial weights are orthogonal.
        adam_eps: epsilon of Adam.
        norm_reward: whether to divide rewards by the standard deviation of their discounted return (`VecNormalize`).
        deterministic: whether evaluations use the most probable action instead of a drawn one.
    """

    source: str
    n_envs: int = 8
    n_steps: int = 256
    batch_size: int = 64
    n_epochs: int = 10
    learning_rate: float = 3e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    ent_coef: float = 0.0
    vf_coef: float = 0.5
    clip_range: float = 0.2
    max_grad_norm: float = 0.5
    net_arch: tuple[int, ...] = (64, 64)
    activation: Literal["Tanh", "ReLU"] = "Tanh"
    log_std_init: float = 0.0
    ortho_init: bool = True
    adam_eps: float = 1e-5
    norm_reward: bool = True
    deterministic: bool = True

    @property
    def rollout(self) -> int:
        """Environment steps between two updates."""
        return self.n_envs * self.n_steps

    @property
    def line(self) -> str:
        """All settings but their source, in one line for tables."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "source"}
        return ", ".join(f"{name} {_shown(value)}" for name, value in values.items())

    def ppo(self) -> dict[str, Any]:
        """The settings that are arguments of `stable_baselines3.PPO`."""
        return {name: getattr(self, name) for name in _PPO}


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " x ".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


_ZOO = "rl-baselines3-zoo, hyperparams/ppo.yml, {}; its one environment of 512 steps became 8 of 64"

TABLE: dict[str, Hyperparameters] = {
    GRID.name: Hyperparameters(
        source="rl-starter-files (scripts/train.py: 16 x 128 steps, 4 epochs, minibatches of 256, entropy 0.01), with "
        "the gae_lambda 0.99 of BabyAI (Chevalier-Boisvert et al. 2019); learning rate as measured here",
        n_envs=16,
        n_steps=128,
        batch_size=256,
        n_epochs=4,
        learning_rate=1e-3,
        gae_lambda=0.99,
        ent_coef=0.01,
        net_arch=(64,),
        norm_reward=False,
        deterministic=False,
    ),
    "Walker2d": Hyperparameters(
        source=_ZOO.format("Walker2d-v3 (tuned)"),
        n_steps=64,
        batch_size=32,
        n_epochs=20,
        learning_rate=5.05041e-05,
        ent_coef=0.000585045,
        vf_coef=0.871923,
        clip_range=0.1,
        max_grad_norm=1.0,
    ),
    "Humanoid": Hyperparameters(
        source=_ZOO.format("Humanoid-v3 (tuned)"),
        n_steps=64,
        batch_size=256,
        n_epochs=5,
        learning_rate=3.56987e-05,
        gamma=0.95,
        gae_lambda=0.9,
        ent_coef=0.00238306,
        vf_coef=0.431892,
        clip_range=0.3,
        max_grad_norm=2.0,
        net_arch=(256, 256),
        activation="ReLU",
        log_std_init=-2.0,
        ortho_init=False,
    ),
    IMAGE.name: Hyperparameters(
        source="rl-baselines3-zoo, hyperparams/ppo.yml, atari, at a constant learning rate and clip range; one frame "
        "instead of four, and rewards normalised, as recovered ones have any size",
        n_steps=128,
        batch_size=256,
        n_epochs=4,
        learning_rate=2.5e-4,
        ent_coef=0.01,
        clip_range=0.1,
        net_arch=(),
        activation="ReLU",
        deterministic=False,
    ),
    VECTOR.name: Hyperparameters(
        source="the defaults of Stable-Baselines3, 8 x 256 steps; normalised as MuJoCo in the zoo. Hopper and "
        "HalfCheetah, too: with the zoo's tuned settings Hopper stood still on the true reward "
        f"({page('training')})"
    ),
}
"""Settings by the name of an environment without its version, and by kind of state. An environment without an entry has
the settings of its kind of state."""

TABLE[RECORD.name] = TABLE[VECTOR.name]


def hyperparameters(environment_id: str, kind: str) -> Hyperparameters:
    """The settings for an environment.

    Args:
        environment_id: a Gymnasium id, or "".
        kind: name of the kind of the environment's states.

    Raises:
        InputError: no policy observes states of this kind, or there is no such kind.
    """
    name = environment_id.split("/")[-1].rsplit("-v", 1)[0]
    found = TABLE.get(name) or TABLE.get(kind)
    if found is None:
        raise InputError(f"states that are {kind_named(kind).plural}; expected {observed_kinds()}: PPO reads no others")
    return found
