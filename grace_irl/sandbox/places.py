"""Takes the places of files out of a process's modules: no program finds whose folders it runs from."""

from __future__ import annotations

import _imp
import gc
import os
import sys
import types
from collections.abc import Iterable
from typing import Any


def forget_places() -> None:
    """Shorten every path of a module or of its code to what lies below its folder of packages: `numpy/__init__.py`.

    Tracebacks and messages go on naming files. To be called once all is loaded, before `sys.path` is emptied.
    """
    package = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    shorten = _Shortener([*sys.path, sys.prefix, sys.base_prefix, os.path.dirname(sys.executable), package])
    for module in list(sys.modules.values()):
        names = vars(module)
        spec = names.get("__spec__")
        for holder in (module, names.get("__loader__"), spec, getattr(spec, "loader_state", None)):
            _forget_in(holder, shorten)
    _forget_in_functions(shorten)
    for arguments in (sys.orig_argv, sys.argv):
        arguments[:] = [""]
    os.environ.clear()
    sys.executable = ""
    sys.modules["posix"].environ.clear()  # what os.environ was made from


class _Shortener:
    """A path without the folder that leads to it; every other value as it is."""

    def __init__(self, folders: Iterable[str]) -> None:
        whole = {os.path.abspath(folder) for folder in folders if folder}
        whole |= {os.path.realpath(folder) for folder in whole}
        self._folders = sorted(whole - {"/"}, key=len, reverse=True)
        self._known: dict[str, str] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self(each) for each in value]
        if not isinstance(value, str) or "/" not in value:
            return value
        if value not in self._known:
            self._known[value] = self._shortened(value)
        return self._known[value]

    def _shortened(self, path: str) -> str:
        for folder in self._folders:
            if path == folder or path.startswith(f"{folder}/"):
                return path[len(folder) + 1 :]
        return path


def _forget_in(holder: Any, shorten: _Shortener) -> None:
    names = getattr(holder, "__dict__", {})
    if isinstance(holder, type):  # a loader of built-in modules
        return
    for name, value in list(names.items()):
        if isinstance(value, (str, list)) and (short := shorten(value)) != value:
            names[name] = short


def _forget_in_functions(shorten: _Shortener) -> None:
    """In place, in every function and in what runs at the moment; the code within a function's goes with it."""
    functions = [each for each in gc.get_objects() if isinstance(each, types.FunctionType)]
    for function in functions:
        defaults = function.__defaults__ or ()
        if any(isinstance(value, str) and shorten(value) != value for value in defaults):
            function.__defaults__ = tuple(map(shorten, defaults))
    codes = {id(each.__code__): each.__code__ for each in functions}
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        codes[id(frame.f_code)] = frame.f_code
        frame = frame.f_back
    rename = getattr(_imp, "_fix_co_filename", None)  # what the import system renames code with that was moved
    if rename is not None:
        for code in codes.values():
            rename(code, shorten(code.co_filename))
