"""The version of the distribution. It is in a separate file, so that the build can read it without further imports."""

__version__ = "0.1.0"
