"""Tests of the distribution in baselines/; skipped where it, or `imitation`, is not installed."""
