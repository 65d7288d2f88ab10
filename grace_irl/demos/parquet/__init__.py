"""Reader and writer for Parquet files: one row per state, and the metadata of the set in the file."""
