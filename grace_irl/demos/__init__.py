"""Demonstrations: their classes, a reader and a writer for each file format, labels and splits."""

from grace_irl.demos.files import iter_trajectories, load, save

__all__ = ["iter_trajectories", "load", "save"]
