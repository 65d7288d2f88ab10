"""Archives of numpy arrays: plain ones, and the layout of the `imitation` library."""
