"""The report: one HTML page about a run (docs/report.md)."""
