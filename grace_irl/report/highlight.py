"""Python source in colours, by classes of the style sheet (Pygments)."""

from __future__ import annotations

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer


def highlighted(source: str) -> Markup:
    """The source as spans; everything in it is escaped. What is no Python is shown all the same."""
    return Markup(highlight(source, PythonLexer(ensurenl=False), HtmlFormatter(nowrap=True)))
