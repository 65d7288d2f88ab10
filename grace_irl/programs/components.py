"""Names of the components of a state vector on one line, such as `x0 height, x1 speed`, in exports and runs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from grace_irl.errors import InputError
from grace_irl.programs.parsing import seen

_NAME = re.compile(r'(?:^|, )x(\d+) ("(?:[^"\\]|\\.)*"|.*?)(?=, x\d+ |\Z)', re.DOTALL)


def numbered(fields: Sequence[str]) -> str:
    """The names of the components with their indices, on one line.

    A name that would break the line, or read as several names, is written as a JSON string.
    """
    return ", ".join(f"x{number} {_written(name)}" for number, name in enumerate(fields))


def names_of(text: str) -> tuple[str, ...]:
    """The names in a text that `numbered` wrote; () for an empty text.

    Raises:
        InputError: any other text. Such a text is not read as "no names": without names, a reward takes data with
            columns in any order, and may be wrong.
    """
    found = list(_NAME.finditer(text))
    numbers = [int(each[1]) for each in found]
    try:
        if "".join(each[0] for each in found) == text and numbers == list(range(len(found))):
            return tuple(json.loads(each[2]) if each[2].startswith('"') else each[2] for each in found)
    except ValueError:
        pass
    raise InputError(
        f"the names of a reward's components, {text[:80]!r}, cannot be read; expected 'x0 height, x1 speed': "
        "fit again, or correct the line `fields:` of its file"
    )


def _written(name: str) -> str:
    held = seen(name).isprintable() and seen(name) == name == name.strip() != "" and not name.startswith('"')
    return name if held and not re.search(r", x\d+ ", name) else json.dumps(name)
