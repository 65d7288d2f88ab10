"""Compiled reward programs, their calls, and messages about their exceptions.

A program defines a class `Reward` with a method reward_fn. It may also define debug_fn, which returns a text for
prompts, and terms_fn, which returns the components of a reward (docs/contract.md).

The processes that run a program use this module. These processes compile a program once and execute its module code
anew for every trajectory, so trajectories share no variables.
"""

from __future__ import annotations

import builtins
import errno
import inspect
import json
import math
import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

from grace_irl.programs import contract
from grace_irl.sandbox.protocol import Status

TERMS_METHOD = "terms_fn"
TERMS, TERM_NAME = 64, 64
"""Maximum number of components of one reward, and maximum length of a component's name in characters."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
# Code may draw random numbers if a name in the code contains one of these words. For example,
# `statistics.NormalDist.samples` draws random numbers.
_DRAWS = ("random", "NormalDist")


class ContractError(Exception):
    """A program without the definitions that the contract requires (docs/contract.md), such as `class Reward`."""


class NotANumberError(Exception):
    """A method of a program returned something that is not a number."""


class Candidate:
    """A compiled program.

    Args:
        source: text of the program.
        takes_action: whether reward_fn takes (state, action, next_state) instead of (state).
        name: name of the program's module.
        filename: name of the program's file in tracebacks.

    Attributes:
        uses_random: whether the code names a random generator. If so, the method `module` seeds `random` and
            `numpy.random`.
    """

    def __init__(
        self,
        source: str,
        *,
        takes_action: bool,
        name: str = contract.MODULE,
        filename: str = contract.FILENAME,
    ) -> None:
        self._name = name
        self._code = compile(source, filename, "exec", dont_inherit=True)
        self.uses_random = any(word in source for word in _DRAWS) and _names_generator(self._code)
        self._construct: Callable[[Any, str], Any] | None = None
        self.takes_action = takes_action

    def module(self) -> dict[str, Any]:
        """Execute the program as a new module, and return the module's namespace."""
        if self.uses_random:
            random.seed(0)
            np.random.seed(0)
        module = types.ModuleType(self._name)
        sys.modules[self._name] = module
        namespace = module.__dict__
        namespace["__builtins__"] = builtins
        exec(self._code, namespace)
        return namespace

    def start(self, extra_info: str) -> Reward:
        """Execute the program as a new module, and create its `Reward` object for one trajectory.

        Args:
            extra_info: instruction of the trajectory.

        Raises:
            ContractError: the module has no class `Reward`.
        """
        namespace = self.module()
        owner = namespace.get(contract.REWARD_CLASS)
        if not isinstance(owner, type):
            raise ContractError("no class Reward after the module ran; expected `class Reward`")
        if self._construct is None:
            self._construct = constructor(owner)
        return Reward(self._construct(owner, extra_info))


def _names_generator(code: types.CodeType) -> bool:
    """Whether a name in the code, or a text constant that could be a name, contains a word of `_DRAWS`."""
    texts = [each for each in _constants(code.co_consts) if isinstance(each, str)]
    names = [*code.co_names, *(text for text in texts if text.replace(".", "_").isidentifier())]  # names in `getattr`
    return any(word in name for name in names for word in _DRAWS) or any(
        _names_generator(each) for each in code.co_consts if isinstance(each, types.CodeType)
    )


def _constants(found: Iterable[object]) -> Iterator[object]:
    for each in found:
        if isinstance(each, (tuple, frozenset)):
            yield from _constants(each)
        else:
            yield each


class Reward:
    """A wrapper of one object of the class `Reward` that a program defines.

    Attributes:
        call: the object's method reward_fn.
        instance: the object.
    """

    def __init__(self, instance: Any) -> None:
        self.call: Callable[..., Any] = getattr(instance, contract.REWARD_METHOD)
        self.instance = instance

    def debug(self, *arguments: Any) -> str:
        """The text that the program's debug_fn returns for a state; "" if the program has no debug_fn.

        Args:
            arguments: the state; if the program takes actions, the state, the action and the next state. A debug_fn
                with fewer parameters gets only the last argument.
        """
        method = getattr(self.instance, contract.DEBUG_METHOD, None)
        return "" if method is None else str(_called(method, arguments))

    def terms(self, *arguments: Any) -> dict[str, float]:
        """The components of the last computed reward, by name, from the program's terms_fn; {} without terms_fn.

        Args:
            arguments: see `debug`.

        Raises:
            NotANumberError: terms_fn returned something that is not a dict of numbers.
        """
        method = getattr(self.instance, TERMS_METHOD, None)
        if method is None:
            return {}
        found = _called(method, arguments)
        if not isinstance(found, dict):
            raise NotANumberError(f"terms_fn returned {type(found).__name__}; expected a dict of numbers by name")
        named = [(str(name)[:TERM_NAME], value) for name, value in [*found.items()][:TERMS]]
        return {name: number(value, f"terms_fn: {name!r} is") for name, value in named}


