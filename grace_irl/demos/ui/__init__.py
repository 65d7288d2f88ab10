"""Readers and writers of demonstrations whose states are screens of a user interface, as XML."""
