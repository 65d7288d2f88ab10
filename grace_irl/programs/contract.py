"""The contract of a reward program: the names it defines, the modules it may import, the arguments it gets.

The module holds pure data and functions. The sandbox child uses them to check a source. Code that runs an exported
reward uses them to pass the same arguments online as offline. The contract in words is docs/contract.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

MAX_SOURCE_BYTES = 64 * 1024
"""Maximum length of a source, UTF-8 bytes."""

FILENAME = "reward.py"
"""The file name of a program's own lines in a traceback."""

MODULE = "reward"
"""`__name__` of a program's module, so that its `if __name__ == "__main__":` blocks do not run."""

REWARD_CLASS = "Reward"
REWARD_METHOD = "reward_fn"
DEBUG_METHOD = "debug_fn"
DEBUG_SETS = "debug"
"""Name of the optional module-level function that compares sets of states."""

ALLOWED_MODULES = frozenset(
    {
        *("__future__", "abc", "contextlib", "copy", "dataclasses", "enum", "functools", "types", "typing", "warnings"),
        *("bisect", "collections", "heapq", "itertools", "operator"),
        *("cmath", "datetime", "decimal", "fractions", "math", "numbers", "numpy", "random", "statistics"),
        *("difflib", "html", "json", "lxml", "re", "string", "textwrap", "unicodedata", "xml"),
    }
)
"""Top-level modules that a program may import: the pure parts of the standard library, numpy and lxml."""

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
"""The dtype of the actions that a program gets, also of discrete ones."""


def as_action(action: Any) -> Any:
    """One action in the form that a program gets: a new float64 array, or a number if the action is a number."""
    found = np.array(action, dtype=ACTION_DTYPE, order="C")
    return found if found.ndim else found[()]


ProblemKind = Literal["syntax", "rejected", "contract"]


@dataclass(frozen=True, order=True)
class SourceProblem:
    """A violation of the contract by a source.

    Attributes:
        line: line number, from 1; 0 for the source as a whole.
        text: description and remedy.
        kind: sandbox `Status` of a run of this source.
    """

    line: int
    text: str
    kind: ProblemKind = "rejected"

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else self.text
