"""Proposers: sources of reward programs for a search, such as a language model, a person or a recorded run."""
