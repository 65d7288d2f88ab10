"""Errors of the code that a task names, as text for the user."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

_INSTALLED = ("site-packages", "dist-packages")
_OTHERS = (Path(__file__).parents[1], Path(sysconfig.get_paths()["stdlib"]))


def fault(error: Exception) -> str:
    """An error with the line of the user's code where it occurred, such as "ValueError: it is dry (tank.py, line 8)".

    The line is the last one outside this package, the standard library and installed packages. Without one, the text
    has the error alone.
    """
    said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    frames = [(Path(each.filename), each.lineno) for each in traceback.extract_tb(error.__traceback__)]
    own = [
        f"{path.name}, line {line}"
        for path, line in frames
        if path.is_file() and not any(map(path.is_relative_to, _OTHERS)) and not set(_INSTALLED) & set(path.parts)
    ]
    return f"{said} ({own[-1]})" if own else said
