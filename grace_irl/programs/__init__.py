"""Reward programs as texts: their contract, static checks, and the files that they are exported to."""
