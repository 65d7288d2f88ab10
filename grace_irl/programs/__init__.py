"""Reward programs as source texts: the contract, static checks, and exported files."""
