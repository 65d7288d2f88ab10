"""Conformance suites: tests that every implementation of an interface must pass, also in other packages.

Each suite is a class of pytest tests. A subclass implements the method `make`, which returns the object to test.
"""
