"""The command line `grace-irl COMMAND …`.

Exit codes: 0 success, 1 failure, 2 bad input, 130 Ctrl-C, 143 SIGTERM during `fit` or `compare`.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from contextvars import copy_context

from grace_irl.cli.ending import interrupted_code, leave, terminable
from grace_irl.errors import GraceError
from grace_irl.text import harmless_stream, line

MANY = ("--demos", "--experts", "--negatives", "--from")  # options that accept several values after one flag


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return its exit code. Print an error as one line.

    With `GRACE_IRL_DEBUG=1`, also print the traceback of an unexpected error.

    Args:
        arguments: words of the command line; None for those of this process (`sys.argv`). With None, the process must
            end after this call.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    with terminable(next((word for word in given if not word.startswith("-")), None)):
        try:
            code = _printed(given)
        except KeyboardInterrupt:
            code = _say("interrupted", interrupted_code())
    if arguments is None:  # the command is the whole of this process
        leave(code)
    return code


def _printed(given: Sequence[str]) -> int:
    _open_missing()
    for stream in (sys.stdout, sys.stderr):  # replace characters that the terminal's encoding lacks
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace" if stream is sys.stdout else "backslashreplace")
    with redirect_stdout(harmless_stream(sys.stdout)), redirect_stderr(harmless_stream(sys.stderr)):
        return _called(given)


def _open_missing() -> None:
    """Open the null device in place of standard streams that the caller has closed, as in `grace-irl fit … >&-`.

    Otherwise the next file or pipe would take the number of the stream, and what is printed would end up there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
        setattr(sys, name, open(os.devnull, "w" if number else "r"))  # noqa: SIM115


def _called(given: Sequence[str]) -> int:
    try:
        from grace_irl.cli.app import build, method_of, misused
        from grace_irl.cli.completion import asked

        words = asked()
        typed = given if words is None else words
        called = next((word for word in typed if not word.startswith("-")), None)
        try:
            command = build((called,) if called else (), method_of(typed))
            # Options such as --max-memory set context variables. They change only this copy of the context.
            code = copy_context().run(command, args=spread(given), prog_name="grace-irl", standalone_mode=False)
        except Exception as error:
            said = misused(error, typed)
            if said is None:
                raise
            return _say(said, 2) if said else 2
        return code if isinstance(code, int) else 0
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except GraceError as error:
        return _say(str(error), interrupted_code() if error.exit_code == 130 else error.exit_code)
    except KeyboardInterrupt as error:
        return _say(str(error) or "interrupted", interrupted_code())
    except BrokenPipeError:
        # The reader of stdout has closed the pipe. Redirect stdout, so that Python can flush the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if os.environ.get("GRACE_IRL_DEBUG"):
            traceback.print_exc()
        where = f"{error.filename}: " if error.filename else ""
        return _say(f"{where}{error.strerror or error}", 1)
    except Exception as error:
        if os.environ.get("GRACE_IRL_DEBUG"):
            traceback.print_exc()
        kind = type(error).__name__
        return _say(f"a defect of grace-irl ({kind}: {error}); GRACE_IRL_DEBUG=1 shows where", 1)


def _say(text: str, code: int) -> int:
    print(f"grace-irl: {line(text)}", file=sys.stderr)
    return code


def spread(arguments: Sequence[str]) -> list[str]:
    """Expand `--demos a b` to `--demos a --demos b`, for the flags in `MANY`.

    A shell expands a wildcard after `--demos` to `--demos a b`. A second or later value that ends in .py gets no flag,
    because it is the reward file, the argument of the command `score`.
    """
    result: list[str] = []
    flag = ""
    for place, argument in enumerate(arguments):
        if argument == "--":
            return result + list(arguments[place:])
        if argument.startswith("-") and len(argument) > 1:
            flag = argument if argument in MANY else ""
        elif flag and result[-1] != flag and not argument.endswith(".py"):
            result.append(flag)
        result.append(argument)
    return result
