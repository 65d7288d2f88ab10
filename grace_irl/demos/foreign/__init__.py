"""Demonstrations in the layouts of other programs and libraries: tables, flat arrays, and Python objects."""
