"""Recovered rewards in use: loaded from files, run here or in the sandbox, and as wrappers of other libraries."""
