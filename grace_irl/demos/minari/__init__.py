"""Minari datasets, in hdf5 and in arrow."""
