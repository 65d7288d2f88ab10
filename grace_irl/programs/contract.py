"""The contract of a reward program: the names it defines, the modules it may import, the arguments it gets.

Pure data and functions: the sandbox child reads them to check a source, an exported reward reads them to
be fed the same states online as offline. The text for people is docs/contract.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

MAX_SOURCE_BYTES = 64 * 1024
"""Longest source, UTF-8 bytes."""

FILENAME = "reward.py"
"""The file name of a program's own lines in a traceback."""

MODULE = "reward"
"""`__name__` of the module that a source becomes, so that `if __name__ == "__main__":` blocks stay quiet."""

REWARD_CLASS = "Reward"
REWARD_METHOD = "reward_fn"
DEBUG_METHOD = "debug_fn"
DEBUG_SETS = "debug"
"""The module-level function that compares sets of states, if a program has one."""

ALLOWED_MODULES = frozenset(
    {
        *("__future__", "abc", "contextlib", "copy", "dataclasses", "enum", "functools", "types", "typing", "warnings"),
        *("bisect", "collections", "heapq", "itertools", "operator"),
        *("cmath", "datetime", "decimal", "fractions", "math", "numbers", "numpy", "random", "statistics"),
        *("difflib", "html", "json", "lxml", "re", "string", "textwrap", "unicodedata", "xml"),
    }
)
"""Top-level modules a program may import: the pure parts of the standard library, numpy and lxml."""

FORBIDDEN_SUBMODULES = frozenset(
    {"numpy.ctypeslib", "numpy.distutils", "numpy.f2py", "numpy.lib.format", "numpy.testing", "xml.sax"}
)
"""Parts of allowed modules that only serve files, compilers or foreign memory."""

NUMPY_FILES = frozenset(
    {
        *("load", "loadtxt", "save", "savetxt", "savez", "savez_compressed", "genfromtxt", "fromfile", "fromregex"),
        *("memmap", "DataSource", "open_memmap", "ctypeslib", "f2py", "testing"),
    }
)
"""Names of numpy that read or write files, or reach foreign memory."""


ACTION_DTYPE: np.dtype[Any] = np.dtype(np.float64)
"""The type in which actions reach a program, discrete ones too."""


def as_action(action: Any) -> Any:
    """One action as a program gets it: a fresh array of float64, or a number if the action is one."""
    found = np.array(action, dtype=ACTION_DTYPE, order="C")
    return found if found.ndim else found[()]


ProblemKind = Literal["syntax", "rejected", "contract"]


@dataclass(frozen=True, order=True)
class SourceProblem:
    """One thing that a source may not do, or lacks.

    Attributes:
        line: its line, from 1; 0 for the source as a whole.
        text: what it is and what to do instead.
        kind: the `Status` that a run of the source gives.
    """

    line: int
    text: str
    kind: ProblemKind = "rejected"

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else self.text
