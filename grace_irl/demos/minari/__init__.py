"""Reader and writer for Minari datasets, in hdf5 and in arrow."""
