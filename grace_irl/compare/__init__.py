"""Comparison of methods such as GRACE, GAIL, AIRL, BC and PPO on the true reward (docs/compare.md).

All methods have the same data, the same budget of environment steps and the same evaluation.
"""
