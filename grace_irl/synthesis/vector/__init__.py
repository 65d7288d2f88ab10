"""Programs over named numbers, which are the numbers of vectors and records, and counts and distances in grids."""
