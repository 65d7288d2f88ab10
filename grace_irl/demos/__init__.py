"""Demonstrations: the trajectory model, readers and writers, labels, splits."""

from grace_irl.demos.files import iter_trajectories, load, require_roles, save

__all__ = ["iter_trajectories", "load", "require_roles", "save"]
