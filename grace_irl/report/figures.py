"""Figures and texts as the page writes them."""

from __future__ import annotations

import math

from grace_irl.text import line as one_line


def digits(spread: float) -> int:
    """Digits behind the point that resolve about a thousandth of a spread, so that columns stand under each other."""
    return min(max(2 - math.floor(math.log10(spread)), 0), 8) if 0 < spread < math.inf else 4


def number(value: float | None, digits: int = 4) -> str:
    """A number for people; "–" for None and for what is none."""
    if value is None or math.isnan(value):
        return "–"
    return "0" if abs(value) < 1e-12 else f"{value:,.{digits}g}".replace("-", "\u2212")


def fixed(value: float | None, digits: int = 4) -> str:
    """A number with so many digits behind its point, for columns; in powers of ten where it would be too long."""
    if value is None or math.isnan(value):
        return "–"
    written = f"{round(value, digits) + 0.0:,.{digits}f}" if abs(value) < 1e9 else f"{value:.4g}"  # no minus before 0
    return written.replace("-", "\u2212")


def share(value: float | None) -> str:
    """A share as per cent; all is only what is all."""
    if value is None:
        return "–"
    return "100 %" if value == 1 else f"{min(value, 0.9999):.2%}".replace("%", " %")


def line(text: str, longest: int = 400) -> str:
    """A text of others on one line, its invisible characters spelled out, cut where it is long."""
    plain = one_line(" ".join(text.split()))
    return plain if len(plain) <= longest else f"{plain[:longest]}…"
