"""A run: its configuration, folder, database, engine and stop rules."""
