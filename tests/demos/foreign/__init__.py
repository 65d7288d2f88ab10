"""Demonstrations in the layouts of other programs and libraries."""
