"""The warm-up of a zygote before its first fork: load modules, hide paths, rehearse a run, fill gaps in memory.

A zygote is a process that forks a locked-down child for each program. The child can open no file, so the zygote must
load all modules in advance. Paths are hidden, because they name the user's folders. The rest of the warm-up makes
children faster.
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
from grace_irl.sandbox import memory
from grace_irl.sandbox.candidate import ProgramFailure
from grace_irl.sandbox.child import prepare, score
from grace_irl.sandbox.job import AnswerMap, JobMemory
from grace_irl.sandbox.parcel import Content, Views, seal_parcel
from grace_irl.states import kind_of


def forget_places() -> None:
    """Shorten all paths in modules and their code to the part below an import folder, such as `numpy/__init__.py`.

    Also clear the command line and the environment. So a program cannot find out the names of this machine's folders,
    but tracebacks still name files. Call this function after all imports and before `sys.path` is emptied.
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
    sys.modules["posix"].environ.clear()  # the dict from which `os.environ` was made


class _Shortener:
    """A function that removes known folders from the start of paths, and returns other values unchanged."""

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
    if isinstance(holder, type):  # the loader of built-in modules is a class, whose attributes hold no path
        return
    for name, value in list(names.items()):
        if isinstance(value, (str, list)) and (short := shorten(value)) != value:
            names[name] = short


def _forget_in_functions(shorten: _Shortener) -> None:
    """Shorten the paths in running frames and in all functions, with their defaults and nested code."""
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
    rename = getattr(_imp, "_fix_co_filename", None)  # the import system's function for paths of moved files
    if rename is not None:
        for code in codes.values():
            rename(code, shorten(code.co_filename))


LAZY = (
    *("_strptime", "encodings.idna", "encodings.punycode", "encodings.ascii", "encodings.latin_1"),
    *("encodings.cp1252", "encodings.utf_16", "encodings.utf_32", "encodings.unicode_escape", "collections.abc"),
    *("numpy.linalg", "numpy.fft", "numpy.random", "numpy.ma", "numpy.polynomial", "numpy.char", "numpy.strings"),
    *("numpy.rec", "numpy.typing", "numpy.lib.stride_tricks", "xml.etree.ElementTree", "html.parser", "html.entities"),
    *("lxml.etree", "lxml.html", "lxml.objectify", "lxml.builder", "xml.dom.minidom", "xml.dom.expatbuilder"),
    *("xml.etree.ElementPath", "importlib._bootstrap", "traceback"),
)
"""Modules that Python would load only when a program first needs them. A locked-down child could not load them."""


def preload() -> None:
    """Import all modules that programs may need, hide all paths, and shut down the import system."""
    for name in [*sorted(ALLOWED_MODULES), *LAZY]:
        importlib.import_module(name)
    _first_calls()
    warnings.simplefilter("ignore")  # nobody reads warnings, and to format them, Python reads source files
    sys.dont_write_bytecode = True
    forget_places()
    # From here on, an import finds a loaded module, or raises an ImportError that names the module.
    sys.meta_path.clear()
    sys.path.clear()
    sys.path_importer_cache.clear()
    sys.path_hooks.clear()


def _read_xml() -> None:
    """Parse and query a small XML screen by all functions that programs typically call."""
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
    """Call functions that load further modules or code at their first call."""
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
    # Define a dataclass, as programs do, to warm up the interpreter's code for dataclasses.
    module = sys.modules[MODULE] = types.ModuleType(MODULE)
    exec(
        "from dataclasses import dataclass\n@dataclass\nclass Reward:\n    a: int = 0\nReward()",
        module.__dict__,
    )
    del sys.modules[MODULE]


_POOL_BYTES = 16 << 10  # size of a pool (obmalloc.c: POOL_SIZE of CPython 3.10 and later)
_POOL_HEADER = 48
_ALIGNMENT = 16
_LARGEST = 512  # maximum size of an object in a pool, bytes; malloc provides larger objects
_MOST = 1 << 17  # maximum number of objects of one size, which ends the loop if the allocator is not CPython's

_gaps: list[bytes] = []


def fill_gaps() -> None:
    """Fill the gaps in half-full pools permanently. A pool is memory of CPython's allocator for objects of one size.

    A forked child would put its new objects into these gaps. The kernel would then copy each page with a gap, including
    the zygote's objects on it. Without gaps, new objects lie together, and the kernel copies a sixth fewer pages.
    """
    empty = b"".__sizeof__()
    for size in range(_ALIGNMENT * (-(-empty // _ALIGNMENT)), _LARGEST + 1, _ALIGNMENT):
        room = (_POOL_BYTES - _POOL_HEADER) // size
        filled: list[bytes] = []
        before, in_a_row = 0, 0
        while in_a_row < room - 1 and len(filled) < _MOST:
            filled.append(bytes(size - empty))
            here = id(filled[-1])
            in_a_row = in_a_row + 1 if here == before + size else 0
            before = here
        # The last objects lie side by side and fill a new pool, so no gap is left. Dropping them frees this pool again.
        _gaps.extend(filled[: -in_a_row - 1])


_TIMES = 20  # rehearsals; CPython 3.11 specialises a function at its 8th call, and each instruction after a few more
_STATES = 16  # number of states in a rehearsal

_PROGRAM = """
import numpy as np


class Reward:
    def __init__(self, extra_info=None):
        self.words = (extra_info or "").split()
        self.count = 0

    def reward_fn(self, state):
        self.count += 1
        value = float(np.sum(state == 1))
        return value / self.count + len(self.words)
"""


def rehearse() -> None:
    """Parse, check, compile and run a program several times, on vectors and on grids.

    During the first runs of a program, the interpreter rewrites bytecode, fills method caches and builds free lists. A
    child would write all this to pages that the kernel must copy first. The rehearsal saves 40 % of a child's page
    faults.
    """
    for states in (np.ones((_STATES, 4)), np.ones((_STATES, 3, 3, 3), np.uint8)):
        kind = kind_of(states, "rehearsal")
        parcel = seal_parcel(kind, kind.layout(states), [Content((states,), None, "go there")])
        for _ in range(_TIMES):
            _play(parcel)
        memory.close(parcel)


def _play(parcel: int) -> None:
    job = JobMemory(_PROGRAM.encode(), 1, states=_STATES)
    answer = AnswerMap(job.fd)
    candidate = prepare(answer.source().decode(), checks=True)
    if isinstance(candidate, ProgramFailure):
        raise RuntimeError(candidate.message)
    score(candidate, _PROGRAM, Views(parcel), answer)
    job.close()
