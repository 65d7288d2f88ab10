"""The first hour of a stranger: attempts written from the README and `--help` alone."""
