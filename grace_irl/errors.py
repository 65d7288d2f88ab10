"""The few errors of this project. Every message says what was found, what was expected and what to do."""


class GraceError(Exception):
    """A failure that the user should read as one line. The command line exits with `exit_code`."""

    exit_code = 1


class InputError(GraceError):
    """Bad usage or bad input: a file, an option or a setting that cannot be used (exit code 2).

    Its text is one line that a terminal can print, whatever the input held that it quotes.
    """

    exit_code = 2

    def __str__(self) -> str:
        text = super().__str__()
        if text.isprintable():
            return text
        return "".join(
            " " if character == "\n" else character if character.isprintable() else ascii(character)[1:-1]
            for character in text
        )


class SandboxError(GraceError):
    """The sandbox itself failed (not the program inside it), or is too weak on this machine."""
