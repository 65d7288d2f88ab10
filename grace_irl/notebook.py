"""Runs and rewards in a notebook: as HTML (`_repr_html_`), and as pandas data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_irl.errors import InputError
from grace_irl.text import harmless

if TYPE_CHECKING:
    from pandas import DataFrame


def shown(title: str, lines: Sequence[str], source: str) -> str:
    """HTML with a title, some lines and a program, all escaped. The HTML has no script and no style sheet.

    Args:
        title: the title.
        lines: lines of text.
        source: source of the program, which need not be valid Python.
    """
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    said = "".join(f"<li>{escape(harmless(line))}</li>" for line in lines)
    program = highlight(harmless(source), PythonLexer(), HtmlFormatter(noclasses=True, nobackground=True))
    shown = f"<details open><summary>program</summary>{program}</details>"
    return f"<div><b>{escape(harmless(title))}</b><ul>{said}</ul>{shown}</div>"


def near(path: Path) -> str:
    """A path as it is shown: relative, if it is below the working directory."""
    with suppress(OSError, ValueError):  # the working directory is gone, or does not contain the path
        return str(path.relative_to(Path.cwd()))
    return str(path)


def frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> DataFrame:
    """A pandas data frame.

    Args:
        rows: one mapping per row. A value that a row lacks is missing in the table, too.
        columns: names of the first columns. The table has these columns even without rows.

    Raises:
        InputError: pandas is not installed.
    """
    try:
        from pandas import DataFrame
    except ImportError:
        raise InputError(
            "a table of a run needs pandas, which is not installed; expected the extra: pip install 'grace-irl[pandas]'"
        ) from None
    names = dict.fromkeys([*columns, *(name for row in rows for name in row)])
    return DataFrame([dict(row) for row in rows], columns=[*names])
