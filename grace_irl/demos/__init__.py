"""Demonstrations: the trajectory model, readers and writers, labels, splits."""

from grace_irl.demos.files import iter_trajectories, load, save

__all__ = ["iter_trajectories", "load", "save"]
