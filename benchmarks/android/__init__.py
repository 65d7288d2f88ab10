"""Goals on real Android screens, for `benchmarks/android_recovery.py`."""
