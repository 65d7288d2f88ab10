"""Reader and writer for npz archives of NumPy arrays, in a plain layout and in that of the `imitation` library."""
