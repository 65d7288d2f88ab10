"""What a program may use without remembering anything by it; `stateless.py` says how the names are read."""

from __future__ import annotations

import builtins
import datetime
import difflib
import re
import xml.etree.ElementTree as ET
from collections import Counter, OrderedDict, defaultdict, deque

from lxml import etree

EXCEPTIONS = frozenset(
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
)

BUILTINS = EXCEPTIONS | {
    *("abs", "all", "any", "bool", "bytes", "chr", "complex", "dict", "divmod", "float", "format", "frozenset"),
    *("getattr", "hasattr", "int", "isinstance", "issubclass", "len", "list", "max", "min", "object", "ord"),
    *("pow", "print", "property", "range", "round", "set", "slice", "sorted", "staticmethod", "str", "sum", "super"),
    *("tuple", "NotImplemented", "Ellipsis", "__name__"),
}
"""Give the same for the same, and change nothing. `id`, `hash`, `repr` and `type` are not among them: what they give
may come from a place in memory, or make new objects unseen."""

EVERY_BUILTIN = frozenset(dir(builtins)) - {"copyright", "credits", "exit", "help", "license", "quit"}
"""Those of `site` are left aside, which a sandbox's child does not have."""

OWN_DUNDERS = frozenset(
    {
        "__init__",
        "__post_init__",
        "__str__",
        "__repr__",
        "__eq__",
        "__hash__",
        "__len__",
        "__bool__",
        "__lt__",
        "__call__",
    }
)
"""What a class may define; operators and iteration among them could give away what is kept."""

LAZY_BUILTINS = frozenset({"enumerate", "filter", "iter", "map", "reversed", "zip"})
"""Give an iterator, which is used up as it is read."""

