"""Environments and policies: collecting demonstrations, PPO on a recovered reward, measuring policies."""
