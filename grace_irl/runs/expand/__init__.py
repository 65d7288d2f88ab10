"""Expansion: policies trained on a recovered reward provide new negatives (GRACE, section 4, phase 3)."""