CONSUMERS = frozenset(
    {
        *("all", "any", "dict", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple"),
        *("Counter", "deque", "OrderedDict"),
    }
)
"""Read an iterator to its end, or as far as they need, and let it go."""

CONSUMING_METHODS = frozenset({"join", "extend", "update", "union", "intersection", "difference", "fromkeys"})

METHODS = frozenset(
    {
        # texts
        *("capitalize", "casefold", "center", "count", "decode", "encode", "endswith", "expandtabs", "find", "format"),
        *("index", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric"),
        *("isprintable", "isspace", "istitle", "isupper", "join", "ljust", "lower", "lstrip", "maketrans", "partition"),
        *("removeprefix", "removesuffix", "replace", "rfind", "rindex", "rjust", "rpartition", "rsplit", "rstrip"),
        *("split", "splitlines", "startswith", "strip", "swapcase", "title", "translate", "upper", "zfill"),
        # containers
        *("copy", "difference", "fromkeys", "get", "intersection", "isdisjoint", "issubset", "issuperset"),
        *("items", "keys", "most_common", "symmetric_difference", "total", "union", "values"),
        # regular expressions
        *("end", "expand", "findall", "fullmatch", "group", "groupdict", "groups", "match", "search", "span"),
        *("start", "sub", "subn"),
        # trees
        *("findtext", "getchildren", "getnext", "getparent", "getpath", "getprevious", "getroot", "getroottree"),
        *("xpath", "text_content"),
        # numbers, dates, texts that are alike
        *("as_integer_ratio", "bit_length", "conjugate", "is_integer", "total_seconds", "strptime", "strftime"),
        *("date", "time", "isoformat", "isoweekday", "weekday", "ratio", "quick_ratio", "real_quick_ratio"),
    }
)
"""Methods that leave their object as it is, whichever it is (`replace` of an element does not: see `TREE_MAKERS`)."""

LAZY_METHODS = frozenset(
    {
        *("finditer", "iter", "iterancestors", "iterchildren", "iterdescendants", "iterfind", "itersiblings"),
        *("itertext", "elements"),
    }
)

DATA = frozenset(
    {
        *("attrib", "nsmap", "prefix", "tag", "tail", "text", "sourceline", "pattern", "string", "flags", "lastindex"),
        *("year", "month", "day", "hour", "minute", "second", "microsecond", "days", "seconds", "real", "imag"),
    }
)
"""Attributes that are read."""

MUTATORS = frozenset(
    {
        *("add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "extendleft", "insert"),
        *("intersection_update", "move_to_end", "pop", "popitem", "popleft", "remove", "reverse", "rotate"),
        *("setdefault", "sort", "subtract", "symmetric_difference_update", "update"),
    }
)
"""Change a container: right on one that was made in the same call, and nowhere else."""

_KINDS = (
    *(str, bytes, bytearray, list, dict, set, tuple, Counter, OrderedDict, defaultdict, deque),
    *(etree._Element, etree._ElementTree, etree._Attrib, etree.XMLParser, etree.HTMLParser, ET.Element, ET.XMLParser),
    *(re.Pattern, re.Match, datetime.datetime, datetime.timedelta, difflib.SequenceMatcher),
)

_CALLED = frozenset(name for kind in _KINDS for name in dir(kind) if callable(getattr(kind, name)))

UNSAFE = (_CALLED | {"error_log"}) - METHODS - LAZY_METHODS - DATA
"""What the objects that a program can come by offer besides."""

TREE_MAKERS = frozenset(
    {"fromstring", "XML", "HTML", "fragment_fromstring", "document_fromstring", "_Element", "defaultdict"}
)
"""Make what `METHODS` or a mere look may change: nothing that outlives a call may hold it."""

FUNCTIONS: dict[str, frozenset[str]] = {
    "re": frozenset(
        {"compile", "escape", "findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn", "error"}
    ),
    "json": frozenset({"dumps", "loads", "JSONDecodeError"}),
    "lxml": frozenset({"etree", "html"}),
    "lxml.etree": frozenset(
        {
            *("fromstring", "XML", "HTML", "tostring", "XMLParser", "HTMLParser", "XPath", "_Element", "LxmlError"),
            *("ParseError", "ParserError", "XMLSyntaxError", "XPathError", "XPathEvalError"),
        }
    ),
    "lxml.html": frozenset({"fromstring", "fragment_fromstring", "document_fromstring"}),
    "xml": frozenset({"etree"}),
    "xml.etree": frozenset({"ElementTree"}),
    "xml.etree.ElementTree": frozenset({"fromstring", "XML", "tostring", "ParseError"}),
    "collections": frozenset({"Counter", "OrderedDict", "defaultdict", "deque", "namedtuple", "abc"}),
    "itertools": frozenset(
        {
            *("accumulate", "chain", "combinations", "compress", "dropwhile", "filterfalse", "islice"),
            *("pairwise", "permutations", "product", "starmap", "takewhile", "zip_longest"),
        }
    ),
    "functools": frozenset({"reduce"}),
    "html": frozenset({"escape", "unescape"}),
    "datetime": frozenset({"date", "datetime", "time", "timedelta"}),
    "dataclasses": frozenset({"dataclass", "field"}),
    "difflib": frozenset({"SequenceMatcher", "get_close_matches"}),
    "statistics": frozenset({"fmean", "mean", "median", "mode", "pstdev", "stdev"}),
    "unicodedata": frozenset({"category", "name", "normalize", "numeric"}),
    "enum": frozenset({"Enum", "IntEnum", "auto"}),
}
"""By module; of those in `WHOLE`, all."""

WHOLE = frozenset({"__future__", "abc", "collections.abc", "math", "string", "typing"})

LAZY_FUNCTIONS = frozenset({"re.finditer", *(f"itertools.{name}" for name in FUNCTIONS["itertools"])})

NUMPY: dict[str, int] = {
    **dict.fromkeys(("exp", "log", "log1p", "sqrt", "tanh", "abs", "sign", "isfinite", "floor", "ceil"), 1),
    **dict.fromkeys(("mean", "median", "std", "sum", "max", "min", "prod", "float64", "array", "asarray"), 1),
    **dict.fromkeys(("maximum", "minimum"), 2),
    "clip": 3,
}
"""How many arguments by position: one more would be an array that is written to."""

BASES = frozenset({"object", "NamedTuple", "Enum", "IntEnum", "ABC", "Protocol"}) | EXCEPTIONS

FRESH_CALLS = frozenset(
    {
        *("bool", "dict", "float", "frozenset", "int", "len", "list", "set", "sorted", "str", "tuple"),
        *("Counter", "OrderedDict", "defaultdict", "deque"),
    }
)
"""Calls by name whose result nobody else holds."""

CALLED_UNSEEN = frozenset({"reward_fn", "debug_fn", "terms_fn", "debug", "keys", "write", "flush"})
"""Functions that are called without being named: by whoever runs the program, or by a builtin."""
