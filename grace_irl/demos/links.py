"""Links in a folder of demonstrations: a folder that somebody else filled gives what lies in it, and nothing else.

Whoever names a link means what it leads to. Whoever names a folder has not seen its links: one of them may lead to any
file of theirs.
"""

from __future__ import annotations

import os
from pathlib import Path

from grace_irl.errors import InputError


def require_inside(file: Path, folder: Path) -> None:
    """Refuses a file of a folder that lies elsewhere, through a link to it or to a folder on the way.

    Args:
        file: below the folder, by its name.
        folder: as the user named it, which may be a link itself.

    Raises:
        InputError: it leads out of the folder.
    """
    there = Path(os.path.realpath(file))
    if not there.is_relative_to(os.path.realpath(folder)):
        raise InputError(
            f"{file}: a link out of its folder, to {str(there)[:200]!r}; expected files in the folder: copy it there, "
            "or name it itself"
        )
