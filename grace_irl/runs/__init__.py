"""Runs: their configuration, folder, database, engine and stop rules."""
