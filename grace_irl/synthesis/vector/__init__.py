"""Programs over vectors and summaries of grids: additive rewards over named numbers."""
