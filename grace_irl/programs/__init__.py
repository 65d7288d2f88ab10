"""Reward programs as source texts: the contract that they fulfil, static checks, and exported files."""
