"""Inputs for `reader_fuzzing.py`: files of screens that are nearly right."""
