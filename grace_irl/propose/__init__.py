"""Proposers: sources of programs for a search, such as a model, a person or a recording."""
