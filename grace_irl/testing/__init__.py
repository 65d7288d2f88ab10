"""Suites that parts of other distributions can run: each is a class of pytest tests with one method to fill in."""
