"""Programs over screens: their parts, and the search for them."""
