"""The report: a run as one page for a browser (docs/report.md)."""
