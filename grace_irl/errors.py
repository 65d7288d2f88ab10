"""The errors of this project. Every message gives the problem, the expected input and the remedy."""

from __future__ import annotations

from collections.abc import Collection

from grace_irl.text import line


class GraceError(Exception):
    """A failure that is shown to the user as one line. The command line exits with `exit_code`.

    The message is a single line. Control characters are escaped, also in input that the message quotes.

    Attributes:
        exit_code: exit code of the command line.
        says_how_to_go_on: whether the message already says how to go on. Then `saved` adds nothing to the message.
    """

    exit_code = 1
    says_how_to_go_on = False

    def saved(self, again: str) -> GraceError:
        """A copy of the error whose message ends with `again`, the arguments that resume the saved run.

        If the message already says how to go on, return the error itself.
        """
        if self.says_how_to_go_on:
            return self
        told = type(self)(f"{self}; what was done is saved: go on with {again}")
        told.says_how_to_go_on = True
        return told

    def __str__(self) -> str:
        return line(super().__str__())


class InputError(GraceError):
    """Bad usage or bad input: a file, an option or a setting that cannot be used (exit code 2)."""

    exit_code = 2


class NoSuchFileError(InputError):
    """Demonstrations that do not exist under the given name."""


def require_one_of(option: str, value: str | None, allowed: Collection[str]) -> None:
    """Require an allowed value, or None.

    Raises:
        InputError: the value is not allowed.
    """
    if value is not None and value not in allowed:
        raise InputError(f"{option} {value}; expected one of {', '.join(allowed)}")


class SandboxError(GraceError):
    """The sandbox itself fails, or is too weak on this machine. Failing programs do not raise this error."""
