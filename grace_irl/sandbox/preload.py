"""Loads everything that a program may import, before anything is locked: afterwards no file can be opened.

Modules that are loaded lazily in mid-run are named too; each of them failed when it was first needed after
the lock-down.
"""

from __future__ import annotations

import importlib
import random
import re
import sys
import types
import warnings
from contextlib import suppress

import numpy as np

from grace_irl.programs.contract import ALLOWED_MODULES, MODULE
from grace_irl.sandbox.places import forget_places

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
