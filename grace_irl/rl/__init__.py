"""Environments and policies: collection of demonstrations, PPO on a recovered reward, evaluation of policies."""
