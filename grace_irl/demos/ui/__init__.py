"""Screens: what knows the XML of a user interface."""
