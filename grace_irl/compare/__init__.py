"""Comparisons: GRACE, GAIL, AIRL, BC and PPO on the true reward, trained and measured alike (docs/compare.md)."""
