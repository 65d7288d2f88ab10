"""Uses of a recovered reward: its file, the two runners, and wrappers for Gymnasium, SB3 and imitation.

A runner takes the program over trajectories or along running episodes (`runner`). A `Payment` gives what it says in the
form that a learner wants (`scale`).
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
