"""Programs over vectors, records and summaries of grids: additive rewards over named numbers."""
