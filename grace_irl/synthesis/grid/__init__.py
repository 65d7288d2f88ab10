"""Programs over grids, and the search for readings, which are interpretations of instructions."""
