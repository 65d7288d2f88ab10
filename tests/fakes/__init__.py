"""Stand-ins that tests of several rooms share."""
