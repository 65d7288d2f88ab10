"""Demonstrations of tasks with a goal whose states are vectors or records, and the true goals."""
