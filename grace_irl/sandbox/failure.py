"""The words about a program's exception: its status, one line, and a traceback of its own lines."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from types import TracebackType

from grace_irl.programs import contract
from grace_irl.sandbox.candidate import ContractError, NotANumberError
from grace_irl.sandbox.protocol import Status

_FRAMES = 12


@dataclass(frozen=True)
class ProgramFailure:
    """Failure of a program: a `Status`, one line for a person, its own lines for a repair."""

    status: Status
    message: str
    traceback: str = ""


def explain(error: BaseException, phase: Status, source: str, where: str = "") -> ProgramFailure:
    """Put an exception into words.

    Args:
        error: what the program raised.
        phase: the status of an ordinary exception at this point: "init" or "runtime".
        source: the program's text.
        where: trajectory and state, or "".
    """
    if isinstance(error, ContractError):
        return ProgramFailure("contract", str(error))
    if isinstance(error, NotANumberError):
        return ProgramFailure("type", _join(str(error), where))
    text = _text(error)
    lines = _own_lines(error.__traceback__, source)
    traceback = "\n".join(["Traceback (most recent call last):", *lines, text]) if lines else text
    status: Status = phase
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        status = "memory"
    elif isinstance(error, (SystemExit, GeneratorExit, KeyboardInterrupt)):
        status = "killed"
    elif isinstance(error, SyntaxError) and phase == "syntax":
        return ProgramFailure("syntax", f"line {error.lineno}: {error.msg}")
    return ProgramFailure(status, _join(text.splitlines()[0], where), traceback)


def _own_lines(trace: TracebackType | None, source: str) -> list[str]:
    """The frames of a traceback that lie in the program, as Python prints them; the middle of many is cut."""
    text = source.splitlines()
    lines: list[str] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == contract.FILENAME:
            number = trace.tb_lineno
            lines.append(f'  File "{contract.FILENAME}", line {number}, in {code.co_name}')
            if 0 < number <= len(text):
                lines.append(f"    {text[number - 1].strip()[:200]}")
        trace = trace.tb_next
    if len(lines) > 2 * _FRAMES:
        lines = [*lines[:4], "  …", *lines[-2 * _FRAMES + 4 :]]
    return lines


def _text(error: BaseException) -> str:
    """`Type: message`; the message is the program's and may itself misbehave."""
    name = type(error).__name__
    try:
        said = str(error)
    except BaseException:
        said = "(its message cannot be shown)"
    return f"{name}: {said}"[:2000] if said else name


def _join(text: str, where: str) -> str:
    return f"{text} ({where})" if where else text
