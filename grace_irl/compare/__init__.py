"""Comparisons of GRACE, GAIL, AIRL, BC and PPO on the true reward, with equal training and evaluation.

See docs/compare.md.
"""
