"""The browser in which the site is looked at."""

from tests.report.conftest import browser

__all__ = ["browser"]
