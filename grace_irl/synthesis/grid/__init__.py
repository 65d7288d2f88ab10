"""Programs over grids: readings of instructions, and the search for them."""
