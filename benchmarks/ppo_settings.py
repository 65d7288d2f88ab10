"""A trial of PPO's settings on the true reward: the defaults of Stable-Baselines3 beside the zoo's tuned ones.

A reward is judged by what PPO makes of it, so PPO itself must learn where the reward is right. Prints their curves:

    python benchmarks/ppo_settings.py                  # Hopper, 400,000 steps of each; 10 minutes on a free core
    python benchmarks/ppo_settings.py --bodies HalfCheetah --settings default --steps 500000
"""

from __future__ import annotations

import argparse
import functools

from grace_irl.rl.curve import Point
from grace_irl.rl.environments import make
from grace_irl.rl.hyperparameters import TABLE, Hyperparameters
from grace_irl.rl.ppo import train

DEFAULT = TABLE["vector"]
ZOO = {
    "Hopper": Hyperparameters(
        source="rl-baselines3-zoo, hyperparams/ppo.yml, Hopper-v3 (tuned); one environment of 512 steps became 8 of 64",
        n_envs=8,
        n_steps=64,
        batch_size=32,
        n_epochs=5,
        learning_rate=9.80828e-05,
        gamma=0.999,
        gae_lambda=0.99,
        ent_coef=0.00229519,
        vf_coef=0.835671,
        max_grad_norm=0.7,
        net_arch=(256, 256),
        activation="ReLU",
        log_std_init=-2.0,
        ortho_init=False,
    ),
    "HalfCheetah": Hyperparameters(
        source="rl-baselines3-zoo, hyperparams/ppo.yml, HalfCheetah-v3 (tuned); as above",
        n_envs=8,
        n_steps=64,
        batch_size=64,
        n_epochs=20,
        learning_rate=2.0633e-05,
        gamma=0.98,
        gae_lambda=0.92,
        ent_coef=0.000401762,
        vf_coef=0.58096,
        clip_range=0.1,
        max_grad_norm=0.8,
        net_arch=(256, 256),
        activation="ReLU",
        log_std_init=-2.0,
        ortho_init=False,
    ),
}


def settings_of(name: str, body: str) -> Hyperparameters:
    """Settings by their name."""
    return {"default": DEFAULT, "zoo": ZOO[body]}[name]


def say(label: str, point: Point) -> None:
    """One line of a curve."""
    print(f"{label}: {point.steps:9,} steps, return {point.mean:6.0f}, length {point.length:5.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bodies", default="Hopper", help="comma-separated: Hopper, HalfCheetah")
    parser.add_argument("--settings", default="default,zoo", help="comma-separated: default, zoo")
    parser.add_argument("--steps", type=int, default=400_000, help="of each training (default 400,000)")
    parser.add_argument("--looks", type=int, default=8, help="evaluations on the way (default 8), of 10 episodes each")
    parser.add_argument("--seed", type=int, default=0, help="of each training (default 0)")
    options = parser.parse_args()
    for body in options.bodies.split(","):
        for name in options.settings.split(","):
            train(
                functools.partial(make, f"{body}-v5"),
                options.steps,
                seed=options.seed,
                settings=settings_of(name, body),
                evaluations=options.looks,
                episodes=10,
                progress=functools.partial(say, f"{body}, {name}"),
            )


if __name__ == "__main__":
    main()
