"""Parquet: one row per state, the metadata of the set in the file."""
