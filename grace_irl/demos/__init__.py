"""Classes for demonstrations, readers and writers of demonstration files, and functions for labels and splits."""

from grace_irl.demos.files import iter_trajectories, load, save

__all__ = ["iter_trajectories", "load", "save"]
