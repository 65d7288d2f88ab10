"""Programs over grids: interpretations of instructions, called readings, and the search for them."""