def number(value: Any, said: str = "reward_fn returned") -> float:
    """The float of a value that a program returned. Whole numbers that a float cannot hold become infinity.

    Args:
        value: number of Python or NumPy, or an array of shape () that holds a number.
        said: beginning of the error message.

    Raises:
        NotANumberError: any other value.
    """
    if isinstance(value, (float, int, np.floating, np.integer, np.bool_)):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "fiub":
        return float(value)
    found = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
    raise NotANumberError(f"{said} {found}; expected one number")


def constructor(owner: type) -> Callable[[Any, str], Any]:
    """Return a function that creates an object of the class `owner`.

    The function takes the class and extra_info. It passes extra_info to the constructor by position, by name or not at
    all, depending on the constructor's parameters.
    """
    made_by = vars(owner).get("__init__")
    # This test covers most programs, and is faster than `inspect.signature`.
    if isinstance(made_by, types.FunctionType) and made_by.__code__.co_argcount > 1:
        return lambda made, extra_info: made(extra_info)
    try:
        parameters = inspect.signature(owner).parameters.values()
    except (TypeError, ValueError):
        return lambda made, extra_info: made(extra_info)
    if any(parameter.kind in (*_POSITIONAL, inspect.Parameter.VAR_POSITIONAL) for parameter in parameters):
        return lambda made, extra_info: made(extra_info)
    if any(parameter.name == "extra_info" for parameter in parameters):
        return lambda made, extra_info: made(extra_info=extra_info)
    return lambda made, _extra_info: made()


def _called(method: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Call a method, and return its result. A method with too few parameters gets only the last argument."""
    if len(arguments) > 1 and _parameters(method) < len(arguments):
        arguments = arguments[-1:]
    return method(*arguments)


def _parameters(method: Callable[..., Any]) -> int:
    """The number of positional parameters of a method, without `self`."""
    function = getattr(method, "__func__", None)
    # This test covers most programs, and is ten times as fast as `inspect.signature`.
    if type(method) is types.MethodType and type(function) is types.FunctionType and not vars(function):
        return max(function.__code__.co_argcount - 1, 0)
    try:
        kinds = [parameter.kind for parameter in inspect.signature(method).parameters.values()]
    except (TypeError, ValueError):
        return 0
    return sum(kind in _POSITIONAL for kind in kinds)


_FRAMES = 12


@dataclass(frozen=True)
class ProgramFailure:
    """The report of a program's failure.

    Attributes:
        status: kind of failure.
        message: one line for the user.
        traceback: traceback of the program's own lines, for a model that repairs the program; "" if there is none.
    """

    status: Status
    message: str
    traceback: str = ""

    def to_json(self) -> bytes:
        """The message and the traceback as JSON, for another process."""
        return json.dumps({"message": self.message[:4000], "traceback": self.traceback[:16000]}).encode()


def explain(error: BaseException, phase: Status, source: str, where: str = "") -> ProgramFailure:
    """Turn an exception of a program into the failure to report.

    Args:
        error: the exception.
        phase: status for exceptions that have no status of their own, such as "init" or "runtime".
        source: text of the program, which the traceback quotes.
        where: trajectory and state at which the exception occurred, for the message; "" if unknown.
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
    """The program's own lines of a traceback, in Python's format. A long traceback loses lines in the middle."""
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
    """An exception as `Type: message`. The program may define the exception's class, so even `str` may fail."""
    name = type(error).__name__ or "an exception without a name"
    try:
        said = str.__str__(str(error))  # without methods of a subclass of str, which may fail later
    except BaseException:
        said = "(its message cannot be shown)"
    return f"{name}: {said}"[:2000] if said else name


def _join(text: str, where: str) -> str:
    return f"{text} ({where})" if where else text
