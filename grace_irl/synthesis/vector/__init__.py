"""Programs over named numbers: the numbers of vectors and records, and the counts and distances in grids."""
