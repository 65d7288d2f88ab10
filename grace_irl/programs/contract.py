"""The contract of a reward program: the names it defines, the modules it may import, the arguments it gets.

The module holds only constants and pure functions. The sandbox uses them to check a source. Code that runs an exported
reward, for example to train a policy, uses them to pass the same arguments as the sandbox. docs/contract.md explains
the contract.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

MAX_SOURCE_BYTES = 64 * 1024
"""Maximum length of a program's source, in UTF-8 bytes."""

FILENAME = "reward.py"
"""The file name that a traceback shows for lines of the program."""

MODULE = "reward"
"""The value of `__name__` in a program. So code below `if __name__ == "__main__":` does not run."""

REWARD_CLASS = "Reward"
REWARD_METHOD = "reward_fn"
DEBUG_METHOD = "debug_fn"
DEBUG_SETS = "debug"
"""Name of an optional top-level function of a program. `debug(expert_states, negative_states)` compares two lists of
states and returns a text for a prompt."""

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
"""Parts of allowed modules that a program must not import, because they access files, compilers or foreign memory."""

NUMPY_FILES = frozenset(
    {
        *("load", "loadtxt", "save", "savetxt", "savez", "savez_compressed", "genfromtxt", "fromfile", "fromregex"),
        *("memmap", "DataSource", "open_memmap", "ctypeslib", "f2py", "testing"),
    }
)
"""Members of numpy that a program must not use, because they access files or foreign memory."""


ACTION_DTYPE: np.dtype[Any] = np.dtype(np.float64)
"""The dtype of all actions that a program gets, including discrete ones."""


def as_action(action: Any) -> Any:
    """Convert an action to the form that a program gets: a new float64 array or, for a single number, a float64."""
    found = np.array(action, dtype=ACTION_DTYPE, order="C")
    return found if found.ndim else found[()]


ProblemKind = Literal["syntax", "rejected", "contract"]


@dataclass(frozen=True, order=True)
class SourceProblem:
    """A violation of the contract by a source.

    Attributes:
        line: line number, from 1; 0 for a problem of the whole source.
        text: description and remedy.
        kind: the status that the sandbox reports for a source with this problem (see `sandbox.protocol.Status`).
    """

    line: int
    text: str
    kind: ProblemKind = "rejected"

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else self.text
