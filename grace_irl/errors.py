"""The few errors of this project. Every message says what was found, what was expected and what to do."""

from __future__ import annotations

from grace_irl.text import line


class GraceError(Exception):
    """A failure that the user should read as one line. The command line exits with `exit_code`.

    Its text is one line that a terminal can print, whatever the input held that it quotes.

    Attributes:
        says_how_to_go_on: the text ends with the command that goes on with what is saved.
    """

    exit_code = 1
    says_how_to_go_on = False

    def saved(self, again: str) -> GraceError:
        """The same error with the words that go on with what is saved, unless it has them."""
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


class SandboxError(GraceError):
    """The sandbox itself failed (not the program inside it), or is too weak on this machine."""
