"""A terminal that keeps what is written to it."""

from __future__ import annotations

import io


class Terminal(io.StringIO):
    """A text stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """See `io.IOBase.isatty`."""
        return True
