"""A run of the search: its configuration, folder, database, main loop (engine) and stop rules."""
