"""Programs over screens, and the search for them."""
