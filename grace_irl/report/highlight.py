"""Python source in colours, by classes of the style sheet (Pygments)."""

from __future__ import annotations

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from grace_irl.text import harmless


def highlighted(source: str) -> Markup:
    """The source as spans, everything in it escaped, what would be invisible spelled out; it need not be Python."""
    lines = source.replace("\r\n", "\n")
    return Markup(highlight(harmless(lines), PythonLexer(ensurenl=False), HtmlFormatter(nowrap=True)))
