"""Kinds of state."""
