"""The HTML page of a report.

The template escapes every value. A content security policy allows only the page's own style sheet, and no scripts.
"""

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
    """Number of decimal places that resolve at least a hundredth of `spread`, the spread of a column's values.

    All values of a column have the same number of decimal places, so that their decimal points align.
    """
    return min(max(2 - math.floor(math.log10(spread)), 0), 8) if 0 < spread < math.inf else 4


def number(value: float | None, digits: int = 4) -> str:
    """A number as text with `digits` significant digits; "–" for None and NaN."""
    if value is None or math.isnan(value):
        return "–"
    return "0" if abs(value) < 1e-12 else f"{value:,.{digits}g}".replace("-", "\u2212")


def fixed(value: float | None, digits: int = 4) -> str:
    """A number as text with `digits` decimal places, for columns. Numbers of magnitude 1e9 or more have an exponent."""
    if value is None or math.isnan(value):
        return "–"
    written = f"{round(value, digits) + 0.0:,.{digits}f}" if abs(value) < 1e9 else f"{value:.4g}"  # + 0.0: no -0
    return written.replace("-", "\u2212")


def share(value: float | None) -> str:
    """A share as text in per cent. Only a share of exactly 1 becomes "100 %"."""
    if value is None:
        return "–"
    return "100 %" if value == 1 else f"{min(value, 0.9999):.2%}".replace("%", " %")


def line(text: str, longest: int = 400) -> str:
    """An untrusted text on one line of at most `longest` characters, with invisible characters spelled out."""
    plain = one_line(" ".join(text.split()))
    return plain if len(plain) <= longest else f"{plain[:longest]}…"


def _harmless(value: object) -> object:
    """Escape invisible characters and direction marks in a value for the template."""
    if isinstance(value, Markup):
        return Markup(harmless(value))
    return harmless(value) if isinstance(value, str) else value


@cache
def _environment() -> jinja2.Environment:
    # Undefined values in the template raise errors. By default, they would become empty strings.
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("grace_irl.report", "templates"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    environment.filters |= {each.__name__: each for each in (number, share, fixed, line, short)}
    return environment


def render(**values: object) -> str:
    """The page with these values. Only this package creates `Markup` values, from escaped parts."""
    style = files("grace_irl.report").joinpath("templates", "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    template = _environment().get_template("report.html.j2")
    # The style sheet contains no untrusted text. It must not contain `</style>`.
    return template.render(style=Markup(style), policy=f"'sha256-{digest}'", **values) + "\n"


def highlighted(source: str) -> Markup:
    """A source with syntax highlighting, as escaped HTML with invisible characters spelled out.

    The source need not be valid Python.
    """
    lines = source.replace("\r\n", "\n")
    return Markup(highlight(harmless(lines), PythonLexer(ensurenl=False), HtmlFormatter(nowrap=True)))
