"""Uses of a recovered reward: its file, two runners, and wrappers for Gymnasium, Stable-Baselines3 and imitation.

A runner (module `runner`) applies the program to trajectories or to running episodes. A `Payment` (module `scale`)
converts the rewards to the form that the learner trains on.
"""

from grace_irl.rewards.file import RewardFile, load_reward
from grace_irl.rewards.runner import InProcessRunner, RewardRunner, SandboxedRunner
from grace_irl.rewards.scale import Form, Payment, Scale

__all__ = [
    "Form",
    "InProcessRunner",
    "Payment",
    "RewardFile",
    "RewardRunner",
    "SandboxedRunner",
    "Scale",
    "load_reward",
]
