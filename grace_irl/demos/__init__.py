"""Demonstrations: episodes of experts (successes) and negatives (failures).

The package has their classes, readers and writers of their files, and functions for labels and splits.
"""

from grace_irl.demos.files import iter_trajectories, load, save

__all__ = ["iter_trajectories", "load", "save"]
