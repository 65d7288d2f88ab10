"""Expansion: policies trained on a recovered reward give new negatives (GRACE, section 4, phase 3)."""
