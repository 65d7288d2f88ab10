"""Searches: what to ask for next, and what is best so far."""
