"""Conformance suites: tests for all implementations of an interface, also for implementations in other packages.

Each suite is a class of pytest tests. A subclass implements the method `make`, which returns the object to test or, for
a kind of state, states to test the kind with.
"""
