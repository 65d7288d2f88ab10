"""Baselines: GAIL, AIRL, behaviour cloning and PPO on the true reward, each a `grace_irl.rl.method.PolicyMethod`."""
