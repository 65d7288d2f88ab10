"""Conformance suites for parts in other packages. Each is a class of pytest tests with one method to implement."""
