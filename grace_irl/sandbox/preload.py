"""Loads everything that a program may import, before anything is locked: afterwards no file can be opened.

Modules that are loaded lazily in mid-run are named too; each of them failed when it was first needed after
the lock-down.
"""

from __future__ import annotations

import _imp
import gc
import importlib
import os
import random
import re
import sys
import types
import warnings
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from grace_irl.programs.contract import ALLOWED_MODULES, MODULE


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


LAZY = (
    *("_strptime", "encodings.idna", "encodings.punycode", "encodings.ascii", "encodings.latin_1"),
    *("encodings.cp1252", "encodings.utf_16", "encodings.utf_32", "encodings.unicode_escape"),
    *(
        "collections.abc",
        "numpy.linalg",
        "numpy.fft",
        "numpy.random",
        "numpy.ma",
        "numpy.polynomial",
        "numpy.char",
    ),
    *("numpy.strings", "numpy.rec", "numpy.typing", "numpy.lib.stride_tricks", "xml.etree.ElementTree"),
    *("html.parser", "html.entities", "lxml.etree", "lxml.html", "lxml.objectify", "lxml.builder"),
    *("xml.dom.minidom", "xml.dom.expatbuilder", "xml.etree.ElementPath", "importlib._bootstrap", "traceback"),
)


def preload() -> None:
    """Import everything, call what loads more on its first call, and shut the import system. Places are forgotten."""
    for name in sorted(ALLOWED_MODULES) + list(LAZY):
        importlib.import_module(name)
    _first_calls()
    warnings.simplefilter("ignore")  # nobody reads them, and the first one of a kind looks up its source line
    sys.dont_write_bytecode = True
    forget_places()
    # from here on an import finds what is loaded, or fails with the name
    sys.meta_path.clear()
    sys.path.clear()
    sys.path_importer_cache.clear()
    sys.path_hooks.clear()


def _read_xml() -> None:
    """A screen, in each of the ways that programs read one."""
    import xml.dom.minidom
    import xml.etree.ElementTree as ET

    import lxml.etree
    import lxml.html
    import lxml.objectify

    screen = '<hierarchy rotation="0"><node text="Réveil 8:25" checked="true"><node/></node></hierarchy>'
    root = lxml.etree.fromstring(screen)
    for path in ("//node[@checked='true']", "//node[contains(@text, '8')]/@text", "count(//node)", "string(//@text)"):
        root.xpath(path)
    root.xpath("//node[re:test(@text, '8')]", namespaces={"re": "http://exslt.org/regular-expressions"})
    lxml.etree.XPath("//node[@text=$text]")(root, text="8")
    [root.find(".//node"), root.findall("node"), *root.iter("node"), *root.itertext(), *root.iterancestors()]
    lxml.etree.tostring(root, encoding="unicode", pretty_print=True)
    lxml.etree.fromstring(screen, lxml.etree.XMLParser(recover=True, huge_tree=True))
    lxml.html.fromstring(screen).text_content()
    lxml.objectify.fromstring(screen)
    tree = ET.fromstring(screen)
    [tree.find(".//node[@checked='true']"), *tree.iter("node"), *tree.itertext(), ET.tostring(tree)]
    xml.dom.minidom.parseString(screen).getElementsByTagName("node")
    for broken in ("<a>", ""):
        with suppress(lxml.etree.XMLSyntaxError):
            lxml.etree.fromstring(broken)
        with suppress(ET.ParseError):
            ET.fromstring(broken)


def _first_calls() -> None:
    from datetime import datetime

    np.percentile(np.array([1.0, 2.0]), 5)
    np.linalg.svd(np.eye(3))
    np.random.default_rng(0).normal(size=3)
    np.random.seed(0)
    random.seed(0)
    str(np.zeros((2, 2)))
    re.compile(r"(\d+)").sub("", "a1")
    "é".encode("ascii", "ignore").decode("latin-1")
    datetime(2000, 1, 1).strftime("%Y")
    _read_xml()
    # the paths of the interpreter that classes and dataclasses take are warm from here on
    module = sys.modules[MODULE] = types.ModuleType(MODULE)
    exec(
        "from dataclasses import dataclass\n@dataclass\nclass Reward:\n    a: int = 0\nReward()",
        module.__dict__,
    )
    del sys.modules[MODULE]
