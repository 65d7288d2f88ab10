"""Reader and writer for npz archives of NumPy arrays, in a plain layout or in the layout of the library `imitation`."""
