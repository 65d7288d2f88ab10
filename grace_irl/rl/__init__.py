"""Environments and policies: collection of demonstrations, PPO on a recovered reward, evaluation of policies."""

TRAINING_IMPORTS = (
    "torch._dynamo",  # torch imports it for the first optimiser
    "grace_irl.rl.learning",
    "grace_irl.rl.ppo",
    "grace_irl.rewards.file",
)
"""Names of modules that every training needs and that are slow to import. Jobs that train policies list these names in
`grace_irl.work.executor.Job.imports`."""
