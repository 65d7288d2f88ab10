"""The page: templates in which every value is escaped, one style sheet, and a policy under which nothing else runs."""

from __future__ import annotations

import base64
import hashlib
import math
from functools import cache
from importlib.resources import files

import jinja2
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from grace_irl.runs.provenance import short
from grace_irl.text import harmless
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
    """A number with a given number of decimals, for columns; in powers of ten if it would be too long."""
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
    """A text of others on one line, its invisible characters spelled out, cut if it is long."""
    plain = one_line(" ".join(text.split()))
    return plain if len(plain) <= longest else f"{plain[:longest]}…"


def _harmless(value: object) -> object:
    """Every value that a template writes: nothing of it is hidden, or turns what stands around it."""
    if isinstance(value, Markup):
        return Markup(harmless(value))
    return harmless(value) if isinstance(value, str) else value


@cache
def _environment() -> jinja2.Environment:
    # What is undefined is a mistake of ours, never an empty string.
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("grace_irl.report", "templates"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    environment.filters |= {each.__name__: each for each in (number, share, fixed, line, short)}
    environment.globals["digits"] = digits
    return environment


def render(**values: object) -> str:
    """The page with its values. Markup among them was made by this package, from parts that it escaped."""
    style = files("grace_irl.report").joinpath("templates", "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    template = _environment().get_template("report.html.j2")
    # A style sheet holds no markup of others, and may hold no end of its own element.
    return template.render(style=Markup(style), policy=f"'sha256-{digest}'", **values) + "\n"


def highlighted(source: str) -> Markup:
    """The source as spans, everything in it escaped, what would be invisible spelled out; it need not be Python."""
    lines = source.replace("\r\n", "\n")
    return Markup(highlight(harmless(lines), PythonLexer(ensurenl=False), HtmlFormatter(nowrap=True)))
