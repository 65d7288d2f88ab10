"""The lines of readers that no input has reached."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[2]

Lines = dict[str, set[int]]
"""By file, relative to the repository."""


class Tracer:
    """Notes which lines of some files run while it is on.

    A function whose lines have all run costs no more than a call: only the others are watched line by line.

    Args:
        functions: of each file, by name: the lines of what reads.
    """

    def __init__(self, functions: Mapping[str, Mapping[str, set[int]]]) -> None:
        self._left: dict[str, set[int]] = {
            str(ROOT / file): set().union(*named.values()) for file, named in functions.items()
        }
        self._watched: dict[CodeType, set[int] | None] = {}

    def __enter__(self) -> Tracer:
        threading.settrace(self._called)
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def left(self) -> Lines:
        """The lines that have not run."""
        return {str(Path(file).relative_to(ROOT)): set(lines) for file, lines in self._left.items()}

    def _called(self, frame: FrameType, event: str, value: Any) -> Any:  # noqa: ARG002
        code = frame.f_code
        try:
            left = self._watched[code]
        except KeyError:
            left = self._left.get(code.co_filename)
            left = left & _lines(code) if left is not None else None
            self._watched[code] = left
        if not left:
            return None
        self._note(code, code.co_firstlineno)
        return self._stepped

    def _stepped(self, frame: FrameType, event: str, value: Any) -> Any:  # noqa: ARG002
        if event == "line":
            self._note(frame.f_code, frame.f_lineno)
        return self._stepped

    def _note(self, code: CodeType, line: int) -> None:
        (self._watched[code] or set()).discard(line)
        self._left[code.co_filename].discard(line)


def functions(modules: Mapping[str, Iterable[str]]) -> dict[str, dict[str, set[int]]]:
    """The functions of modules with their lines, by file.

    Args:
        modules: by name, each with what of it does not read: functions, or methods with their class.
    """
    found: dict[str, dict[str, set[int]]] = {}
    for module, others in modules.items():
        spec = importlib.util.find_spec(module)
        path = Path(str(spec and spec.origin))
        whole = compile(path.read_text(encoding="utf-8"), str(path), "exec")
        named = {name: lines for name, lines in _functions(whole, "") if name.split(".<locals>")[0] not in set(others)}
        found[str(path.relative_to(ROOT))] = named
    return found


def _functions(code: CodeType, within: str) -> Iterable[tuple[str, set[int]]]:
    """Functions and methods: those that stand in others count with them, bodies of classes not at all."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            name = f"{within}{inner.co_name}"
            is_class = "__qualname__" in inner.co_names and inner.co_flags & 2 == 0
            if is_class:
                yield from _functions(inner, f"{name}.")
            elif not inner.co_name.startswith("<"):
                yield name, _all_lines(inner)


def _all_lines(code: CodeType) -> set[int]:
    inner = (_all_lines(each) for each in code.co_consts if isinstance(each, CodeType))
    return _lines(code).union(*inner)


def _lines(code: CodeType) -> set[int]:
    return {line for *_, line in code.co_lines() if line}


def told(left: Lines, named: Mapping[str, Mapping[str, set[int]]]) -> Iterable[str]:
    """A line for each function that was not wholly reached."""
    for file, by_name in named.items():
        for name, lines in by_name.items():
            missed = sorted(lines & left.get(file, set()))
            if missed:
                yield f"{file}: {name}: {'all' if len(missed) == len(lines) else _ranges(missed)}"


def _ranges(numbers: list[int]) -> str:
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
