"""Finished searches for rewards that trained policies judge (`policy_search.py`), a file of lines for each task."""
