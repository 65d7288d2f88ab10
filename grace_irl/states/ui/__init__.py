"""Screens of user interfaces: their XML, their parsed nodes, statistics and drawings."""
